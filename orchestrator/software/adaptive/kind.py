"""Defines the registry entry of adaptive messages: checks, description for readers, costs and ports."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from .. import peers
from ..accounting import numbered
from ..checking import Checks, Here, light
from ..kind import TCP_HEADERS_BYTES, UDP_HEADERS_BYTES, Bind, Costs, Kind
from ..messages import flow_words
from ..sending import check_sending, expected_messages, rate_words
from .file import HEADER_BYTES, LARGEST_BYTES, LOST_AFTER_NS, Adaptive, AdaptiveOptions, Policy
from .planning import plan

_MEMORY_BYTES = 12_000_000  # memory of a Python program
_COPIES = {"once": 1, "twice": 2, "adaptive": 2}  # largest number of datagrams for a message


def _check(report: Checks, here: Here, model: Adaptive) -> None:
    options, path = model.adaptive, (*here.path, "adaptive")
    peers.check_peer(report, here, options, "adaptive", ("push",))
    light(report, here, path, "whose image has no Python")
    if options.listen is not None:
        for key in sorted(options.model_fields_set & {"use", "policy"}):
            rule = "does not belong to the side that listens"
            report.add((*path, key), None, rule, "write it where `to` is")
    elif len(options.to or ()) > 1 or any(len(report.machines(path, name)) > 1 for name in options.to or ()):
        report.add((*path, "to"), None, "a sender has one receiver", "write an `adaptive` for each")
    if options.use != "adaptive" and "policy" in options.model_fields_set:
        rule = f"chooses nothing with `use: {options.use}`"
        report.add((*path, "policy"), None, rule, "leave it out, or write `use: adaptive`")
    _check_policy(report, here, options.policy)
    _check_messages(report, here, options)


def _check_policy(report: Checks, here: Here, policy: Policy) -> None:
    path = (*here.path, "adaptive", "policy")
    for key in ("probe_every", "queue"):
        if getattr(policy, key) == 0:
            report.add((*path, key), "0 s", "is not above zero", 'write for example "50 ms"')
    if policy.probe_every and policy.window < LOST_AFTER_NS + 10 * policy.probe_every:
        each, after = policy.probe_every / 1e6, LOST_AFTER_NS / 1e6
        rule = (
            f"holds fewer than ten probes, one each {each:g} ms, of which it is decided after {after:g} ms "
        )
        rule += "whether they are lost"
        report.add((*path, "window"), f"{policy.window / 1e9:g} s", rule, "lengthen it, or probe more often")


def _check_messages(report: Checks, here: Here, options: AdaptiveOptions) -> None:
    wanted, path = options.push, (*here.path, "adaptive", "push")
    if wanted is None:
        return
    check_sending(report, here, wanted, path, "leave it out where nothing is sent")
    if not HEADER_BYTES <= wanted.size <= LARGEST_BYTES:
        rule = f"a message has from {HEADER_BYTES} to {LARGEST_BYTES} bytes, so that it is one datagram"
        report.add((*path, "size"), f"{wanted.size} B", rule, 'write for example "200 B"')


def _words(software: Software, sent: Sequence[Flow]) -> str:
    if software.spec["listen"] is not None:
        return f"takes adaptive messages, port {software.spec['listen']}"
    return "; ".join(
        [f"sends {software.spec['use']}", *(flow_words(flow, rate_words(flow)) for flow in sent)]
    )


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    packets: list[tuple[float, int]] = []
    for flow in sent:
        count, size = expected_messages(flow), flow.payload.bytes
        if software.spec["use"] == "stream":  # at worst, each segment is acknowledged alone
            packets += [(count, TCP_HEADERS_BYTES + size), (count, TCP_HEADERS_BYTES)]
        else:
            packets.append((_COPIES[software.spec["use"]] * count, UDP_HEADERS_BYTES + size))
        if probe_ns := software.spec["probe_every_ns"]:  # the receiver returns each probe
            probes = (flow.stop_ns - flow.start_ns) / probe_ns
            packets.append((2 * probes, UDP_HEADERS_BYTES + HEADER_BYTES))
    return Costs(_MEMORY_BYTES, peers=len(software.spec["to"]), packets=tuple(packets))


def _binds(model: Adaptive) -> Sequence[Bind]:
    port = model.adaptive.listen
    return [] if port is None else [Bind(one, port, ("adaptive", "listen")) for one in ("tcp", "udp")]


KIND = Kind(
    name="adaptive",
    key="adaptive",
    model=Adaptive,
    what="one side of adaptive messages",
    example="adaptive: {listen: 7100}",
    check=_check,
    plan=plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    binds=_binds,
    numbered=numbered,
    titles={
        "AdaptiveOptions": "software.NAME.adaptive: messages whose sender adapts to its path",
        "Messages": "adaptive's push",
        "Policy": "adaptive's policy",
    },
)
