"""Tests that the pages of docs/contracts agree with the types of the contract, and tables with
their schemas.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from capture.reduce import reduce_run, schema
from contract import page
from contract.plan import NO_PLAN, PLAN_FORMAT, Node, Plan
from contract.rundir import FormatError, UnreadableError, read_plan
from contract.tables import TABLES

sys.path.insert(0, str(Path(__file__).parents[1] / "capture"))
from conserved import agreeing, written
from rundirs import whole


@pytest.mark.parametrize("name", page.pages())
def test_a_page_is_as_the_types_say(name: str) -> None:
    assert (page.PAGES / name).read_text(encoding="utf-8") == page.pages()[name], f"run: {page.AGAIN}"


def test_a_page_says_a_fields_type_its_meaning_and_whether_it_may_be_left_out() -> None:
    made = page.pages()
    assert "  - `ramp_ns` (integer)\n" in made["plan.md"]
    assert "  - `libvirt`? (text): URI of the libvirt driver for nodes of kind vm\n" in made["plan.md"]
    assert "| `bps` | f64? | bit/s | rate at which packets left |\n" in made["tables.md"]


def test_tables_have_the_columns_and_types_of_their_schemas(tmp_path: Path) -> None:
    run = written(tmp_path, agreeing())
    (run / "raw" / "events.jsonl").write_text('{"t_ns": 1, "action": "run", "targets": ["b"], "ok": true}\n')
    reduce_run(run)
    there = {path.stem: pl.read_parquet_schema(path) for path in run.glob("*.parquet")}
    assert {"messages", "sessions", "transfers", "nodes", "stacks", "links", "host", "events"} <= there.keys()
    for name, found in there.items():
        optional = {column.name for column in TABLES[name].columns if column.absent}
        assert {key: kind for key, kind in found.items() if key not in optional} == schema(name), name


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (None, UnreadableError, "plan.json"),
        ("{", UnreadableError, "a run directory holds the plan that it ran"),
        ("[]", UnreadableError, "a run directory holds the plan that it ran"),
        ('{"format": 1}', FormatError, "its plan is of format 1, .* reads format 2; .*does not tell which"),
        ('{"format": 2, "surplus": 1}', UnreadableError, "Plan has no field surplus"),
        ('{"format": 2, "nodes": 7}', UnreadableError, "plan.json: "),
    ],
)
def test_a_plan_that_cannot_be_read_says_why(
    tmp_path: Path, text: str | None, error: type[Exception], said: str
) -> None:
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    with pytest.raises(error, match=said):
        read_plan(tmp_path)


def test_a_plan_of_an_earlier_version_is_read_under_the_present_names(tmp_path: Path) -> None:
    node = whole(Node, {"name": "a"}) | {"sees": ["/srv"], "writes": ["/srv/out"]}
    (tmp_path / "plan.json").write_text(json.dumps(whole(Plan) | {"format": PLAN_FORMAT, "nodes": [node]}))
    (read,) = read_plan(tmp_path).nodes
    assert (read.mounts_read, read.mounts_write) == (("/srv",), ("/srv/out",))


def test_no_plan_has_nothing() -> None:
    assert (NO_PLAN.nodes, NO_PLAN.links, [*NO_PLAN.sessions()], [*NO_PLAN.impairments()]) == ((), (), [], [])
