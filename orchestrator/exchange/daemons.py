"""Selects the software kind of routers, with the description of its daemons in files of other tools."""

from __future__ import annotations

from ..software.foreign import Daemons, Foreign
from ..software.registry import KINDS


def _found() -> tuple[str, Foreign, Daemons]:
    foreign = ((kind.name, kind.foreign) for kind in KINDS.values() if kind.foreign)
    return next((name, one, one.daemons) for name, one in foreign if one.daemons)


KIND, FOREIGN, DAEMONS = _found()
