"""Templates of commands and files: which names they may use, and their text for one node.

jinja2 (sandbox.py) is loaded for the first text with a brace: most topologies have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fault(template: str) -> str | None:
    """Why a template is not one, or None; does not render it."""
    if "{" not in template:
        return None
    from . import sandbox

    return sandbox.fault(template)


def render(template: str, values: Mapping[str, Any]) -> str:
    """The text for one node; raises TemplateFaultError."""
    if "{" not in template:
        return template
    from . import sandbox

    return sandbox.render(template, values)
