"""Tests which random generators of netem are seeded, with which seeds, and the note for a kernel that
takes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from contract.plan import Impairment
from orchestrator.lab import replay
from orchestrator.lab.netem_seeds import NetemSeeds, derived, draws


class Kernel:
    """A driver that records the seeds that it gets, or rejects seeds."""

    name = "light"

    def __init__(self, takes: bool) -> None:
        self.takes = takes
        self.sent: list[tuple[str, dict[str, int]]] = []

    def seed(self, netns: str, seeds: Mapping[str, int]) -> dict[str, int]:
        self.sent.append((netns, dict(seeds)))
        return dict(seeds) if self.takes else {}


def lab(kernel: Kernel, **impairments: Impairment) -> Any:
    """Returns a lab whose links have one impaired direction each, `forward`."""
    plain = Impairment()
    links = {
        name: SimpleNamespace(
            name=name,
            forward=SimpleNamespace(netns="core", carrier=f"{name}-f"),
            reverse=SimpleNamespace(netns="core", carrier=f"{name}-r"),
            way=lambda way, name=name: getattr(links[name], way),
        )
        for name in impairments
    }
    warned: list[Any] = []
    return SimpleNamespace(
        driver=kernel, plan=SimpleNamespace(seed=5), links=links, link=links.get, warned=warned,
        events=SimpleNamespace(warn=warned.append),
        impairments={(n, way): i if way == "forward" else plain
                     for n, i in impairments.items() for way in ("forward", "reverse")},
    )  # fmt: skip


LOSSY, EVEN = Impairment(loss=0.1), Impairment(delay_ns=10**7)


def test_directions_that_draw_are_seeded_and_again_after_each_change() -> None:
    kernel = Kernel(takes=True)
    there = lab(kernel, lossy=LOSSY, even=EVEN)
    seeds = NetemSeeds(there)
    seeds.sow(there.links.values())
    seeds.changed("lossy", "forward")
    seeds.changed("even", "forward")
    assert kernel.sent == [
        ("core", {"lossy-f": derived(5, "lossy", "forward", 0)}),
        ("core", {"lossy-f": derived(5, "lossy", "forward", 1)}),
    ]
    assert not there.warned


def test_a_kernel_that_takes_no_seed_is_named_once() -> None:
    there = lab(Kernel(takes=False), lossy=LOSSY)
    seeds = NetemSeeds(there)
    seeds.sow(there.links.values())
    seeds.changed("lossy", "forward")
    (warning,) = there.warned
    assert warning.code == "unseeded" and "lossy forward" in warning.text and not warning.suspect


def test_each_link_direction_and_change_has_a_seed_of_its_own() -> None:
    of = {
        derived(s, link, way, n)
        for s in (1, 2)
        for link in "ab"
        for way in ("forward", "reverse")
        for n in (0, 1)
    }
    assert len(of) == 16 and all(0 <= seed < 2**64 for seed in of)


def test_what_draws() -> None:
    assert not draws(EVEN) and not draws(Impairment(rate_bps=10**6))
    assert all(map(draws, (LOSSY, Impairment(jitter_ns=1), Impairment(gemodel=(0.1, 0.2, 1.0, 0.0)))))


def test_each_step_of_a_trace_is_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that each step of a trace has a seed; otherwise the kernel would draw one at each change."""
    kernel = Kernel(takes=True)
    there = lab(kernel, lossy=LOSSY)
    there.driver.change = lambda step, carrier: []
    there.after_change = NetemSeeds(there).changed
    monkeypatch.setattr(replay.readback, "insist", lambda found: None)
    player = SimpleNamespace(
        link="lossy", direction="forward", ways=("forward",), filters=[],
        at=SimpleNamespace(netns="core", carrier="lossy-f", host=None),
    )  # fmt: skip
    for loss in (0.2, 0.3, 0.3):
        replay._change(there, player, Impairment(loss=loss))  # type: ignore[arg-type]  # what it reads
    assert kernel.sent == [("core", {"lossy-f": derived(5, "lossy", "forward", n)}) for n in (1, 2)]
