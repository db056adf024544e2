"""Peer: brings up and down a Mininet star on a Linux bridge; prints the two times in seconds as JSON.

Runs with Debian's own Python (Mininet is a Debian package) inside a network namespace of its own.
"""

import json
import sys
import time

from mininet.net import Mininet  # type: ignore[import-not-found]
from mininet.nodelib import LinuxBridge  # type: ignore[import-not-found]
from mininet.topo import SingleSwitchTopo  # type: ignore[import-not-found]


def main() -> None:
    count = int(sys.argv[1])
    start = time.monotonic()
    net = Mininet(topo=SingleSwitchTopo(count), switch=LinuxBridge, controller=None)
    net.start()
    ready = time.monotonic()
    net.stop()
    json.dump({"up_s": ready - start, "down_s": time.monotonic() - ready}, sys.stdout)


main()
