"""Brings up and takes down a Mininet star on a Linux bridge, or with --grid a square of nodes joined to their
neighbours; prints both times in seconds as JSON.

It runs with Debian's own Python (Mininet is a Debian package) inside a network namespace of its own.
"""

import json
import shutil
import sys
import time

from graphs import edges

try:
    from mininet.net import Mininet  # type: ignore[import-not-found]
    from mininet.nodelib import LinuxBridge  # type: ignore[import-not-found]
    from mininet.topo import SingleSwitchTopo, Topo  # type: ignore[import-not-found]
except ImportError as error:
    sys.exit(f"mininet_peer.py: {sys.executable}: {error}; Mininet is Debian's: images/packages.sh bench")

# Programs that LinuxBridge and Mininet call; without one of them they fail with an obscure error.
PROGRAMS = ("brctl", "sysctl", "ifconfig", "mnexec", "ip")


def square(side: int) -> Topo:
    """Returns the graph of bench/grid.py, made of Mininet hosts that forward packets."""
    topo = Topo()
    names = [topo.addHost(f"r{number}", ip=None) for number in range(side * side)]
    for a, b in edges(side):
        topo.addLink(names[a], names[b])
    return topo


def main() -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        sys.exit(f"mininet_peer.py: {', '.join(missing)}: not installed; images/packages.sh run bench")
    count = int(sys.argv[-1])
    topo = square(count) if "--grid" in sys.argv else SingleSwitchTopo(count)
    start = time.monotonic()
    net = Mininet(topo=topo, switch=LinuxBridge, controller=None)
    net.start()
    ready = time.monotonic()
    net.stop()
    json.dump({"up_s": ready - start, "down_s": time.monotonic() - ready}, sys.stdout)


main()
