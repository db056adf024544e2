"""Looks up the impairment that a direction of a link had at a time, and whether the link was cut."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right

import polars as pl

from capture.why.places import Element
from contract.events import impairments
from contract.plan import WAYS, Impairment, Plan


class Settings:
    """The impairments of a run's links over time, and the times in which links were down."""

    def __init__(self, plan: Plan, events: pl.DataFrame | None, played: pl.DataFrame | None) -> None:
        self._steps: dict[tuple[str, str], list[tuple[int, Impairment]]] = {
            (link.name, way): [(0, link.way(way).impairment)] for link in plan.links for way in WAYS
        }
        self._down: dict[str, list[tuple[int, bool]]] = {}
        if events is not None:
            for t_ns, action, targets, args in (
                events.filter("ok").sort("t_ns").select("t_ns", "action", "targets", "args").iter_rows()
            ):
                self._change(t_ns, action, targets, args)
        if played is not None:
            for t_ns, link, way, rate, delay, loss in (
                played.sort("t_ns")
                .select("t_ns", "link", "direction", "rate_bps", "delay_ns", "loss")
                .iter_rows()
            ):
                self._play(t_ns, (link, way), rate, delay, loss)

    def at(self, link: Element, t_ns: int) -> Impairment:
        """Returns the impairment of a link's direction at a time."""
        steps = self._steps[link.name, link.way]
        return steps[bisect_right(steps, t_ns, key=lambda one: one[0]) - 1][1]

    def down(self, link: str, t_ns: int) -> bool:
        """Returns whether the timeline had cut the link at a time."""
        steps = self._down.get(link, [])
        place = bisect_right(steps, t_ns, key=lambda one: one[0]) - 1
        return place >= 0 and steps[place][1]

    def _change(self, t_ns: int, action: str, targets: list[str], args: str) -> None:
        if action in ("link-down", "link-up"):
            for link in targets:
                self._down.setdefault(link, []).append((t_ns, action == "link-down"))
        elif action == "impair":
            for way, wanted in impairments(args):
                for link in targets:
                    self._steps.setdefault((link, way), [(0, Impairment())]).append((t_ns, wanted))

    def _play(self, t_ns: int, key: tuple[str, str], rate: int | None, delay: int, loss: float) -> None:
        if key in self._steps:
            before = self._steps[key][-1][1]
            now = dataclasses.replace(before, rate_bps=rate or 0, delay_ns=delay, loss=loss)
            self._steps[key].append((t_ns, now))
