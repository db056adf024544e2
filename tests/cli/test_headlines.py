"""Tests the lines that the terminal prints at the end of a run."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.cli.headlines import others, verdicts
from orchestrator.cli.output import fitting
from reports.judged import summary


def test_what_failed_of_the_proof_is_listed_where_no_warning_tells_it(tmp_path: Path) -> None:
    way = {"link": "wan", "direction": "forward"}
    proof = [
        {**way, "quantity": "delay", "verdict": "fails", "reason": "requested 20 ms, measured 40 ms"},
        {**way, "quantity": "loss", "verdict": "holds", "reason": ""},
    ]
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    assert verdicts(summary(tmp_path)) == [], "nobody has judged it"
    names = [f"wan forward {one['quantity']}" for one in proof]
    judged = [{"of": "proof", "name": n, **one} for n, one in zip(names, proof, strict=True)]
    counts = {"proof": {"holds": 1, "fails": 1}}
    (tmp_path / "verdicts.json").write_text(json.dumps({"counts": counts, "verdicts": judged}))
    counted = ("link checks: 1 fails, 1 holds", "red")
    assert verdicts(summary(tmp_path), failures=False) == [counted]
    assert verdicts(summary(tmp_path)) == [
        counted,
        ("  wan forward delay: requested 20 ms, measured 40 ms", "red"),
    ]


def test_a_tolerance_that_is_one_is_said_once(tmp_path: Path) -> None:
    way = {"link": "wan", "quantity": "delay", "verdict": "holds", "reason": "", "unit": "ns"}
    proof = [{**way, "direction": d, "tolerance": s} for d, s in (("forward", 3e6), ("reverse", 3_000_001.0))]
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    (tmp_path / "verdicts.json").write_text(json.dumps({"counts": {"proof": {"holds": 2}}}))
    assert verdicts(summary(tmp_path))[1] == ("  delay: 2 holds; tolerance 3 ms", "dim")


def test_what_was_judged_beside_the_links_in_words(tmp_path: Path) -> None:
    counts = {"guarantee": {"holds": 2, "cannot tell": 1}, "check": {"holds": 12}, "claim": {"fails": 1}}
    (tmp_path / "verdicts.json").write_text(json.dumps({"counts": counts}))
    assert others(summary(tmp_path)) == [
        ("delivery guarantees: 1 cannot tell, 2 holds", "yellow"),
        ("checks of the run: 12 holds", "green"),
        ("claims: 1 fails", "red"),
    ]


def test_what_cannot_be_told_is_said_with_its_remedy_once(tmp_path: Path) -> None:
    """Shows that a verdict `cannot tell` is printed with its reason and its remedy, once."""
    reason = "the machine offered only 212 Mbit/s; `--time virtual` offers more"
    proof = [
        {"link": "wan", "direction": way, "quantity": "rate", "verdict": "cannot tell", "reason": reason}
        for way in ("forward", "reverse")
    ]
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    judged = [{"of": "proof", "name": f"wan {one['direction']} rate", **one} for one in proof]
    counts = {"proof": {"cannot tell": 2}}
    (tmp_path / "verdicts.json").write_text(json.dumps({"counts": counts, "verdicts": judged}))
    assert verdicts(summary(tmp_path)) == [
        ("link checks: 2 cannot tell", "yellow"),
        (f"  rate: cannot tell: {reason} (wan forward, wan reverse)", "yellow"),
    ]


def test_columns_whose_figures_would_be_cut_are_left_to_the_report() -> None:
    rows = [["", *(f"rate {n}" for n in range(20))], ["latency p50, ms", *["0.001003 ± 0.000022"] * 20]]
    assert fitting(rows, 400) == 21
    shown = fitting(rows, 80)
    assert 2 < shown < 21
    assert len("latency p50, ms") + (shown - 1) * len("0.001003") <= 80
    assert fitting(rows, 10) == 2
