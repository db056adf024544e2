"""Compares the plan, manifest, proof and events of a run with one another."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture import trials
from capture.conservation.check import Compared, Found, Rule
from capture.conservation.evidence import Evidence
from contract.manifest import COMPLETE
from contract.plan import WAYS, Impairment
from contract.proof import Proven
from contract.verdict import HOLDS

EVENTS_PLANNED = Rule(
    "events-planned", "the events that were applied", "those of the plan",
    "raw/events.jsonl is incomplete: effects of events are assigned to wrong times, or missing",
)  # fmt: skip
PHASES_PLANNED = Rule(
    "phases-planned", "the times of ramp and hold", "those of the plan",
    "figures of the hold refer to another time: the manifest is damaged, repeat the run",
)  # fmt: skip
PROOF_PLANNED = Rule(
    "proof-planned", "the values with which the proof compared links", "the requested values of the plan",
    "the proof belongs to another lab, or was changed: repeat the run",
)  # fmt: skip
PROOF_WORDS = Rule(
    "proof-words", "proofs with the verdict `holds`", "those with an interval within the tolerance",
    "proof.json was changed: `vnet verify`, or repeat the run",
)  # fmt: skip
FLOW_NAMES = Rule(
    "flow-names",
    "the number of different names of flows",
    "the number of flows",
    "figures of one name belong to two flows: the plan is damaged",
    singular=True,
)
# The lab lists events that are later than this in deadlines_missed (orchestrator.lab.timeline)
LATE_NS = 100_000_000
BY_HAND = "live: "  # the label of a change that the user made by hand begins with this
# the lab records this action when it begins to replay a link's trace; the plan has no such event
PLAYED = "trace"
BILLION = 10**9
# The quantities of a proof, each with the field of the plan, a factor, and the unit in which they are
# compared.
QUANTITIES = {
    "delay": ("delay_ns", 1, "ns"), "jitter": ("jitter_ns", 1, "ns"), "rate": ("rate_bps", 1, "bit/s"),
    "loss": ("loss", BILLION, "of a billion"), "duplicate": ("duplicate", BILLION, "of a billion"),
    "corrupt": ("corrupt", BILLION, "of a billion"),
}  # fmt: skip
ROUNDING = 1e-6


def events_are_planned(e: Evidence) -> Found:
    """Checks, for a complete run, that the recorded and the carried out events are as many as planned, that
    no event was early, and that as many were over 100 ms late as the lab reported. Live changes and starts of
    traces do not count.
    """
    if e.manifest.state != COMPLETE or not e.manifest.phases:
        return Found(left_out=["the run has not ended"])
    planned = len(e.plan.events)
    if e.events is None:
        return Found([Compared("events", 0, planned, "events")])
    other = pl.col("label").str.starts_with(BY_HAND).fill_null(False) | (pl.col("action") == PLAYED)
    rows = e.events.filter(~other)
    late = (pl.col("t_ns") - pl.col("planned_ns")) > LATE_NS
    missed = len(e.manifest.deadlines_missed)
    early = pl.col("t_ns") < pl.col("planned_ns")
    return Found([
        Compared("events", rows.height, planned, "events"),
        Compared("carried out", rows.filter("ok").height, planned, "events"),
        Compared("late", rows.filter(late).height, missed, "events"),
        Compared("before their time", rows.filter(early).height, 0, "events"),
    ])  # fmt: skip


def phases_are_planned(e: Evidence) -> Found:
    """Checks, for a complete run, that ramp and hold last as planned, that the phases follow each other, and
    that the ramp begins at the manifest's t0_ns. Compares nothing in runs with trials, because trials
    determine the hold.
    """
    phases = e.manifest.phases
    if e.manifest.state != COMPLETE or not {"ramp", "hold", "drain"} <= phases.keys():
        return Found(left_out=["the run has not ended"])
    if trials.planned(e.plan):
        return Found()
    ramp, hold, drain = (phases[name] for name in ("ramp", "hold", "drain"))
    return Found([
        Compared("ramp", ramp[1] - ramp[0], e.plan.ramp_ns, "ns"),
        Compared("hold", hold[1] - hold[0], e.plan.hold_ns, "ns"),
        Compared("the hold's begin", hold[0], ramp[1], "ns"),
        Compared("the drain's begin", drain[0], hold[1], "ns"),
        Compared("the beginning", ramp[0], int(e.manifest.t0_ns or 0), "ns"),
    ])  # fmt: skip


def proof_is_of_plan(e: Evidence) -> Found:
    """Checks that the delay, jitter, rate, loss, duplication and corruption that the link proof was measured
    against are those of the plan. Leaves out links with traces, bursty loss (gemodel), or delays with
    slots.
    """
    if not (proof := e.proof):
        return Found(left_out=["no link was proven"])
    asked = {
        (link.name, way): link.way(way).impairment
        for link in e.plan.links
        for way in WAYS
        if link.way(way).trace is None
    }
    compared = list(_asked(proof, asked))
    return Found(compared, [] if compared else ["no link has a quantity that the plan names"])


def _asked(proof: list[Proven], asked: dict[tuple[str, str], Impairment]) -> Iterator[Compared]:
    for one in proof:
        of = asked.get((one.link, one.direction))
        name, times, unit = QUANTITIES.get(one.quantity, ("", 1, ""))
        if of is None or not name or (name == "loss" and of.gemodel) or (name == "delay_ns" and of.slot):
            continue
        wanted = round(float(getattr(of, name) or 0) * times)
        yield Compared(one.name, round(one.requested * times), wanted, unit, round(wanted * ROUNDING))


def proof_words_are_intervals(e: Evidence) -> Found:
    """Checks that each proof with the verdict "holds" has its interval within its tolerance, and around the
    measured value. A proof with another verdict need not satisfy this.

    Left out are proofs without an interval or a tolerance, proofs of distributions, and proofs by earlier
    rules, which had no `directions`.
    """
    known = [(one, _within(one)) for one in e.proof if one.directions and one.quantity != "distribution"]
    told = [(one, within) for one, within in known if within is not None]
    if not told:
        return Found(left_out=["no proof has an interval and a tolerance"])
    holding = [within for one, within in told if one.verdict == HOLDS]
    return Found([Compared("proofs", len(holding), sum(holding), "proofs")])


def _within(one: Proven) -> bool | None:
    """Returns True if the interval contains the measured value and lies within the tolerance plus the
    machine's own share around the expected value; None without interval, tolerance or measured value.
    """
    if one.tolerance is None or one.low is None or one.high is None or one.measured is None:
        return None
    reach = (one.tolerance + (one.machine or 0)) * (1 + ROUNDING)
    expected, rounding = one.expected, ROUNDING * abs(one.high)
    inside = one.low - rounding <= one.measured <= one.high + rounding
    return inside and expected - reach <= one.low and one.high <= expected + reach


def names_are_flows(e: Evidence) -> Found:
    """Checks that no two flows of the plan have the same name."""
    names = [flow.name for flow in e.plan.flows]
    return Found([Compared("names", len(set(names)), len(names), "flows")] if names else [])
