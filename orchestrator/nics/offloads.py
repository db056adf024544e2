"""Reads and restores the segmentation offloads of an interface through SIOCETHTOOL."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from orchestrator.nics.model import NicError

SIOCETHTOOL = 0x8946
# ETHTOOL_GTSO, GGSO and GGRO of include/uapi/linux/ethtool.h; the setter of each is the next number.
GETTERS = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}


def read(name: str) -> dict[str, bool]:
    """Returns whether tso, gso and gro are on, by name; omits an offload that cannot be read."""
    found = {}
    for offload, getter in GETTERS.items():
        try:
            found[offload] = bool(_call(name, getter, 0))
        except OSError:
            continue
    return found


def restore(name: str, wanted: dict[str, bool]) -> None:
    """Sets the offloads of `wanted` that differ; raises NicError if the driver refuses."""
    for offload, value in wanted.items():
        try:
            if bool(_call(name, GETTERS[offload], 0)) != value:
                _call(name, GETTERS[offload] + 1, int(value))
        except OSError as error:
            words = f"{offload} {'on' if value else 'off'}"
            raise NicError(f"{name}: {words}: {error.strerror}; ethtool -K {name} {words}") from error


def _call(name: str, command: int, value: int) -> int:
    data = array.array("I", [command, value])
    address, _ = data.buffer_info()
    request = struct.pack("16sP16x", name.encode(), address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCETHTOOL, request)
    return data[1]
