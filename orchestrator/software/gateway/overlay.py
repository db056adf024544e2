"""Builds the tc filters and queues of the classes whose packets a gateway forwards itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Band

from .file import EarlyDetection, GatewayOptions, Overlay

TCP, UDP = 6, 17
EGRESS = "ffff:fff3"  # parent of a clsact qdisc's egress filters, which packets pass before they queue


def settings(options: GatewayOptions, device: str) -> dict[str, Any] | None:
    """Returns the device from which the gateway reads packets, and the `tc -batch` lines that send them
    there; None if no flow has an overlay.
    """
    ports = [
        port for governed in options.flows.values() if governed.overlay for port in _ports(governed.overlay)
    ]
    if not ports:
        return None
    tap = f"via-{device}"
    return {"tap": tap, "filters": _filters(device, tap, ports)}


def shared(overlay: Overlay | None, band: Band, seed: int) -> dict[str, Any] | None:
    """Returns the settings of the queue of one class, in which each flow has the class's limit; None without
    an overlay. seed: the seed of the random early drops.
    """
    if overlay is None:
        return None
    red = {} if overlay.red is None else {"red": _early(overlay.red, seed)}
    return {
        "order": overlay.order,
        "drops_late": overlay.late == "drop",
        "limit": band.limit_packets,
        "deadlines_ns": {str(flow.port): flow.deadline for flow in overlay.flows},
        **red,
    }


def _early(red: EarlyDetection, seed: int) -> dict[str, Any]:
    return {
        "min_packets": red.min,
        "max_packets": red.max,
        "probability": red.probability,
        "weight": red.weight,
        "seed": seed,
    }


def mistake(overlay: Overlay, band: Band) -> tuple[str, str] | None:
    """Returns a conflict between an overlay and its class as (rule, remedy): the class selects packets by
    something other than ports, has other ports than the overlay, has a ceiling other than its rate, or queues
    fewer packets than random early detection needs. None if there is no conflict.
    """
    if band.pcp or band.dscp or not band.ports:
        return (
            "an overlay tells flows by their ports, and its class has others",
            "select the class by `port` alone",
        )
    if sorted(band.ports) != sorted(_ports(overlay)):
        ports = ", ".join(map(str, band.ports))
        return f"an overlay has one deadline for each port of its class, {ports}", "write each of them once"
    if band.ceil_bps != band.rate_bps:
        return (
            "an overlay sends at its class's rate and borrows nothing",
            "give the class a `ceil` equal to its `rate`",
        )
    room = band.limit_packets * len(overlay.flows)
    if overlay.red is not None and overlay.red.max > room:
        return (
            f"red drops every packet from {overlay.red.max} waiting ones on, and its class queues {room}",
            "raise the class's `limit`, or lower `max`",
        )
    return None


def _ports(overlay: Overlay) -> list[int]:
    return [flow.port for flow in overlay.flows]


def _filters(device: str, tap: str, ports: Sequence[int]) -> list[str]:
    """Returns the tc lines that redirect packets from or to these ports to the device `tap`, before the
    link's delay and classes, with or without a VLAN tag.
    """
    taken = enumerate((key for port in ports for key in _keys(port)), 1)
    return [
        f"qdisc replace dev {device} clsact",
        f"filter del dev {device} parent {EGRESS}",
        *(
            f"filter add dev {device} parent {EGRESS} protocol {protocol} pref {number} u32 {key} "
            f"action mirred egress redirect dev {tap}"
            for number, (protocol, key) in taken
        ),
    ]


def _keys(port: int) -> Iterator[tuple[str, str]]:
    """Yields (protocol, u32 match) for each form of a packet with this port: TCP or UDP, from or to the port,
    untagged or tagged, over IPv4 without header options.
    """
    for transport in (TCP, UDP):
        head = f"match u32 0x45000000 0xff000000 at 0 match u32 0x{transport << 16:08x} 0x00ff0000 at 8"
        for value, mask in ((port << 16, 0xFFFF0000), (port, 0x0000FFFF)):
            for protocol in ("ip", "802.1q"):
                yield protocol, f"{head} match u32 0x{value:08x} 0x{mask:08x} at 20"
