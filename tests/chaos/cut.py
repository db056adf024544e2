"""Passes VNET_CUT messages on, counting both directions together, and then ends; ssh runs it as ProxyCommand
for HOST PORT.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys

MESSAGE_BYTES = 32_768


def main() -> None:
    far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    left = int(os.environ.get("VNET_CUT", -1))
    ways = selectors.DefaultSelector()
    ways.register(0, selectors.EVENT_READ, far.fileno())
    ways.register(far, selectors.EVENT_READ, 1)
    while left != 0:
        for key, _ in ways.select():
            data = os.read(key.fd, MESSAGE_BYTES)
            if not data or left == 0:
                return
            while data:
                data = data[os.write(key.data, data) :]
            left -= 1


if __name__ == "__main__":
    main()
