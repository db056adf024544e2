"""Estimates how long a command still takes, from lengths that the plan fixes and estimates of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.cli.progress import PhaseState, Progress

NS = 1_000_000_000
SETUP = ("create", "network", "configure", "impair", "prove", "software")
TIMED = ("ramp", "hold")  # the plan fixes their lengths
AFTER = ("drain", "collect", "teardown", "reduce", "report")
ORDER = (*SETUP, *TIMED, *AFTER)

# Seconds of each phase in labs of 2 to 22 nodes on a machine of two cores, measured in 2026.
BASE_S = {
    "create": 0.4, "network": 0.2, "configure": 0.3, "impair": 0.1, "prove": 2.5, "software": 0.4,
    "drain": 0.8, "collect": 0.6, "teardown": 0.5, "reduce": 1.5, "report": 4.0,
}  # fmt: skip
NODE_S = {"create": 0.01, "network": 0.005, "configure": 0.005, "software": 0.01, "teardown": 0.005}
MACHINE_S = 15.0  # boot of the virtual machines, which boot in parallel
CHANCE_S = 20.0  # longest additional time of proofs that need a narrow interval
ENOUGH = 0.1  # share of a count from which the rest is estimated
CHANCE = ("loss", "gemodel", "jitter_ns", "duplicate", "corrupt", "reorder")


def expected_s(plan: Any, last: str) -> dict[str, float]:
    """Estimates the seconds of each phase up to `last` whose length the plan does not fix; `plan`: a Plan."""
    found = {name: base + len(plan.nodes) * NODE_S.get(name, 0.0) for name, base in BASE_S.items()}
    if any(node.kind == "vm" for node in plan.nodes):
        found["create"] += MACHINE_S
    if _by_chance(plan):
        found["prove"] += min(CHANCE_S, (plan.proof.at_most_ns or CHANCE_S * NS) / NS)
    return {name: found[name] for name in ORDER[: ORDER.index(last) + 1] if name in found}


def _by_chance(plan: Any) -> bool:
    """Whether a link of the plan drops, delays or alters packets at random."""
    ways = [way for link in plan.links for way in (link.forward, link.reverse) if way is not None]
    return any(getattr(way.impairment, name) for way in ways for name in CHANCE)


def left_s(progress: Progress, now_s: float) -> float | None:
    """Estimates the seconds until the command ends; None if no length is known yet.

    The estimate decreases during a phase, also if the phase takes longer than expected.
    """
    known = [phase for phase in progress.phases if phase.name in ORDER]
    lengths = {**progress.expected_s, **progress.length_s}
    if not known or not any(lengths.values()):
        return None
    current = known[-1]
    speed = _speed(progress, known)
    left = 0.0
    for name in ORDER[ORDER.index(current.name) :]:
        if progress.virtual and name in TIMED and speed is None:
            return None  # the speed of the lab's clock is unknown before the ramp
        length = lengths.get(name, 0.0) / (speed or 1.0 if name in TIMED else 1.0)
        left += length if name != current.name else _rest_s(current, length, name in TIMED, now_s)
    return left


def _speed(progress: Progress, known: list[PhaseState]) -> float | None:
    """Returns how many seconds of the lab pass in one of the wall clock; 1 in real time, None if unknown."""
    if not progress.virtual:
        return 1.0
    for phase in reversed(known):
        if phase.name in TIMED and phase.done >= 1:
            return phase.done / max(phase.counted_s - phase.started_s, 1e-3)
    return None


def _rest_s(phase: PhaseState, length_s: float, timed: bool, now_s: float) -> float:
    """Estimates the remaining seconds of a phase: by its count if that is large enough, else its length."""
    if phase.ended_s is not None:
        return 0.0
    if timed and not phase.done:
        return max(0.0, length_s - (now_s - phase.started_s))
    since_s = phase.started_s
    if phase.total and phase.done >= ENOUGH * phase.total:
        length_s = (phase.counted_s - phase.started_s) * (phase.total - phase.done) / phase.done
        since_s = phase.counted_s
    return _falling(length_s, now_s - since_s)


def _falling(expected_s: float, passed_s: float) -> float:
    """Returns the remaining seconds by an estimate: all of it at first, half of it when that time has passed.

    The result never reaches zero, because the phase has not ended.
    """
    return expected_s**2 / (expected_s + passed_s) if expected_s > 0 else 0.0


def left_words(progress: Progress, now_s: float) -> str:
    """Returns the time left in words, `about 36 s left`; empty if it is not known."""
    left = left_s(progress, now_s)
    if left is None or left <= 0:
        return ""
    return f"about {_about(left)} left"


def _about(seconds: float) -> str:
    """Returns a duration in words without tenths, at least 1 s: `4 s`, `2 min 10 s`, `3 h 07 min`."""
    from orchestrator.cli.progress import duration

    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 10 else duration(whole)
