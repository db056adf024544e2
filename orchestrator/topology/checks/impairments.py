"""Checks impairments for combinations that netem refuses or silently ignores."""

from __future__ import annotations

from contract.plan.network import REACH

from ...language.source import Path
from ...language.units import text_ns
from ..impairments import Impairment, Slot
from .report import Report

# ns; tc before 6.6 truncates fractions of a microsecond, and counts ticks of 64 ns in 32 bits.
FINEST_DELAY_NS = 1000
LONGEST_DELAY_NS = 274 * 10**9

# Correlation -> the quantity whose draws it correlates, without which it has no meaning.
_CORRELATED = {
    "delay_correlation": "jitter",
    "loss_correlation": "loss",
    "duplicate_correlation": "duplicate",
    "corrupt_correlation": "corrupt",
    "reorder_correlation": "reorder",
}


def check(report: Report) -> None:
    """Checks every impairment of links, half-duplex segments and timeline events."""
    for name, segment in report.model.segments.items():
        one(report, segment.medium, ("segments", name, "medium"))
    for name, link in report.model.links.items():
        for side in ("forward", "reverse", "both"):
            one(report, getattr(link, side), ("links", name, side))
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        for side in ("forward", "reverse", "both"):
            one(report, getattr(event, side), ("timeline", index, side))


def one(report: Report, impairment: Impairment | None, path: Path) -> None:
    """Reports mistakes in the impairment of one direction: times that tc cannot set, negative delays,
    correlations of 100 % or without a value to correlate, two loss models, a rate of 0, a distribution
    without jitter, reordering without a delay, and slots and backpressure that do not fit. Checks nothing for
    None.
    """
    if impairment is None:
        return
    _delay(report, impairment, path)
    if impairment.slot is not None:
        _slot(report, impairment.slot, (*path, "slot"))
    if impairment.backpressure:
        _backpressure(report, impairment, path)
    for key, subject in _CORRELATED.items():
        if getattr(impairment, key) == 1:
            rule = "would repeat its first draw for ever: every packet the same"
            report.add((*path, key), "100 %", rule, "write less")
        if getattr(impairment, key) and not getattr(impairment, subject):
            report.add(
                (*path, key), None, f"correlates {subject}, but there is none", f"write `{subject}:` too"
            )
    if impairment.gilbert_elliott is not None and (impairment.loss or impairment.loss_correlation):
        remedy = "keep one of the two loss models"
        report.add(
            (*path, "gilbert_elliott"), None, "conflicts with `loss`; netem has one loss model", remedy
        )
    if impairment.rate == 0:
        report.add((*path, "rate"), "0", "would never send a packet", "use link-down, or leave `rate` out")


# netem applies these, and removes packets from their sockets' account (skb_orphan_partial in netem_enqueue).
_NETEMS = ("delay", "jitter", "loss", "gilbert_elliott", "duplicate", "corrupt", "reorder", "slot")


def _backpressure(report: Report, impairment: Impairment, path: Path) -> None:
    beside = [key for key in _NETEMS if getattr(impairment, key)]
    states = impairment.trace.trace.states if impairment.trace is not None else ()
    if any(state.delay_ns is not None or state.loss is not None for state in states):
        beside.append("trace")
    if impairment.rate is None and not any(state.rate_bps is not None for state in states):
        report.add((*path, "backpressure"), None, "needs a rate that packets wait for", "write `rate:` too")
    if beside:
        rule = f"conflicts with {beside[0]}: a packet that is delayed or lost no longer counts to its socket"
        report.add((*path, "backpressure"), None, rule, f"leave out `backpressure` or `{beside[0]}`")


def _slot(report: Report, slot: Slot, path: Path) -> None:
    if slot.delays is not None:
        for key in (key for key in ("min", "max") if getattr(slot, key) is not None):
            report.add(
                (*path, key), None, "conflicts with `delays`, whose file has it", "keep one of the two"
            )
        return
    if slot.min is None:
        report.add((*path, "min"), None, "is missing", "write `min:`, or `delays: FILE`")
        return
    longest = slot.max if slot.max is not None else slot.min
    for key, value in (("min", slot.min), ("max", slot.max or 0)):
        if value % FINEST_DELAY_NS:
            rule = f"is finer than {text_ns(FINEST_DELAY_NS)}, the finest that tc can set"
            report.add((*path, key), text_ns(value), rule, "write whole microseconds")
        if value > LONGEST_DELAY_NS:
            rule = f"is more than {text_ns(LONGEST_DELAY_NS)}, the longest that tc can set"
            report.add((*path, key), text_ns(value), rule, "write less")
    if longest < slot.min:
        report.add((*path, "max"), text_ns(longest), f"is less than min, {text_ns(slot.min)}", "raise it")
    if not longest:
        report.add((*path, "min"), "0 s", "makes no slots: all packets go at once", "leave `slot` out")


def _delay(report: Report, impairment: Impairment, path: Path) -> None:
    delay, jitter = impairment.delay, impairment.jitter
    for key, value in (("delay", delay), ("jitter", jitter)):
        if value % FINEST_DELAY_NS:
            rule = f"is finer than {text_ns(FINEST_DELAY_NS)}, the finest that tc can set"
            report.add((*path, key), text_ns(value), rule, "write whole microseconds")
    if delay > LONGEST_DELAY_NS:
        rule = f"is more than {text_ns(LONGEST_DELAY_NS)}, the longest delay that tc can set"
        report.add((*path, "delay"), text_ns(delay), rule, "write a shorter one")
    reach = REACH.get(impairment.distribution, 0)  # 0 for a file of delays, which cannot be negative
    if jitter > delay and reach:
        rule = f"is more than the delay, {text_ns(delay)}; a packet cannot leave before it came"
        report.add((*path, "jitter"), text_ns(jitter), rule, "raise the delay or lower the jitter")
    elif jitter * reach > delay:
        shape = impairment.distribution
        rule = f"gives negative delays: {shape} reaches {reach:g} jitters below the delay, {text_ns(delay)}"
        remedy = f"write at most {text_ns(int(delay / reach) // 1000 * 1000)}, or `delays: FILE`"
        report.add((*path, "jitter"), text_ns(jitter), rule, remedy)
    if impairment.distribution != "uniform" and not jitter:
        report.add(
            (*path, "distribution"),
            impairment.distribution,
            "shapes a jitter, which is not set",
            "write `jitter:`",
        )
    if impairment.reorder and not delay:
        rule = "reorder without delay: nothing is waiting that a packet could overtake"
        report.add((*path, "reorder"), None, rule, 'write for example `delay: "10 ms"` too')
