"""Defines the variables that topology templates may use, the CPU time and memory that rendering may take, and
the error for invalid templates.
"""

from __future__ import annotations

NAMES = frozenset({
    "lab", "node", "group", "index", "count", "address", "addresses", "addresses4", "addresses6", "parameters"
})  # fmt: skip
CPU_S = 3  # CPU time of one template; all shipped templates together take 10 ms
SLOW_S = 0.05  # CPU time in s from which a template counts as slow, for ALL_CPU_S; those of vNET take 1 ms
ALL_CPU_S = 30  # CPU time of all slow templates of a process of vnet
MEMORY = 512 << 20  # bytes of address space of the process that renders templates; it has 60 MiB when idle


class TemplateFaultError(ValueError):
    """Raised for a template that cannot be parsed or rendered; the text is the reason."""
