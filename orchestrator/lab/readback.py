"""Compares what was set with what the kernel and the agents say: pure functions from (plan, answers) to
differences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.model import Impairment, Interface, Node, Plan, Route

Entry = dict[str, Any]
# tc counts netem's delays in whole microseconds and may round down once more (jitter 300us reads 299us)
TIME_SLACK_NS = 2_000
RATE_SLACK_BPS = 8  # netem keeps bytes per second
# netem keeps probabilities in 32 bits, tc prints six digits
SHARE_SLACK = 2**-31
SHARE_DIGITS = 1e-5


@dataclass(frozen=True, slots=True)
class Difference:
    place: str
    asked: object
    read: object

    def __str__(self) -> str:
        return f"{self.place}: asked {self.asked}, read back {self.read}"


def insist(differences: Sequence[Difference]) -> None:
    """LabError with every difference: an experiment whose setting did not apply has failed."""
    if differences:
        shown = "; ".join(str(d) for d in differences[:10])
        more = f"; and {len(differences) - 10} more" if len(differences) > 10 else ""
        raise LabError(f"the network is not as planned: {shown}{more}")


def core_devices(plan: Plan, entries: Iterable[Entry]) -> list[Difference]:
    """Bridges and ports of the core namespace against `ip -j -d link`: present, up, MTU, master."""
    by_name = {e["ifname"]: e for e in entries}
    bridges = {s.name: s.bridge for s in plan.segments}
    found: list[Difference] = []
    for segment in plan.segments:
        place = f"segments.{segment.name}.{segment.bridge}"
        found += _device(place, by_name.get(segment.bridge), segment.mtu, None)
    for node in plan.nodes:
        for interface in node.interfaces:
            if not interface.port:
                continue  # a NIC whose other end is outside, or a wire's end: its node's agent reads it back
            place = f"nodes.{node.name}.{interface.port}"
            bridge = interface.bridge or bridges[interface.segment]
            found += _device(place, by_name.get(interface.port), interface.mtu, bridge)
    return found


def _device(place: str, entry: Entry | None, mtu: int, master: str | None) -> list[Difference]:
    if entry is None:
        return [Difference(place, "present", "absent")]
    pairs: list[tuple[str, object, object]] = [
        ("mtu", mtu, entry.get("mtu")),
        ("up", True, "UP" in entry.get("flags", ())),
    ]
    if master is not None:
        pairs.append(("bridge", master, entry.get("master")))
    return [Difference(f"{place}.{what}", asked, read) for what, asked, read in pairs if asked != read]


def not_forwarding(entries: Iterable[Entry], ports: Collection[str] | None) -> list[str]:
    """Bridge ports (of `ports`, or all) that do not yet pass frames on, from `ip -j -d link`.

    A port that is up forwards only once the kernel has dealt with its carrier, a moment later: a first
    packet sent before is lost, and a TCP connection then starts a second late.
    """
    found = []
    for entry in entries:
        info = entry.get("linkinfo", {})
        if info.get("info_slave_kind") != "bridge" or (ports is not None and entry["ifname"] not in ports):
            continue
        if info.get("info_slave_data", {}).get("state") != "forwarding":
            found.append(str(entry["ifname"]))
    return found


def agents(nodes: Iterable[Node], answers: dict[str, Entry]) -> list[Difference]:
    """Host names, addresses, MACs, MTUs, states, offloads, forwarding and routes against what agents read."""
    found: list[Difference] = []
    for node in nodes:
        place = f"nodes.{node.name}"
        if (answer := answers.get(node.name)) is None:
            found.append(Difference(place, "configured", "no answer"))
            continue
        if answer.get("hostname") != node.hostname:
            found.append(Difference(f"{place}.hostname", node.hostname, answer.get("hostname")))
        by_name = {i["name"]: i for i in answer.get("interfaces", [])}
        for interface in node.interfaces:
            found += _interface(f"{place}.{interface.name}", interface, by_name.get(interface.name))
        if node.forward and not answer.get("forward"):
            found.append(Difference(f"{place}.forward", True, answer.get("forward")))
        found += _routes(f"{place}.routes", node.routes, answer.get("routes", []))
    return found


def _routes(place: str, asked: Sequence[Route], read: Sequence[Entry]) -> list[Difference]:
    wanted = {to: sorted(route.via) for route in asked for to in route.to}
    there = {to: sorted(route["via"]) for route in read for to in route["to"]}
    if wanted == there:
        return []
    wrong = sorted(to for to in wanted.keys() | there.keys() if wanted.get(to) != there.get(to))
    return [Difference(f"{place}.{to}", wanted.get(to, "none"), there.get(to, "none")) for to in wrong]


def _interface(place: str, asked: Interface, read: Entry | None) -> list[Difference]:
    if read is None:
        return [Difference(place, "present", "absent")]
    pairs: list[tuple[str, object, object]] = [
        ("address", asked.address, read.get("address")),
        ("prefix", asked.prefix, read.get("prefix")),
        ("mtu", asked.mtu, read.get("mtu")),
        ("mac", asked.mac.lower(), str(read.get("mac", "")).lower()),
        ("up", True, read.get("up")),
    ]
    pairs += [(f"offloads.{name}", False, value) for name, value in read.get("offloads", {}).items()]
    return [Difference(f"{place}.{what}", a, r) for what, a, r in pairs if a != r]


def impairment(place: str, asked: Impairment, entries: Iterable[Entry], device: str) -> list[Difference]:
    """One direction against `tc -j qdisc`. The shape of a jitter distribution is not told by the kernel."""
    roots = [e for e in entries if e.get("dev") == device and e.get("root")]
    netem = next((e for e in roots if e.get("kind") == "netem"), None)
    if netem is None:
        kinds = ", ".join(str(e.get("kind")) for e in roots) or "nothing"
        return [Difference(f"{place}.{device}", "netem", kinds)] if asked.present else []
    if not asked.present:
        return [Difference(f"{place}.{device}", "no netem", "netem")]
    read = from_netem(netem.get("options", {}), asked.distribution)
    return [
        Difference(f"{place}.{field}", getattr(asked, field), getattr(read, field))
        for field, slack in _SLACKS.items()
        if _matters(asked, field) and not _near(getattr(asked, field), getattr(read, field), slack)
    ]


_SLACKS: dict[str, float] = {
    "delay_ns": TIME_SLACK_NS, "jitter_ns": TIME_SLACK_NS, "rate_bps": RATE_SLACK_BPS, "limit_packets": 0,
    "gemodel": SHARE_SLACK,
} | {
    f"{quantity}{part}": SHARE_SLACK
    for quantity in ("loss", "duplicate", "corrupt", "reorder") for part in ("", "_correlation")
} | {"delay_correlation": SHARE_SLACK}  # fmt: skip


def _matters(asked: Impairment, field: str) -> bool:
    """A correlation of something that does not happen is nobody's concern, and tc leaves it out."""
    quantity = field.removesuffix("_correlation")
    if quantity == field:
        return True
    return bool(getattr(asked, "jitter_ns" if quantity == "delay" else quantity))


def _near(asked: Any, read: Any, slack: float) -> bool:
    if isinstance(asked, tuple) and isinstance(read, tuple):
        return all(_near(a, r, slack) for a, r in zip(asked, read, strict=True))
    if asked is None or read is None:
        return asked is read
    digits = SHARE_DIGITS * abs(asked) if isinstance(asked, float) else 0.0
    return bool(abs(asked - read) <= slack + digits)


def from_netem(options: Entry, distribution: Any = "uniform") -> Impairment:
    """The impairment that the options of a netem qdisc (`tc -j`) stand for."""
    delay, loss = options.get("delay", {}), options.get("loss-random", {})
    gemodel = options.get("loss-gemodel")
    shares: dict[str, float] = {
        "loss": loss.get("loss", 0.0),
        "loss_correlation": loss.get("correlation", 0.0),
    }
    for quantity in ("duplicate", "corrupt", "reorder"):
        part = options.get(quantity, {})
        shares |= {quantity: part.get(quantity, 0.0), f"{quantity}_correlation": part.get("correlation", 0.0)}
    return Impairment(
        delay_ns=round(delay.get("delay", 0) * 1e9),
        jitter_ns=round(delay.get("jitter", 0) * 1e9),
        distribution=distribution,
        delay_correlation=delay.get("correlation", 0.0),
        gemodel=tuple(float(gemodel[k]) for k in ("p", "r", "1-h", "1-k")) if gemodel else None,  # type: ignore[arg-type]
        rate_bps=options.get("rate", {}).get("rate", 0) * 8,
        limit_packets=options.get("limit", 0),
        **shares,
    )
