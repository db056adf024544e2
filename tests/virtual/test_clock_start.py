"""Tests the date at which a lab's clock starts, from the file or `--clock`, as a node's program sees it."""

from __future__ import annotations

import json

from virtual_place import Place

DATED = """\
name: dated
segments: {lan: {subnet: 10.1.0.0/24}}
nodes: {a: {segment: lan, software: {date: {command: "date -u +%F", start: ramp, at_end: exited}}}}
run: {hold: 1 s, clock: 2026-11-26}
"""


def test_programs_see_the_date_that_was_asked_for(place: Place) -> None:
    (place.cwd / "dated.yaml").write_text(DATED)
    for more, date in ((), "2026-11-26"), (("--clock", "2030-02-03T12:00:00Z"), "2030-02-03"):
        ran = place.run("--raw", *more, file="dated.yaml")
        assert (ran.run_dir / "raw/logs/a.date.log").read_text().strip() == date
        assert (
            json.loads((ran.run_dir / "plan.json").read_text())["clock_ns"]
            == ran.manifest["kernel"]["start_ns"]
        )
