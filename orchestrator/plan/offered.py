"""Predicts the traffic that senders offer by the clock: frames a second and bits a second."""

from __future__ import annotations

from collections.abc import Iterator

from contract.plan import Plan, Prediction

from ..software.registry import KINDS


def offered(plan: Plan) -> Iterator[Prediction]:
    """Yields the frames and bits a second of all flows with a schedule together, each on average from its
    start to its stop; nothing if no kind of theirs counts frames.

    Frames are counted as kinds price them (`Costs.packets`): of datagrams exactly, of protocols over TCP at
    worst, each segment acknowledged by itself; each frame once, wherever it goes on to; without the preamble,
    checksum and gap of Ethernet.
    """
    senders = {s.session.endpoint: s for node in plan.nodes for s in node.software if s.session is not None}
    frames = bits = 0.0
    for flow in plan.flows:
        seconds = (flow.stop_ns - flow.start_ns) / 1e9
        if flow.schedule is None or flow.sender not in senders or seconds <= 0:
            continue
        software = senders[flow.sender]
        for count, length in KINDS[software.kind].costs(software, [flow]).packets:
            frames += count / seconds
            bits += 8 * count * length / seconds
    if frames:
        yield Prediction("offered frames", "senders", frames, "frames/s")
        yield Prediction("offered load", "senders", bits, "bit/s")
