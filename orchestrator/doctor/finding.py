"""One finding on this machine, its consequence for labs, and its remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`consequence`: what cannot be done (empty if ok); `remedy`: what mends it, if anything."""

    subject: str
    state: State
    found: str
    consequence: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for --json."""
        return asdict(self)
