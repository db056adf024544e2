"""Finds the software kind (KIND) whose daemons the files of other tools configure, with its descriptions of
the program (FOREIGN) and of these daemons (DAEMONS).
"""

from __future__ import annotations

from ..software.foreign import Daemons, Foreign
from ..software.registry import KINDS


def _found() -> tuple[str, Foreign, Daemons]:
    foreign = ((kind.name, kind.foreign) for kind in KINDS.values() if kind.foreign)
    return next((name, one, one.daemons) for name, one in foreign if one.daemons)


KIND, FOREIGN, DAEMONS = _found()
