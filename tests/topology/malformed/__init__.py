"""Lists malformed topologies: each case changes one place of a valid file and names the rule that it then
breaks.
"""

from __future__ import annotations

from . import documents, hosts, networks, programs, runs
from .base import BASE, Case

__all__ = ["BASE", "CASES", "Case"]

CASES = documents.CASES + hosts.CASES + networks.CASES + programs.CASES + runs.CASES
