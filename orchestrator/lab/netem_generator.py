"""Sets the seeds of netem's random generators by netlink, because `tc` before iproute2 6.16 has no parameter
for a seed.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator, Mapping

from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.rtnetlink import (
    ACK,
    NLMSG_ERROR,
    REQUEST,
    RTM_NEWQDISC,
    TCA_KIND,
    TCA_OPTIONS,
    attribute,
    attributes,
    qdiscs,
)

QOPT = 24  # sizeof(struct tc_netem_qopt), linux/pkt_sched.h
TCA_NETEM_PRNG_SEED = 14  # since Linux 6.6
HEADER = struct.Struct("=BxxxiIII")  # family, device, handle, parent, info


def seed(netns: str, seeds: Mapping[str, int]) -> dict[str, int]:
    """Sets netem's seed on each of the given devices of a namespace that has a netem qdisc; returns the seeds
    that the kernel then reports, by device.

    A kernel before 6.6 ignores the attribute and reports none. Raises LabError if the namespace does not
    exist or the kernel refuses.
    """
    found: dict[str, int] = {}
    failed: list[OSError] = []

    # The function runs in a separate thread, because a thread stays in the last namespace that it entered.
    def inside() -> None:
        try:
            enter(netns)
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
                for device, header, options in list(_netems(kernel)):
                    if device in seeds:
                        _change(kernel, header, options, seeds[device])
                found.update(_reported(kernel))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if failed:
        raise LabError(f"{netns}: netem takes no seed: {failed[0].strerror}; see docs/compare.md")
    return {device: value for device, value in found.items() if device in seeds}


def _netems(kernel: socket.socket) -> Iterator[tuple[str, bytes, bytes]]:
    """Yields device, `struct tcmsg` and options of each netem qdisc in the thread's namespace; skips devices
    that were removed meanwhile.
    """
    for body in list(qdiscs(kernel)):
        about = attributes(body[HEADER.size :])
        if about.get(TCA_KIND, b"").rstrip(b"\0") == b"netem":
            _, index, *_ = HEADER.unpack_from(body)
            try:
                device = socket.if_indextoname(index)
            except OSError:
                continue
            yield device, body[: HEADER.size], about[TCA_OPTIONS]


def _change(kernel: socket.socket, header: bytes, options: bytes, value: int) -> None:
    """Sends the options of a netem qdisc back to the kernel with another seed; everything else stays as it
    is. Raises OSError if the kernel refuses.
    """
    family, device, handle, parent, _ = HEADER.unpack(header)
    kept = attributes(options[QOPT:])
    kept[TCA_NETEM_PRNG_SEED] = struct.pack("=Q", value)
    there = options[:QOPT] + b"".join(attribute(kind, data) for kind, data in sorted(kept.items()))
    body = HEADER.pack(family, device, handle, parent, 0)
    body += attribute(TCA_KIND, b"netem\0") + attribute(TCA_OPTIONS, there)
    kernel.send(struct.pack("=IHHII", 16 + len(body), RTM_NEWQDISC, REQUEST | ACK, 1, 0) + body)
    answer = kernel.recv(1 << 16)
    (kind,) = struct.unpack_from("=H", answer, 4)
    (number,) = struct.unpack_from("=i", answer, 16)
    if kind == NLMSG_ERROR and number:
        raise OSError(-number, os.strerror(-number))


def _reported(kernel: socket.socket) -> Iterator[tuple[str, int]]:
    """Yields device and seed of each netem qdisc whose seed the kernel reports."""
    for device, _, options in _netems(kernel):
        value = attributes(options[QOPT:]).get(TCA_NETEM_PRNG_SEED, b"")
        if len(value) == 8:
            yield device, struct.unpack("=Q", value)[0]
