"""Names the controllers that a script gives to its network."""

from __future__ import annotations

import functools
from typing import Any

# Controllers with which switches learn, like the lab's bridges; "Ellipsis" is the default.
LEARNING = frozenset(["Ellipsis", "Controller", "OVSController", "DefaultController"])


def controller_name(given: Any) -> str:
    """Returns the name of a controller's class, which may be a partial, an instance or several of these."""
    while isinstance(given, functools.partial):
        given = given.func
    if isinstance(given, list | tuple):
        return ", ".join(dict.fromkeys(map(controller_name, given)))
    name = getattr(given, "__name__", None)
    return name if isinstance(name, str) else type(given).__name__.capitalize()
