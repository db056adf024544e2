"""Routers that find their ways, in virtual time: the example with a failing link, twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from virtual_place import PROJECT, Place, Ran

EXAMPLE = (PROJECT / "topologies/ring-ospf.yaml").read_bytes()
pytestmark = pytest.mark.skipif(not Path("/usr/lib/frr/zebra").exists(), reason="needs Debian's package frr")
CUT, SILENT = "r2-r3 is cut", "r3-r4 loses everything"


def _run(place: Place, *parameters: str) -> Ran:
    Path(place.cwd / "ring-ospf.yaml").write_bytes(EXAMPLE)
    return place.run("--seed", "3", *parameters, file="ring-ospf.yaml")


def _figures(ran: Ran) -> dict[tuple[str, str], float]:
    rows: list[dict[str, Any]] = json.loads((ran.run_dir / "summary.json").read_text())
    return {
        (r["name"], r["event"]): r["value"] for r in rows if r["traffic_class"] == "stream" and r["event"]
    }


def test_the_stream_goes_on_by_another_way_and_the_run_repeats(places: Callable[[str], Place]) -> None:
    first, second = (_run(places(name)) for name in ("ospf", "ospf-again"))
    assert first.hashes == second.hashes
    assert first.manifest["warnings"] == []
    found = _figures(first)
    # The carrier is seen at once; silence is noticed between `dead` less a hello and `dead`, 4 s.
    assert found["interruption_until", CUT] < 0.5
    assert 2.9 < found["interruption_until", SILENT] < 4.5
    assert found["interruption_lost", SILENT] == pytest.approx(
        100 * found["interruption_until", SILENT], abs=5
    )
    for event in (f"{CUT}: over", f"{SILENT}: over"):
        assert found["interruption_lost", event] < 5


def test_longer_timers_are_a_longer_interruption(place: Place) -> None:
    found = _figures(_run(place, "-p", "hello=2s", "-p", "dead=8s"))
    assert 5.9 < found["interruption_until", SILENT] < 8.5
