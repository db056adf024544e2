"""What can end a lab: errors whose text is meant for the user (place, value, rule, remedy)."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot be made or go on; the text says where, what was found, what is asked and what helps."""


class Interrupted(Exception):  # noqa: N818  # not an error: the user asked
    """SIGINT, SIGTERM or a `down` request arrived: tear down and keep what was measured."""


class TimedOut(LabError):  # noqa: N818  # what happened, not what it is
    """A wait with a subject and a deadline saw its deadline pass."""
