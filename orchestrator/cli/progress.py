"""Computes the progress of a lab or run from its events, estimates the time left, and formats both as text;
prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

NS = 1_000_000_000
SETUP = ("create", "network", "configure", "impair", "prove", "software")
TIMED = ("ramp", "hold")  # phases whose lengths the plan fixes
AFTER = ("drain", "collect", "teardown", "reduce", "report")
ORDER = (*SETUP, *TIMED, *AFTER)

# Seconds that each phase took in labs of 2 to 22 nodes on a machine of two cores, measured in 2026.
BASE_S = {
    "create": 0.4, "network": 0.2, "configure": 0.3, "impair": 0.1, "prove": 2.5, "software": 0.4,
    "drain": 0.8, "collect": 0.6, "teardown": 0.5, "reduce": 1.5, "report": 4.0,
}  # fmt: skip
NODE_S = {"create": 0.01, "network": 0.005, "configure": 0.005, "software": 0.01, "teardown": 0.005}
MACHINE_S = 15.0  # s for the boot of virtual machines, which boot in parallel
CHANCE_S = 20.0  # longest additional time in s of proofs that need a narrow interval
ENOUGH = 0.1  # share of a count from which the remaining time is estimated
CHANCE = ("loss", "gemodel", "jitter_ns", "duplicate", "corrupt", "reorder")
COUNTED = ("scheduled", "sent", "settled", "received")


@dataclass(frozen=True)
class PhaseState:
    """One phase of a run; times are seconds since the command began.

    done, total: its count; total is 0 if it has none. ended_s: None while the phase lasts. counted_s: the
    time when `done` last grew.
    """

    name: str
    started_s: float
    done: float = 0
    total: float = 0
    text: str = ""
    ended_s: float | None = None
    counted_s: float = 0.0


@dataclass(frozen=True)
class Progress:
    """The state of a lab or run that a progress display shows."""

    # phase -> its length, for phases whose length the plan fixes
    length_s: Mapping[str, float] = field(default_factory=dict)
    # phase -> its estimated length, for the others
    expected_s: Mapping[str, float] = field(default_factory=dict)
    phases: tuple[PhaseState, ...] = ()
    sessions: tuple[int, int] | None = None  # connected, total
    # name -> number, for the known counts among COUNTED
    messages: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    happened: tuple[str, ...] = ()  # timeline events as applied
    virtual: bool = False  # in virtual time, `done` of a timed phase counts the lab's seconds

    @property
    def current(self) -> PhaseState | None:
        """The present phase; None before the first one and after the end of the last one."""
        return self.phases[-1] if self.phases and self.phases[-1].ended_s is None else None


def timed(plan: Any, time: str = "real") -> Progress:
    """Returns the progress of a run that has not begun, with the lengths of ramp and hold of the plan, and
    without estimates of the other phases.
    """
    length_s = {"ramp": plan.ramp_ns / NS, "hold": plan.hold_ns / NS}
    return Progress(length_s=length_s, virtual=time == "virtual")


def planned(plan: Any, time: str = "real", last: str = "report") -> Progress:
    """Returns the progress of a run that has not begun, with the lengths of ramp and hold and estimates of
    the other phases up to `last`; `plan`: a Plan.
    """
    return replace(timed(plan, time), expected_s=expected_s(plan, last))


def rising(plan: Any) -> Progress:
    """Returns the progress of a lab that will come up without a run, with estimates of its phases; `plan`: a
    Plan.
    """
    return Progress(expected_s=expected_s(plan, SETUP[-1]))


def fold(progress: Progress, event: Mapping[str, Any], now_s: float) -> Progress:
    """Returns the progress after an event at `now_s`; an event of an unknown kind leaves it unchanged."""
    kind = event.get("event")
    if kind == "phase":
        return _counted(_phase(progress, event, now_s), event)
    if kind == "sessions":
        return replace(progress, sessions=(int(event.get("connected", 0)), int(event.get("total", 0))))
    if kind in ("pending", "messages"):
        return replace(progress, messages=_messages(event))
    if kind == "warning":
        return replace(progress, warnings=(*progress.warnings, warning_text(event)))
    if kind == "error":
        return replace(progress, errors=(*progress.errors, str(event.get("text", ""))))
    if kind == "event":
        return replace(progress, happened=(*progress.happened, event_text(event)))
    if kind == "end":
        return replace(progress, phases=_closed(progress.phases, now_s))
    return progress


def _counted(progress: Progress, event: Mapping[str, Any]) -> Progress:
    """Returns the progress with the numbers of sessions and messages of a phase event, if it has them."""
    sessions, messages = event.get("sessions"), event.get("messages")
    if sessions:
        progress = replace(
            progress, sessions=(int(sessions.get("connected", 0)), int(sessions.get("total", 0)))
        )
    return replace(progress, messages=_messages(messages)) if messages else progress


def _messages(event: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(event[name]) for name in COUNTED if event.get(name) is not None}


def _phase(progress: Progress, event: Mapping[str, Any], now_s: float) -> Progress:
    name = str(event["phase"])
    # the text would repeat the counts beside it
    text = "" if event.get("messages") else str(event.get("text") or "")
    # In real time the display computes the share of a timed phase by the clock, and needs no count.
    by_clock = name in (*TIMED, "drain") and not (progress.virtual and name in TIMED)
    done, total = (0, 0) if by_clock else (event.get("done") or 0, event.get("total") or 0)
    current = progress.current
    if current is None or current.name != name:
        begun = PhaseState(name, now_s, done, total, text, counted_s=now_s)
        return replace(progress, phases=(*_closed(progress.phases, now_s), begun))
    counted_s = now_s if done > current.done else current.counted_s
    grown = replace(current, done=done, total=total, text=text, counted_s=counted_s)
    return replace(progress, phases=(*progress.phases[:-1], grown))


def _closed(phases: tuple[PhaseState, ...], now_s: float) -> tuple[PhaseState, ...]:
    if not phases or phases[-1].ended_s is not None:
        return phases
    return (*phases[:-1], replace(phases[-1], ended_s=now_s))


def share(phase: PhaseState, progress: Progress, now_s: float) -> float | None:
    """Returns the share of a phase that is done, 0 to 1. In real time it is computed from the clock for ramp
    and hold, else from the count; None without a count.
    """
    length = progress.length_s.get(phase.name, 0.0)
    if length > 0 and not progress.virtual:
        return min(1.0, (now_s - phase.started_s) / length)
    return min(1.0, phase.done / phase.total) if phase.total else None


def counts(phase: PhaseState) -> str:
    """Returns the count of a phase, such as `12/350`; empty if it has no total or has counted nothing. In
    virtual time, a timed phase counts the lab's seconds.
    """
    return f"{phase.done:g}/{phase.total:g}" if phase.total and phase.done else ""


def traffic(progress: Progress) -> str:
    """Returns the numbers of sessions and messages in words; empty except from the ramp to the drain."""
    if progress.current is None or progress.current.name not in (*TIMED, "drain"):
        return ""
    said = []
    if progress.sessions and progress.sessions[1]:
        said.append(f"sessions {progress.sessions[0]}/{progress.sessions[1]}")
    if any(progress.messages.values()):
        # This counts the arrival of each message at each receiver and of each reply, unlike the tables'
        # messages received.
        names = {"sent": "sent", "settled": "settled", "received": "arrivals"}
        shown = {word: progress.messages[one] for one, word in names.items() if one in progress.messages}
        said += [f"{value:,} {word}".replace(",", " ") for word, value in shown.items()]
    return ", ".join(said)


def duration(seconds: float) -> str:
    """Returns a duration in words: `0.4 s`, `48 s`, `12 min 05 s`, `3 h 07 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def line(before: Progress, after: Progress, event: Mapping[str, Any], now_s: float) -> str:
    """Returns the line for an event that changes `before` to `after`: a warning, signal, error, timeline
    event or new phase; empty for other events.
    """
    kind = event.get("event")
    if kind == "warning":
        return f"{warning_word(event)}: {warning_text(event)}"
    if kind == "signal":
        return signal_text(event)
    if kind == "error":
        return f"error: {event.get('text', '')}"
    if len(after.happened) > len(before.happened):
        return f"event: {after.happened[-1]}"
    return status(after, now_s) if len(after.phases) > len(before.phases) else ""


def status(progress: Progress, now_s: float) -> str:
    """Returns a line on the current phase: its name, count and text, the traffic and the time left; empty
    without a current phase.
    """
    phase = progress.current
    if phase is None:
        return ""
    parts = [phase.name, counts(phase), phase.text, traffic(progress), left_words(progress, now_s)]
    return "  ".join(part for part in parts if part)


def signal_text(event: Mapping[str, Any]) -> str:
    """Returns a sentence on the effect of the event's Ctrl-C: the first tears the lab down, a later one stops
    it at once.
    """
    if event.get("press", 1) == 1:
        return "interrupting: the lab is torn down, measurements are kept (Ctrl-C again: stop at once)"
    return "stopped at once; removing the rest of the lab"


def warning_word(event: Mapping[str, Any]) -> str:
    """Returns `note` for a warning that does not affect the run's figures, else `warning`."""
    return "warning" if event.get("suspect", True) else "note"


def warning_text(event: Mapping[str, Any]) -> str:
    """Returns the text of a warning, else its code, with its remedy if there is one."""
    remedy = f"; {event['remedy']}" if event.get("remedy") else ""
    return f"{event.get('text', event.get('code', ''))}{remedy}"


def event_text(event: Mapping[str, Any]) -> str:
    """Returns a timeline event in words: its label, else its action and up to three targets; also its error
    if it failed.
    """
    targets = event.get("targets") or []
    shown = ", ".join(targets[:3]) + (f" and {len(targets) - 3} more" if len(targets) > 3 else "")
    text = str(event.get("label") or f"{event.get('action', '')} {shown}".strip())
    return text if event.get("ok", True) else f"{text}: failed: {event.get('error', '')}"


def expected_s(plan: Any, last: str) -> dict[str, float]:
    """Estimates the seconds of each phase up to `last` whose length the plan does not fix; `plan`: a Plan."""
    found = {name: base + len(plan.nodes) * NODE_S.get(name, 0.0) for name, base in BASE_S.items()}
    if any(node.kind == "vm" for node in plan.nodes):
        found["create"] += MACHINE_S
    if _by_chance(plan):
        found["prove"] += min(CHANCE_S, (plan.proof.at_most_ns or CHANCE_S * NS) / NS)
    return {name: found[name] for name in ORDER[: ORDER.index(last) + 1] if name in found}


def _by_chance(plan: Any) -> bool:
    """Returns whether a link of the plan drops, delays or alters packets at random."""
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
            return None  # the speed of the lab's clock is not known before the ramp
        length = lengths.get(name, 0.0) / (speed or 1.0 if name in TIMED else 1.0)
        left += length if name != current.name else _rest_s(current, length, name in TIMED, now_s)
    return left


def _speed(progress: Progress, known: list[PhaseState]) -> float | None:
    """Returns how many seconds of the lab's clock pass in one second of the wall clock; 1 in real time, None
    if unknown.
    """
    if not progress.virtual:
        return 1.0
    for phase in reversed(known):
        if phase.name in TIMED and phase.done >= 1:
            return phase.done / max(phase.counted_s - phase.started_s, 1e-3)
    return None


def _rest_s(phase: PhaseState, length_s: float, timed: bool, now_s: float) -> float:
    """Estimates the remaining seconds of a phase: by its count once that is at least ENOUGH of the total,
    else by its length.
    """
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
    """Returns the remaining seconds, from an estimate for the phase: all of it at first, half of it when that
    time has passed.

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
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 10 else duration(whole)
