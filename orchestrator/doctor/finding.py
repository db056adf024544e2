"""Defines a finding of the doctor: what was found, its consequence for labs, and its remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `consequence`: what labs cannot do ("" if ok); `remedy`: the action
    that fixes it, if any.
    """

    subject: str
    state: State
    found: str
    consequence: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the finding as plain data for --json."""
        return asdict(self)
