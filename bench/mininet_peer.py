"""Peer: brings up and down a Mininet star on a Linux bridge; prints the two times in seconds as JSON.

Runs with Debian's own Python (Mininet is a Debian package) inside a network namespace of its own.
"""

import json
import shutil
import sys
import time

try:
    from mininet.net import Mininet  # type: ignore[import-not-found]
    from mininet.nodelib import LinuxBridge  # type: ignore[import-not-found]
    from mininet.topo import SingleSwitchTopo  # type: ignore[import-not-found]
except ImportError as error:
    sys.exit(f"mininet_peer.py: {sys.executable}: {error}; Mininet is Debian's: images/packages.sh bench")

# What LinuxBridge and Mininet call; without one of them it fails far inside.
PROGRAMS = ("brctl", "sysctl", "ifconfig", "mnexec", "ip")


def main() -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        sys.exit(f"mininet_peer.py: {', '.join(missing)}: not installed; images/packages.sh run bench")
    count = int(sys.argv[1])
    start = time.monotonic()
    net = Mininet(topo=SingleSwitchTopo(count), switch=LinuxBridge, controller=None)
    net.start()
    ready = time.monotonic()
    net.stop()
    json.dump({"up_s": ready - start, "down_s": time.monotonic() - ready}, sys.stdout)


main()
