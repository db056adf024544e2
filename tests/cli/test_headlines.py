"""The end of a run in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.cli.headlines import verdicts


def test_what_failed_of_the_proof_is_listed_where_no_warning_tells_it(tmp_path: Path) -> None:
    way = {"link": "wan", "direction": "forward"}
    proof = [
        {**way, "quantity": "delay", "verdict": "fails", "reason": "asked 20 ms, realised 40 ms"},
        {**way, "quantity": "loss", "verdict": "holds", "reason": ""},
    ]
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    counted = ("links   1 fails, 1 holds", "red")
    assert verdicts(tmp_path, failures=False) == [counted]
    assert verdicts(tmp_path) == [counted, ("        wan forward delay: asked 20 ms, realised 40 ms", "red")]
