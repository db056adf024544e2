"""Defines the variables that topology templates may use, the CPU time and memory that rendering may take, and
the error for invalid templates.
"""

from __future__ import annotations

NAMES = frozenset({"lab", "node", "group", "index", "count", "address", "addresses", "parameters"})
CPU_S = 3  # CPU time of one template; all shipped templates together take 10 ms
MEMORY = 512 << 20  # bytes of address space of the process that renders them; it has 60 MiB when idle


class TemplateFaultError(ValueError):
    """Raised for a template that cannot be parsed or rendered; the text is the reason."""
