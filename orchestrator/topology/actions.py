"""The actions of timeline events, by field of the model, and how files spell them."""

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
    """The event's action, or None where it has not exactly one."""
    given = [name for name in ACTIONS if getattr(event, name) is not None]
    return given[0] if len(given) == 1 else None
