"""The end of a run in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.cli.headlines import fitting, verdicts


def test_what_failed_of_the_proof_is_listed_where_no_warning_tells_it(tmp_path: Path) -> None:
    way = {"link": "wan", "direction": "forward"}
    proof = [
        {**way, "quantity": "delay", "verdict": "fails", "reason": "requested 20 ms, measured 40 ms"},
        {**way, "quantity": "loss", "verdict": "holds", "reason": ""},
    ]
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    counted = ("links   1 fails, 1 holds", "red")
    assert verdicts(tmp_path, failures=False) == [counted]
    assert verdicts(tmp_path) == [
        counted,
        ("        wan forward delay: requested 20 ms, measured 40 ms", "red"),
    ]


def test_columns_whose_figures_would_be_cut_are_left_to_the_report() -> None:
    rows = [["", *(f"rate {n}" for n in range(20))], ["latency p50, ms", *["0.001003 ± 0.000022"] * 20]]
    assert fitting(rows, 400) == 21
    shown = fitting(rows, 80)
    assert 2 < shown < 21
    assert len("latency p50, ms") + (shown - 1) * len("0.001003") <= 80
    assert fitting(rows, 10) == 2
