"""What templates may name, and what is raised where one does not keep to the rules."""

from __future__ import annotations

NAMES = frozenset({"lab", "node", "group", "index", "count", "address", "addresses", "parameters"})


class TemplateFaultError(ValueError):
    """A template that cannot be read or rendered; the text says why."""
