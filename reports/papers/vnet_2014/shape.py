"""Determines the scenario of the paper that a run resembles, by its senders and receivers."""

from __future__ import annotations

from reports.roles import roles
from reports.rundir import Run

ONE = "many-to-one"  # scenario 1: many publishers, a single subscriber
MANY = "many-to-many"  # scenario 2: every client publishes and subscribes
OTHER = "other"


def shape(run: Run) -> str:
    """Returns ONE if some clients only send and a single one only receives, MANY if every client sends and
    receives, else OTHER.
    """
    who = roles(run)
    if who.both and not who.senders and not who.receivers:
        return MANY
    return ONE if who.senders and len(who.receivers) == 1 and not who.both else OTHER
