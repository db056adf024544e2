"""Defines the registry entry of middleware: its description for readers, its costs, and the ports and
programs that it uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ..accounting import numbered
from ..kind import TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES, Bind, Costs, Kind
from ..messages import flow_words
from ..sending import expected_messages, rate_words
from . import known
from .checks import check
from .file import PORTS, Middleware
from .planning import plan

# bytes of a Java machine besides its heap; with a heap of 128 MiB the sum was 117 to 160 MB
_MACHINE_BYTES = 80_000_000
_FASTEST_PER_S = 10_000  # messages/s of the fastest pair of libraries on a machine of two cores


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    title = f"{known.middleware()[spec['use']].title} with {known.serialisers()[spec['serialiser']].title}"
    side = f"listens on port {spec['listen']}" if spec["listen"] is not None else "connects"
    return "; ".join([f"{title}, {side}", *(flow_words(flow, rate_words(flow)) for flow in sent)])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """Returns the costs of one side. Packets are counted only for the object, since runs measure the overhead
    of the libraries.
    """
    to = max((len(one["to"]) for one in software.spec["accounts"]["sends"]), default=0)
    packets: list[tuple[float, int]] = []
    for flow in sent:
        messages = to * (expected_messages(flow) if flow.schedule is not None else _most(flow))
        for payload in (flow.payload, flow.reply):
            if payload is not None:
                count = messages * -(-payload.bytes // TCP_SEGMENT_BYTES)
                length = TCP_HEADERS_BYTES + min(payload.bytes, TCP_SEGMENT_BYTES)
                packets += [(count, length), (count, TCP_HEADERS_BYTES)]
    memory_bytes = software.spec["memory_bytes"] + _MACHINE_BYTES + software.spec["servers_bytes"]
    return Costs(memory_bytes, {}, 1, packets=tuple(packets))


def _most(flow: Flow) -> float:
    """Returns the greatest number of messages that a greedy flow can send."""
    return _FASTEST_PER_S * (flow.stop_ns - flow.start_ns) / 1e9


def _binds(model: Middleware) -> Sequence[Bind]:
    options = model.middleware
    if options.listen is not None:
        return [Bind("tcp", options.listen + more, ("middleware", "listen")) for more in range(PORTS)]
    return [Bind("tcp", options.call_back, ("middleware", "call_back"))] if options.subscribe else []


KIND = Kind(
    name="middleware",
    key="middleware",
    model=Middleware,
    what="one side of an exchange by middleware",
    example="middleware: {to: station, request: {rate: 10 /s}}",
    check=check,
    plan=plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    real_time="a Java machine computes for nothing there, and its computing is what is measured",
    binds=_binds,
    numbered=numbered,
    programs=(
        Program(
            "java",
            "openjdk-17-jre-headless",
            ("java", "--version"),
            "topologies with middleware fail when their nodes start",
        ),
    ),
    titles={
        "MiddlewareOptions": "software.NAME.middleware: one side of an exchange by middleware",
        "Ask": "middleware's request",
        "Give": "middleware's push and publish",
        "Greedy": "middleware's greedy",
    },
)
