"""Defines the keys of the link proof: its tolerances and times."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from contract.plan.tolerance import ProofSettings, Tolerance

from ..language import units
from ..language.scalars import Base, Span, reader, text


def _tolerance(value: Any) -> Tolerance:
    """Parses a tolerance: `0.1 ms`, `1 %`, or the larger of both: `0.2 ms or 1 %`."""
    if isinstance(value, Tolerance):
        return value
    if not isinstance(value, str):
        raise units.UnitError("is not a tolerance", 'write for example "0.1 ms", "1 %" or "0.2 ms or 1 %"')
    amount, share = 0, 0.0
    for part in re.split(r"\bor\b", value):
        if part.rstrip().endswith("%"):
            share = max(share, units.real(units.SHARE, part))
        else:
            amount = max(amount, units.whole(units.DURATION, part))
    if not amount and not share:
        raise units.UnitError("no measurement is exact", 'write for example "0.1 ms"')
    return Tolerance(float(amount), share)


def _rate(value: Any) -> float:
    share = units.real(units.SHARE, value)
    if share == 0:
        raise units.UnitError("no measurement is exact", 'write for example "1 %"')
    return share


_TIME = Annotated[
    Tolerance,
    reader(_tolerance),
    WithJsonSchema({"type": "string", "title": "tolerance", "examples": ["0.1 ms", "1 %", "0.2 ms or 1 %"]}),
]
_RATE = Annotated[
    float, reader(_rate), WithJsonSchema({"type": "string", "title": "share", "examples": ["1 %"]})
]


class Proof(Base):
    """The tolerances of measured values of links. Shares (loss ...) are judged with a tolerance of a quarter
    of their value, and below 1 % of a half.
    """

    delay: _TIME | None = Field(
        None,
        description="By default 0.05 ms in virtual time, 0.2 ms or 1 % on the host's kernel, and in a lab "
        "kernel in real time what it adds on a quiet second, at most 1 ms or 5 %; with a jitter at least a "
        "twentieth of it.",
    )
    jitter: _TIME | None = Field(
        None,
        description="By default 5 % in virtual time, 0.2 ms or 5 % on the host's kernel, and in a lab kernel "
        "in real time what it adds on a quiet second, at most 0.5 ms or 15 %.",
    )
    rate: _RATE | None = Field(None, description="By default 0.5 % in virtual time, else 1 %.")
    time: Span = Field(
        text("2 s"), ge=10**8, le=10**12,
        description="Length of the longest train of frames with which every proof begins.",
    )  # fmt: skip
    at_most: Span | None = Field(
        None, ge=0, le=10**13,
        description=("Limit on the length of all trains of a direction together, 60 s by default, in "
            "virtual time "
            "1200 s. The proof continues by itself until each quantity holds or fails. Trains through both "
            "directions of a half-duplex link at once have a limit of the same length. A train beyond the "
            "limit is not sent, and the proof reports the time that it needs."),
    )  # fmt: skip

    def settings(self) -> ProofSettings:
        rate = None if self.rate is None else Tolerance(share=self.rate)
        return ProofSettings(self.delay, self.jitter, rate, self.time, self.at_most)
