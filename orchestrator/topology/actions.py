"""Lists the actions of timeline events: for each field of the model, its key in files."""

from __future__ import annotations

from .document import Event

ACTIONS = {
    "impair": "impair",
    "link_down": "link-down",
    "link_up": "link-up",
    "flap": "flap",
    "disconnect": "disconnect",
    "partition": "partition",
    "split": "split",
    "start": "start",
    "stop": "stop",
    "kill": "kill",
    "restart": "restart",
    "freeze": "freeze",
    "disk_full": "disk-full",
    "schedule": "schedule",
    "clock": "clock",
    "run": "run",
    "limit": "limit",
}


def action_of(event: Event) -> str | None:
    """Returns the event's action, as the model's field; None if the event has none or several."""
    given = [name for name in ACTIONS if getattr(event, name) is not None]
    return given[0] if len(given) == 1 else None
