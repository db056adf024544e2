"""Reads the moments of `--pause-at`: of a phase, or of an event of the timeline."""

from __future__ import annotations

from collections.abc import Iterable

from contract.plan import Plan
from orchestrator.lab.pauses import Pause
from orchestrator.language.scalars import moment
from orchestrator.language.units import UnitError

SHOWN = 5


class PauseError(ValueError):
    """Raised for a moment that cannot be understood; the text gives the value, the rule and the remedy."""


def pauses_of(texts: Iterable[str], plan: Plan) -> list[Pause]:
    """Returns the pauses in the order of the texts. A text is a moment of a phase ("hold + 12 s"), or the
    label of events of the timeline, of which the first counts. Raises PauseError.
    """
    return [moment_of(text, plan) for text in texts]


def moment_of(text: str, plan: Plan) -> Pause:
    """Returns one moment, as `pauses_of` does."""
    labelled = [event for event in plan.events if event.label == text.strip()]
    if labelled:
        return Pause(labelled[0].phase, labelled[0].at_ns, f"event {text.strip()!r}")
    try:
        found = moment(text)
    except UnitError as error:
        labels = list(dict.fromkeys(event.label for event in plan.events))
        more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
        there = f"{', '.join(map(repr, labels[:SHOWN]))}{more}" if labels else "none"
        raise PauseError(
            f"--pause-at {text!r}: {error}; or the label of an event of the timeline: {there}"
        ) from error
    return Pause(found.phase, found.at_ns, text.strip())
