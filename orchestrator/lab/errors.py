"""Defines the errors that end a lab; their texts are for the user (place, value, rule, remedy)."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot be built or continue; the text contains place, found value, rule and remedy."""


class Interrupted(Exception):  # noqa: N818  # not an error: the user asked
    """SIGINT, SIGTERM or a `down` request arrived: the lab tears down and keeps the measurements."""


class TimedOut(LabError):  # noqa: N818  # what happened, not what it is
    """The deadline of a wait passed; the text names the subject of the wait."""
