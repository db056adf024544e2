"""Actions of timeline events: the model's field, and the key in files."""

from __future__ import annotations

from .document import Event

ACTIONS = {
    "impair": "impair",
    "link_down": "link-down",
    "link_up": "link-up",
    "flap": "flap",
    "partition": "partition",
    "start": "start",
    "stop": "stop",
    "kill": "kill",
    "restart": "restart",
    "run": "run",
    "limit": "limit",
}


def action_of(event: Event) -> str | None:
    """The event's action; None if it has none or several."""
    given = [name for name in ACTIONS if getattr(event, name) is not None]
    return given[0] if len(given) == 1 else None
