"""An impairment as the text that `tc -batch` takes, and changes of single fields merged into one."""

from __future__ import annotations

import dataclasses
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.model import Impairment
from orchestrator.model.codec import build

FIELDS = {f.name for f in dataclasses.fields(Impairment)}


def merged(current: Impairment, changes: dict[str, Any], place: str) -> Impairment:
    """`current` with some fields replaced; LabError for an unknown field or a value out of range."""
    if unknown := changes.keys() - FIELDS:
        raise LabError(
            f"{place}: no such quantity: {', '.join(sorted(unknown))}; known: {', '.join(sorted(FIELDS))}"
        )
    changed = build(Impairment, {**dataclasses.asdict(current), **changes})
    for name in FIELDS - {"distribution", "gemodel"}:
        value = getattr(changed, name)
        highest = 1.0 if isinstance(value, float) else float("inf")
        if not 0 <= value <= highest:
            raise LabError(f"{place}.{name}: {value}: not between 0 and {highest:g}")
    if changed.jitter_ns and not changed.delay_ns:
        raise LabError(f"{place}.jitter: needs a delay to vary; give a delay of at least the jitter")
    if changed.present and not changed.limit_packets:
        raise LabError(f"{place}.limit: 0 packets: a queue that drops everything; give a limit")
    return changed


def netem(impairment: Impairment) -> str:
    """The options of a netem qdisc, zeros spelled out: a change keeps what is not named (sch_netem.c:
    netem_change).
    """
    i = impairment
    words = [f"limit {i.limit_packets}"]
    words.append(f"delay {_us(i.delay_ns)} {_us(i.jitter_ns)} {_percent(i.delay_correlation)}")
    if i.jitter_ns and i.distribution != "uniform":
        words.append(f"distribution {i.distribution}")
    if i.gemodel:
        words.append("loss gemodel " + " ".join(_percent(p) for p in i.gemodel))
    else:
        words.append(f"loss random {_percent(i.loss)} {_percent(i.loss_correlation)}")
    words.append(f"duplicate {_percent(i.duplicate)} {_percent(i.duplicate_correlation)}")
    words.append(f"corrupt {_percent(i.corrupt)} {_percent(i.corrupt_correlation)}")
    if i.delay_ns:  # tc refuses the word reorder where there is no delay
        words.append(f"reorder {_percent(i.reorder)} {_percent(i.reorder_correlation)}")
    words.append(f"rate {i.rate_bps}bit")
    return " ".join(words)


def change_text(device: str, before: Impairment, after: Impairment) -> str:
    """Lines for `tc -batch` that turn `before` into `after`; packets in the queue survive
    where the kernel allows.
    """
    if not after.present:
        return f"qdisc del dev {device} root\n" if before.present else ""
    line = f"qdisc replace dev {device} root netem {netem(after)}\n"
    # A distribution table and a reordering cannot be taken back by a change: the qdisc is made anew, its
    # queue is lost.
    stuck = before.distribution != after.distribution or (before.reorder > 0 and not after.delay_ns)
    return f"qdisc del dev {device} root\n{line}" if before.present and stuck else line


def _us(ns: int) -> str:
    return f"{ns // 1000}us"  # tc before 6.6 does not know ns, and cuts fractions


def _percent(share: float) -> str:
    return f"{100 * share:.10g}%"
