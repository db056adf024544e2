"""How far a lab or run is: a value folded from its events, and the words for it; no output, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

COUNTED = ("scheduled", "sent", "settled", "received")
TIMED = ("ramp", "hold")  # phases whose length the plan fixes
NS = 1_000_000_000


@dataclass(frozen=True)
class PhaseState:
    """One phase as far as it is known; times are seconds since the command began."""

    name: str
    started_s: float
    done: float = 0
    total: float = 0
    text: str = ""
    ended_s: float | None = None


@dataclass(frozen=True)
class Progress:
    """Everything a progress display shows."""

    length_s: Mapping[str, float] = field(default_factory=dict)  # of timed phases, from the plan
    phases: tuple[PhaseState, ...] = ()
    sessions: tuple[int, int] | None = None  # connected, total
    messages: Mapping[str, int] = field(default_factory=dict)  # those of COUNTED that are known
    warnings: tuple[str, ...] = ()
    happened: tuple[str, ...] = ()  # timeline events as applied
    virtual: bool = False  # the lab's clock is not ours: timed phases tell how far they are

    @property
    def current(self) -> PhaseState | None:
        """The phase under way."""
        return self.phases[-1] if self.phases and self.phases[-1].ended_s is None else None


def planned(plan: Any, time: str = "real") -> Progress:
    """The progress of a run that has not begun; `plan` is a Plan."""
    length_s = {"ramp": plan.ramp_ns / NS, "hold": plan.hold_ns / NS}
    return Progress(length_s=length_s, virtual=time == "virtual")


def fold(progress: Progress, event: Mapping[str, Any], now_s: float) -> Progress:
    """The progress after one event; kinds that say nothing about progress leave it as it was."""
    kind = event.get("event")
    if kind == "phase":
        return _counted(_phase(progress, event, now_s), event)
    if kind == "sessions":
        return replace(progress, sessions=(int(event.get("connected", 0)), int(event.get("total", 0))))
    if kind in ("pending", "messages"):
        return replace(progress, messages=_messages(event))
    if kind == "warning":
        return replace(progress, warnings=(*progress.warnings, warning_text(event)))
    if kind == "event":
        return replace(progress, happened=(*progress.happened, event_text(event)))
    if kind == "end":
        return replace(progress, phases=_closed(progress.phases, now_s))
    return progress


def _counted(progress: Progress, event: Mapping[str, Any]) -> Progress:
    """Sessions and messages that came with a phase event."""
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
    said = "" if event.get("messages") else str(event.get("text") or "")  # else it repeats the counts
    # The progress of timed phases is the time, which the display shows anyway where it is ours.
    timed = name in (*TIMED, "drain") and not (progress.virtual and name in TIMED)
    done, total = (0, 0) if timed else (event.get("done") or 0, event.get("total") or 0)
    current = progress.current
    if current and current.name == name:
        return replace(
            progress, phases=(*progress.phases[:-1], replace(current, done=done, total=total, text=said))
        )
    return replace(
        progress, phases=(*_closed(progress.phases, now_s), PhaseState(name, now_s, done, total, said))
    )


def _closed(phases: tuple[PhaseState, ...], now_s: float) -> tuple[PhaseState, ...]:
    if not phases or phases[-1].ended_s is not None:
        return phases
    return (*phases[:-1], replace(phases[-1], ended_s=now_s))


def left_s(progress: Progress, now_s: float) -> float | None:
    """Seconds until the hold ends (what follows is short); None where nothing is timed or it has ended."""
    begun = {phase.name: phase for phase in progress.phases}
    if progress.virtual:
        return _left_virtual_s(progress, now_s)
    if any(name not in (*TIMED, *SETUP) for name in begun) or not any(progress.length_s.values()):
        return None
    left = 0.0
    for name in TIMED:
        length = progress.length_s.get(name, 0.0)
        phase = begun.get(name)
        if phase is None:
            left += length
        elif phase.ended_s is None:
            left += max(0.0, length - (now_s - phase.started_s))
    return left


def _left_virtual_s(progress: Progress, now_s: float) -> float | None:
    """From how fast the lab's clock has run in the phase under way; None where that is not known yet."""
    phase = progress.current
    if phase is None or phase.name not in TIMED or phase.done < 1:
        return None
    speed = phase.done / max(now_s - phase.started_s, 1e-3)
    later = TIMED[TIMED.index(phase.name) + 1 :]
    rest = phase.total - phase.done + sum(progress.length_s.get(name, 0.0) for name in later)
    return rest / speed


SETUP = ("create", "network", "configure", "impair", "prove", "software")


def share(phase: PhaseState, progress: Progress, now_s: float) -> float | None:
    """Part of a phase that is done, in [0, 1]; None where that cannot be known."""
    length = progress.length_s.get(phase.name, 0.0)
    if length > 0 and not progress.virtual:
        return min(1.0, (now_s - phase.started_s) / length)
    return min(1.0, phase.done / phase.total) if phase.total else None


def counts(phase: PhaseState) -> str:
    """`12/350` where the phase counts something (in virtual time: seconds of the lab) and has begun to."""
    return f"{phase.done:g}/{phase.total:g}" if phase.total and phase.done else ""


def traffic(progress: Progress) -> str:
    """Sessions and messages in words, as far as known, while they move."""
    if progress.current is None or progress.current.name not in (*TIMED, "drain"):
        return ""
    said = []
    if progress.sessions and progress.sessions[1]:
        said.append(f"sessions {progress.sessions[0]}/{progress.sessions[1]}")
    if any(progress.messages.values()):
        names = ("sent", "settled", "received")
        shown = {name: progress.messages[name] for name in names if name in progress.messages}
        said += [f"{value:,} {name}".replace(",", " ") for name, value in shown.items()]
    return ", ".join(said)


def duration(seconds: float) -> str:
    """`0.4 s`, `48 s`, `12 min 05 s`, `3 h 07 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def signal_text(event: Mapping[str, Any]) -> str:
    """What Ctrl-C does now, and what the next one would do."""
    if event.get("press", 1) == 1:
        return "interrupting: tearing down, keeping what was measured (again: end it hard)"
    return "ended hard; removing what is left"


def warning_text(event: Mapping[str, Any]) -> str:
    """A warning with its remedy."""
    remedy = f"; {event['remedy']}" if event.get("remedy") else ""
    return f"{event.get('text', event.get('code', ''))}{remedy}"


def event_text(event: Mapping[str, Any]) -> str:
    """A timeline event as applied: its label, else action and targets."""
    targets = event.get("targets") or []
    shown = ", ".join(targets[:3]) + (f" and {len(targets) - 3} more" if len(targets) > 3 else "")
    text = str(event.get("label") or f"{event.get('action', '')} {shown}".strip())
    return text if event.get("ok", True) else f"{text}: failed: {event.get('error', '')}"
