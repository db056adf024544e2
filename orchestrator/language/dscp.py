"""Parses marks of packets: DSCP values by name or number, and priorities (PCP) of 802.1Q."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from .scalars import fail

# RFC 2474, 2597, 3246, 5865, 8622: the names of differentiated services' code points.
DSCP = {
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
    "EF": 46, "VA": 44, "LE": 1, "DF": 0,
}  # fmt: skip


def dscp(value: Any) -> int:
    """Parses a DSCP value given by name (EF, AF41, CS6, in any case) or number, 0 to 63; raises a validation
    error with rule and remedy for other values.
    """
    found = DSCP.get(value.upper()) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 63:
        raise fail("is no DSCP", f"write 0 to 63, or one of {', '.join(DSCP)}")
    return found


Dscp = Annotated[
    int,
    BeforeValidator(dscp),
    WithJsonSchema({"anyOf": [{"enum": [*DSCP]}, {"type": "integer", "minimum": 0, "maximum": 63}]}),
]


def _pcp(value: Any) -> Any:
    """Returns the value; raises a validation error for 7, the priority of network control."""
    if value == 7 and not isinstance(value, bool):
        raise fail(
            "is network control's, which a program may not ask of its socket (socket(7))", "write 0 to 6"
        )
    return value


Pcp = Annotated[int, Field(ge=0, le=6), BeforeValidator(_pcp)]
MARKS = ("dscp", "pcp")


def marks(options: Any) -> dict[str, int]:
    """Returns the marks that software requests, by key (dscp, pcp); omits absent ones."""
    found = {key: getattr(options, key, None) for key in MARKS}
    return {key: value for key, value in found.items() if value is not None}
