"""Lists all liars in groups, by the kind of evidence that they falsify."""

from __future__ import annotations

from liars import captured, records, samples, stored, told
from liars.liar import Liar

GROUPS: dict[str, tuple[Liar, ...]] = {
    "Records of messages": records.LIARS,
    "Sampled counters": samples.LIARS,
    "Captures": captured.LIARS,
    "Plan, manifest, proof, events": told.LIARS,
    "Files changed afterwards": stored.LIARS,
}
FILES = {liar.name: liar for group in GROUPS.values() for liar in group}


def titled() -> dict[str, list[str]]:
    """Returns the names of the liars by group, in the order of the table, including those that need a lab of
    their own.
    """
    from liars import live, real

    found = {title: [liar.name for liar in group] for title, group in GROUPS.items()}
    found["Programs and brokers in a lab, in virtual time"] = [one.name for one in live.LIARS]
    found["Disturbances of a lab in real time"] = [one.name for one in real.LIARS]
    return found
