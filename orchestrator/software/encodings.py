"""Defines messages of signals in VILLASnode's formats: their keys in the file, checks, and their exact
length.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from contract.plan import Payload

from ..language.scalars import Base, Positive
from ..language.source import Path
from .checking import Checks

MOST_SIGNALS = 1000  # signals in one message, as in the agent's payload/signals.rs
# Bytes of a message without signals, and of each: the agent's payload/villas_json.rs and payload/protobuf.rs.
# JSON has two bytes between numbers, and none before the first.
LENGTHS = {"villas-json": (101 - 2, 17 + 2), "protobuf": (31, 12)}


class Encoded(Base):
    """A sender whose messages may carry signals; their number then determines each message's length."""

    encoding: Literal["villas-json", "protobuf"] | None = Field(
        None,
        description=(
            "Each message is one sample of `signals` numbers in a format of VILLASnode, in place of "
            "another payload."
        ),
    )
    signals: Positive | None = Field(
        None,
        le=MOST_SIGNALS,
        description="Numbers (double) in a message with an `encoding`; they determine its length.",
    )


def encoded_bytes(encoding: str, signals: int) -> int:
    """Returns the exact length in bytes of a message with this number of signals."""
    around, each = LENGTHS[encoding]
    return around + each * signals


def payload_of(wanted: Encoded, otherwise: Payload) -> Payload:
    """Returns the payload of the sender's messages; `otherwise` if they carry no signals."""
    if wanted.encoding is None or wanted.signals is None:
        return otherwise
    return Payload(wanted.encoding, encoded_bytes(wanted.encoding, wanted.signals))


def check_encoded(report: Checks, wanted: Encoded, path: Path, size: str, *kinds: str) -> bool:
    """Returns whether the sender's messages carry signals. Reports keys that do not go together, and a length
    in the file that is not the exact one; `size` is the key for a length, `kinds` are the keys for another
    payload.
    """
    encoding, signals = wanted.encoding, wanted.signals
    if encoding is None:
        if signals is not None:
            rule = "needs an `encoding`, and there is none"
            report.add(
                (*path, "signals"), signals, rule, "write `encoding: villas-json`, or `encoding: protobuf`"
            )
        return False
    if signals is None:
        rule = "has no number of signals in a message"
        report.add((*path, "encoding"), encoding, rule, "write for example `signals: 10`")
        return True
    for key in (key for key in kinds if key in wanted.model_fields_set):
        rule = "is another payload than that of `encoding`"
        report.add((*path, key), getattr(wanted, key), rule, "leave one of them out")
    exact, said = encoded_bytes(encoding, signals), _said(wanted, size)
    if said is not None and said != exact:
        rule = f"a message of {signals} signals in {encoding} has exactly {exact} bytes"
        report.add((*path, size), f"{said} B", rule, f'leave it out, or write "{exact} B"')
    return True


def _said(wanted: Encoded, key: str) -> Any:
    return getattr(wanted, key) if key in wanted.model_fields_set else None
