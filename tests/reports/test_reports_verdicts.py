"""One vocabulary of verdicts, in one file that everybody reads; runs of earlier versions in its words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from synthetic import write_run
from synthetic_shape import Shape

from capture import seal, verdict
from orchestrator.cli.headlines import others, verdicts
from orchestrator.cli.run import strictly
from reports.junit import junit
from reports.report import report
from reports.rundir import read_run
from reports.verdicts import NAME, known, untold

ROOT = Path(__file__).parents[2]
# Verdicts of earlier versions. Only capture/verdict.py may know them, to translate.
RETIRED = re.compile(r"not judged|cannot be judged|does not hold\*|\"(?:does not hold|held|met|broken)\"")
CODE = ("capture", "reports", "orchestrator", "vnet")
TRANSLATES = ROOT / "capture" / "verdict.py"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8))


def test_words_of_earlier_versions_are_translated() -> None:
    assert [verdict.word(said) for said in ("not judged", "cannot be judged", "does not hold", None)] == [
        verdict.OPEN, verdict.OPEN, verdict.FAILS, verdict.OPEN,
    ]  # fmt: skip
    assert [verdict.word(said) for said in verdict.ORDER] == list(verdict.ORDER)
    assert [verdict.of_truth(one) for one in (True, False, None)] == ["holds", "fails", "cannot tell"]


def test_retired_words_are_nowhere() -> None:
    """In code, templates of the page, and docs; examples that earlier versions made are as they were made."""
    files = [f for top in CODE for end in ("py", "j2", "js", "yaml") for f in (ROOT / top).rglob(f"*.{end}")]
    files += [f for f in (ROOT / "docs").rglob("*.md") if "examples" not in f.parts] + [ROOT / "README.md"]
    known_here = {ROOT / "docs/contracts/run-directory.md", TRANSLATES}  # which say what was written before
    found = {
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in files
        if file not in known_here
        for match in RETIRED.finditer(file.read_text(encoding="utf-8"))
    }
    assert not found


def _earlier(run: Path) -> None:
    """A proof as earlier versions wrote it."""
    proof = json.loads((run / "proof.json").read_text())
    proof[0]["verdict"], proof[1]["verdict"] = "not judged", "holds"
    (run / "proof.json").write_text(json.dumps(proof))
    seal.renew(run, ["proof.json"])


def test_a_run_of_an_earlier_version_is_reported_in_todays_words(run: Path) -> None:
    _earlier(run)
    page = report(run).read_text()
    assert "not judged" not in page and "cannot tell" in page
    assert "not judged" not in junit(run)
    assert {one["verdict"] for one in read_run(run).proof} <= set(verdict.ORDER)
    assert not any("not judged" in text for text, _ in verdicts(run))


def test_verdicts_are_written_once_and_read_by_all(run: Path) -> None:
    _earlier(run)
    manifest = json.loads((run / "manifest.json").read_text())
    check = {"name": "bytes", "verdict": "fails", "text": "node 0 beside link 6 Mbit/s", "numbers": {}}
    (run / "manifest.json").write_text(json.dumps(manifest | {"checks": [check]}))
    report(run)
    written = json.loads((run / NAME).read_text())
    assert set(written) == {"format", "suspect", "counts", "verdicts"}
    assert {one["verdict"] for one in written["verdicts"]} <= set(verdict.ORDER)
    proofs = [one for one in written["verdicts"] if one["of"] == "proof"]
    assert len(proofs) == len(json.loads((run / "proof.json").read_text()))
    of_bytes = [one for one in written["verdicts"] if (one["of"], one["name"]) == ("check", "bytes")]
    assert [one["verdict"] for one in of_bytes] == ["fails"], "beside those that the report itself makes"
    assert known(run)["check"]["fails"] == 1 and known(run)["proof"]["cannot tell"] == 1
    assert any("1 fails" in text and colour == "red" for text, colour in others(run))
    assert 'name="bytes"' in junit(run)
    seal.seal(run)
    assert not read_run(run).altered
    (run / NAME).write_text((run / NAME).read_text().replace("fails", "holds"))
    assert read_run(run).altered == (NAME,), "whoever changes a verdict is seen"


def test_strict_tells_suspect_before_what_cannot_be_told(run: Path, tmp_path: Path) -> None:
    _earlier(run)
    report(run)
    assert untold(run) >= 1
    assert strictly(suspect=True, directory=run) == 5
    assert strictly(suspect=False, directory=run) == 8
    assert strictly(suspect=False, directory=tmp_path / "nothing") == 0


@pytest.mark.parametrize("text", ["", "[]", '{"counts": 3}', "{"])
def test_a_file_that_is_damaged_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    assert known(tmp_path) == {}
