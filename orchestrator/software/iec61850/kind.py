"""Builds the registry entry of a protocol directly above Ethernet: its checks, its plan and its costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from contract.plan import Flow, Software

from ...language.scalars import Base
from ...language.source import Path
from ..checking import Checks, Here
from ..kind import Costs, Kind, Offered, Planned
from ..scene import Placed, Scene
from . import checks, planning
from .file import Rules, options_of
from .frames import ETHERNET_BYTES, TAG_BYTES


def make_kind(
    rules: Rules,
    form: planning.Form,
    *,
    model: type[Base],
    what: str,
    example: str,
    titles: Mapping[str, str],
    check: Callable[[Checks, Here, Any, Path], None],
    words: Callable[[Mapping[str, Any], Sequence[Flow]], str],
    packets: Callable[[Mapping[str, Any], Flow], Iterable[tuple[float, int]]],
    offers: Callable[[Mapping[str, Any], Flow], Offered],
) -> Kind:
    """Returns the registry entry of a protocol with these functions.

    `check` reports more mistakes of a publisher. `words` returns a text about a publisher from its settings.
    `packets` yields (count, bytes above Ethernet) of a flow's frames from its publisher's settings. `offers`
    returns a flow's leaky bucket from the same settings.
    """

    def _check(report: Checks, here: Here, read: Base) -> None:
        options = options_of(read, rules.kind)
        checks.check(report, here, options, rules)
        if options.publish is not None:
            check(report, here, options.publish, (*here.path, rules.kind, "publish"))

    def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
        return planning.plan(scene, all_of_it, form)

    def _words(software: Software, flows: Sequence[Flow]) -> str:
        if (stream := software.spec["publish"]) is None:
            return f"{what}, takes {len(software.spec['subscribe'])} streams"
        return words(stream, flows)

    def _costs(software: Software, flows: Sequence[Flow]) -> Costs:
        if (stream := software.spec["publish"]) is None:
            return Costs()
        around = ETHERNET_BYTES + (TAG_BYTES if stream["to"]["tag"] else 0)
        seen = (one for flow in flows for one in packets(stream, flow))
        return Costs(one_copy=True, packets=tuple((count, around + length) for count, length in seen))

    return Kind(
        name=rules.kind,
        key=rules.kind,
        model=model,
        what=what,
        example=example,
        check=_check,
        plan=_plan,
        words=_words,
        costs=_costs,
        offers=lambda software, flow: offers(software.spec["publish"], flow),
        numbered=planning.numbered,
        ramp=lambda read: None if options_of(read, rules.kind).publish is None else 1,
        titles=titles,
    )
