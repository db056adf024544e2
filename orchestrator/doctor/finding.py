"""Defines a finding of the doctor: what was found, its consequence for labs, and its remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `subject`: the examined part; `found`: its condition in words; `consequence`: the parts of
    labs that fail ("" if ok); `remedy`: the command that fixes it, "" if there is none.
    """

    subject: str
    state: State
    found: str
    consequence: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the finding as plain data for --json."""
        return asdict(self)
