"""Tests which conservation checks apply to a run, and the verdict and the text of a single check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conserved import agreeing, checked, written

from capture.conservation import applies, registry
from capture.conservation.check import Compared, Found, Relation, Rule, judge, quantity
from capture.reduce import reduce_run
from contract import manifest, rundir
from reports.judged import known
from reports.junit import junit
from reports.report import report


def test_a_check_with_a_subject_and_without_its_table_cannot_tell(tmp_path: Path) -> None:
    run = written(tmp_path, agreeing())
    for name in ("messages.csv", "links.csv"):
        (run / "raw" / name).unlink()
    found = checked(run)
    told = {name: found[name]["verdict"] for name in ("message-rows", "message-losses", "node-links")}
    assert set(told.values()) == {"cannot tell"}
    plan = json.loads((run / "plan.json").read_text())
    plan |= {"flows": [], "links": []}
    (run / "plan.json").write_text(json.dumps(plan))
    assert told.keys().isdisjoint(checked(run))


def test_checks_that_do_not_apply_are_listed_and_counted_nowhere(tmp_path: Path) -> None:
    run = written(tmp_path, agreeing())
    reduce_run(run)
    page = report(run).read_text()
    listed = manifest.read(run)["inapplicable"]
    assert f"{len(listed)} checks do not apply to this run" in page
    assert all(one["text"] in page for one in listed)
    names = {one["name"] for one in listed}
    recorded = {one.name for one in rundir.read_verdicts(run) if one.of == "check"}
    assert recorded and names.isdisjoint(recorded)
    assert known(run)["check"].keys() <= {"holds", "cannot tell"}
    assert not any(f'name="{name}"' in junit(run) for name in names)
    assert "does not apply" not in junit(run)
    report(run)
    assert manifest.read(run)["inapplicable"] == listed, "a second report lists each once"


RULE = Rule("some", "apples", "pears", "weigh them")


def test_a_verdict_names_the_worst_first_and_each_reason_once() -> None:
    many = [Compared(f"n{i}", 10, 10 + i, "kg", 1) for i in range(6)]
    bad = judge(RULE, Found(many))
    assert bad.text == (
        "apples must equal pears, but "
        "n5: 10 kg against 15 kg (a difference of at most 1 kg is allowed); "
        "n4: 10 kg against 14 kg (a difference of at most 1 kg is allowed); "
        "n3: 10 kg against 13 kg (a difference of at most 1 kg is allowed); and 1 more"
    )
    assert bad.numbers == {
        "compared": 6,
        "differing": 4,
        "left_out": 0,
        "figure": 10,
        "count": 15,
        "tolerance": 1,
    }
    none = judge(RULE, Found(left_out=["no scales", "no scales", "dark"]))
    assert (none.verdict, none.text) == ("cannot tell", "could not be made: no scales (in 2 cases); dark")
    without = judge(RULE, Found(left_out=["dark"], absent="no fruit"))
    assert (without.verdict, without.text) == ("does not apply", "no fruit")
    assert judge(RULE, Found(many, absent="no fruit")).verdict == "fails", "what was compared counts"
    assert judge(RULE, Found(many[:2], ["dark"])).text == (
        "apples equal pears: 2 compared (a difference of at most 1 kg is allowed); dark"
    )


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ("equal", "memory equals pears"),
        ("at most", "memory is at most pears"),
        ("at least", "memory is at least pears"),
    ],
)
def test_a_singular_figure_has_a_singular_verb(relation: Relation, sentence: str) -> None:
    rule = Rule("some", "memory", "pears", "weigh them", relation, singular=True)
    assert judge(rule, Found([Compared("n", 1, 1, "kg")])).text == f"{sentence}: 1 compared"


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (20_800_000_000, "ns", "20.8 s"), (100_000, "ns", "100 us"), (-1_000_001, "ns", "-1.000001 ms"),
        (0, "ns", "0 ns"), (999, "ns", "999 ns"), (1_500_000_000_001, "ns", "1,500.000000001 s"),
        (24_372, "bytes", "24,372 bytes"), (2, "", "2"),
    ],
)  # fmt: skip
def test_times_are_written_with_a_unit_of_their_size(number: int, unit: str, text: str) -> None:
    assert quantity(number, unit) == text


def test_every_reason_why_a_check_does_not_apply_belongs_to_a_check() -> None:
    assert set(applies.ABSENT) <= set(registry.REMEDIES)
