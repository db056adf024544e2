"""Tests that all readers take the verdicts from one file, with the same words, also for runs of earlier
versions.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from synthetic import write_campaign, write_run
from synthetic_shape import Shape

import vnet
from contract import seal, verdict
from contract.rundir import VERDICTS
from orchestrator.cli import report as report_module
from orchestrator.cli.headlines import others, verdicts
from orchestrator.cli.run import judged_status
from reports import verdicts as of_all
from reports.judged import Judged, known, read, summary, untold
from reports.junit import junit
from reports.report import campaign_report, report
from reports.rundir import read_run
from reports.verdicts import counted

ROOT = Path(__file__).parents[2]
# Words for verdicts in earlier versions. Only contract/verdict.py may contain them, to translate them.
# `held`, `met` and `broken` are ordinary words too: they count as verdicts if they stand alone, in quotes, in
# a cell of a table, or behind the name of an expectation.
RETIRED = re.compile(
    r"not judged|cannot be judged|not be judged|unjudged"
    r"|[\"'>|*] ?(?:does not hold|do not hold|held|met|broken) ?[\"'<|*]"
    r"|(?:promise|guarantee|proof|claim|expectation|verdict)s? (?:is|are|was|were|not) (?:held|met|broken)\b"
    r"|(?:link|every|all|of the run) checks? (?:has |have )?(?:passed|failed)\b",
    re.IGNORECASE,
)
CODE = ("capture", "contract", "reports", "orchestrator", "vnet", "images", "bench")
KINDS = ("py", "rs", "sh", "j2", "js", "css", "html", "yaml", "yml", "json", "toml")
TRANSLATES = ROOT / "contract" / "verdict.py"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", Shape(clients=3, ramp_s=3, hold_s=8))


def test_words_of_earlier_versions_are_translated() -> None:
    assert [verdict.word(said) for said in ("not judged", "cannot be judged", "does not hold", None)] == [
        verdict.OPEN, verdict.OPEN, verdict.FAILS, verdict.OPEN,
    ]  # fmt: skip
    assert [verdict.word(said) for said in verdict.ORDER] == list(verdict.ORDER)
    assert [verdict.of_truth(one) for one in (True, False, None)] == ["holds", "fails", "cannot tell"]


@pytest.mark.parametrize(
    "text",
    ["'held'", "<td>met</td>", "| not judged |", "the guarantee was met", '"broken"', "every check passed"],
)
def test_retired_words_are_found_however_they_are_quoted(text: str) -> None:
    assert RETIRED.search(text)


def test_retired_words_are_nowhere() -> None:
    """Shows that retired words are in no code, page template or docs page; published examples keep theirs."""
    files = [f for top in CODE for end in KINDS for f in (ROOT / top).rglob(f"*.{end}")]
    files += [f for f in (ROOT / "docs").rglob("*.md") if "examples" not in f.parts] + [ROOT / "README.md"]
    # these pages explain the retired words
    known_here = {ROOT / "docs/contracts/run-directory.md", TRANSLATES}
    found = {
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in files
        if file not in known_here
        for match in RETIRED.finditer(file.read_text(encoding="utf-8"))
    }
    assert not found


CHIP = re.compile(r'<span class="chip [a-z]+">(?:[\d,]+ )?(.*?)</span>')


def test_chips_of_a_page_have_the_words_of_the_terminal(tmp_path: Path) -> None:
    """Shows that the page's chips say `holds` and `fails`, as the terminal does."""
    shapes = [Shape(clients=3, hold_s=8, loss=loss, suspect=bool(loss)) for loss in (0.0, 0.1)]
    run = write_run(tmp_path / "run", shapes[1])
    _earlier(run)
    words = set(CHIP.findall(report(run).read_text()))
    words |= set(CHIP.findall(campaign_report(write_campaign(tmp_path / "campaign", shapes)).read_text()))
    assert {"holds", "fails", "cannot tell"} <= words <= set(verdict.ORDER)


def _earlier(run: Path) -> None:
    """Returns a proof in the format of earlier versions."""
    proof = json.loads((run / "proof.json").read_text())
    proof[0]["verdict"], proof[1]["verdict"] = "not judged", "holds"
    (run / "proof.json").write_text(json.dumps(proof))
    seal.renew(run, ["proof.json"])


def test_a_run_of_an_earlier_version_is_reported_in_todays_words(run: Path) -> None:
    _earlier(run)
    page = report(run).read_text()
    assert "cannot tell" in page and not RETIRED.findall(
        re.sub("<style.*?</style>", "", page, flags=re.DOTALL)
    )
    assert not RETIRED.findall(junit(run)) and "cannot tell" in (run / VERDICTS).read_text()
    tables = [*(run / "report").rglob("*.csv"), run / "summary.json", run / VERDICTS]
    assert not [f.name for f in tables if RETIRED.search(f.read_text())]
    assert {one.verdict for one in read_run(run).proof} <= set(verdict.ORDER)
    assert not any("not judged" in text for text, _ in verdicts(summary(run)))


def test_verdicts_are_written_once_and_read_by_all(run: Path) -> None:
    _earlier(run)
    manifest = json.loads((run / "manifest.json").read_text())
    check = {"name": "bytes", "verdict": "fails", "text": "node 0 beside link 6 Mbit/s", "numbers": {}}
    (run / "manifest.json").write_text(json.dumps(manifest | {"checks": [check]}))
    report(run)
    written = json.loads((run / VERDICTS).read_text())
    assert set(written) == {"format", "suspect", "counts", "verdicts"}
    assert {one["verdict"] for one in written["verdicts"]} <= set(verdict.ORDER)
    proofs = [one for one in written["verdicts"] if one["of"] == "proof"]
    assert len(proofs) == len(json.loads((run / "proof.json").read_text()))
    of_bytes = [one for one in written["verdicts"] if (one["of"], one["name"]) == ("check", "bytes")]
    assert [one["verdict"] for one in of_bytes] == ["fails"], "beside those that the report itself makes"
    assert known(run)["check"]["fails"] == 1 and known(run)["proof"]["cannot tell"] == 1
    assert any("1 fails" in text and colour == "red" for text, colour in others(summary(run)))
    assert 'name="bytes"' in junit(run)
    seal.seal(run)
    assert not read_run(run).altered
    (run / VERDICTS).write_text((run / VERDICTS).read_text().replace("fails", "holds"))
    assert read_run(run).altered == (VERDICTS,), "whoever changes a verdict is seen"


def test_strict_tells_suspect_before_what_cannot_be_told(run: Path, tmp_path: Path) -> None:
    _earlier(run)
    report(run)
    assert untold(known(run)) >= 1
    assert judged_status(run, suspect=True, strict=True) == 5
    assert judged_status(run, suspect=False, strict=True) == 8
    assert judged_status(tmp_path / "nothing", suspect=False, strict=True) == 0
    (run / VERDICTS).write_text("{")
    assert judged_status(run, suspect=False, strict=True) == 8, "a damaged file holds nothing"
    (run / VERDICTS).unlink()
    assert judged_status(run, suspect=False, strict=True) == 8, "a run without a page is judged all the same"


def test_a_report_has_the_same_status(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _earlier(run)
    monkeypatch.setattr(report_module, "write", lambda *_: run / "report" / "index.html")

    def status(suspect: list[str], *options: str) -> int:
        monkeypatch.setattr(report_module, "doubted", lambda _: suspect)
        done = CliRunner().invoke(report_module.report_command, [str(run), *options], standalone_mode=False)
        assert done.exception is None, done.exception
        return int(done.return_value)

    assert [status(doubts, "--strict") for doubts in ([], ["suspect: x"])] == [8, 5]
    assert status(["suspect: x"]) == 0


def loaded(run: Path) -> vnet.Run:
    found = vnet.load(run)
    assert isinstance(found, vnet.Run)
    return found


def _changed(directory: Path, subject: str, now: str) -> str:
    """Changes every verdict on the subject in verdicts.json; returns the name of the first."""
    data = json.loads((directory / VERDICTS).read_text())
    changed = [one for one in data["verdicts"] if one["of"] == subject]
    for one in changed:
        one |= {"verdict": now, "reason": f"{subject} as the file says"}
    data["counts"][subject] = {now: len(changed)}
    (directory / VERDICTS).write_text(json.dumps(data))
    return str(changed[0]["name"])


@pytest.mark.parametrize("now", ["cannot tell", "holds"])
def test_an_undecided_check_below_trusted_is_explained(
    run: Path, now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(run)
    _changed(run, "check", now)
    monkeypatch.setattr("reports.verdicts.write", lambda _study: None)
    page = report(run).read_text()
    assert "<strong>Trusted.</strong>" in page
    assert ("could not be made: no reason for doubt" in page) == (now == "cannot tell")


@pytest.mark.parametrize("subject", ["proof", "guarantee", "check"])
def test_nobody_else_judges(run: Path, subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that page, terminal, JUnit, exit status and Python API show a verdict that is only in the file,
    so none of them judges by itself.
    """
    manifest = json.loads((run / "manifest.json").read_text())
    check = {"name": "bytes", "verdict": "holds", "text": "6 beside 6 Mbit/s", "numbers": {}}
    (run / "manifest.json").write_text(json.dumps(manifest | {"checks": [check]}))
    report(run)
    name = _changed(run, subject, "cannot tell")
    monkeypatch.setattr("reports.verdicts.write", lambda _study: None)
    page = report(run).read_text()
    section = {"proof": "proof-section", "guarantee": "validation", "check": "checks"}[subject]
    shown = page[page.index(f'id="{section}"') :]
    assert "cannot tell" in shown[: shown.index("</section>")]
    case = next(
        c for c in ElementTree.fromstring(junit(run).encode()).iter("testcase") if c.get("name") == name
    )
    assert case.find("skipped") is not None
    lines = dict([*verdicts(summary(run)), *others(summary(run))])
    assert any("cannot tell" in text and colour == "yellow" for text, colour in lines.items())
    assert judged_status(run, suspect=False, strict=True) == (0 if subject == "check" else 8)
    found = loaded(run).verdicts.filter(of=subject)["verdict"].unique().to_list()
    assert found == ["cannot tell"]


def test_a_campaign_reads_the_files_of_its_runs(tmp_path: Path) -> None:
    directory = write_campaign(tmp_path / "campaign", [Shape(qos=qos, hold_s=8) for qos in (0, 1)])
    lines = [json.loads(line) for line in (directory / "cells.jsonl").read_text().splitlines()]
    (directory / "campaign.json").write_text(json.dumps({"name": "c", "cells": lines}))
    campaign_report(directory)
    cells = [directory / str(line["run_dir"]) for line in lines]
    assert known(directory)["proof"].keys() == {"holds"}
    name = _changed(cells[0], "proof", "fails")
    cases = list(ElementTree.fromstring(junit(directory).encode()).iter("testcase"))
    assert [c.find("failure") is not None for c in cases if c.get("name") == name].count(True) == 1
    (directory / VERDICTS).unlink()
    assert counted(directory)["proof"]["fails"] == known(cells[0])["proof"]["fails"]


def test_a_campaign_counts_the_checks_that_the_reports_of_its_runs_make(tmp_path: Path) -> None:
    """Shows that a campaign counts the verdicts of checks that its runs' own reports wrote."""
    directory = write_campaign(tmp_path / "campaign", [Shape(qos=qos, hold_s=8) for qos in (0, 1)])
    lines = [json.loads(line) for line in (directory / "cells.jsonl").read_text().splitlines()]
    campaign_report(directory)
    runs = [read(directory / str(line["run_dir"])) or () for line in lines]
    found = [one.verdict for run in runs for one in run if one.of == "check"]
    assert found and sum(known(directory)["check"].values()) == len(found)


def test_python_speaks_todays_words(run: Path) -> None:
    _earlier(run)
    found = loaded(run)
    assert found.proof["verdict"].to_list()[:2] == ["cannot tell", "holds"]
    with pytest.raises(vnet.LoadError, match="`vnet report DIR` judges"):
        _ = found.verdicts
    report(run)
    assert "cannot tell" in loaded(run).verdicts["verdict"].to_list()


@pytest.mark.parametrize("text", ["", "[]", '{"counts": 3}', "{"])
def test_a_file_that_is_damaged_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / VERDICTS).write_text(text)
    assert known(tmp_path) == {}


def test_expectations_are_judged_again_after_a_further_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Judged("expectation", "few lost", "fails", "5 messages")
    monkeypatch.setattr(of_all, "study_of_campaign", lambda directory: None)
    monkeypatch.setattr(of_all, "on_conditions", lambda study: iter([now]))
    old = {"of": "expectation", "name": "few lost", "verdict": "holds", "reason": ""}
    (tmp_path / VERDICTS).write_text(json.dumps({"format": 1, "verdicts": [old], "counts": {}}))
    # The file's own verdict counts as long as no cell ended later.
    assert [one.verdict for one in of_all.of_expectations(tmp_path)] == ["holds"]
    cells = tmp_path / "cells.jsonl"
    cells.write_text("")
    for later_s, word in ((-60, "holds"), (60, "fails")):
        at = (tmp_path / VERDICTS).stat().st_mtime + later_s
        os.utime(cells, (at, at))
        assert [one.verdict for one in of_all.of_expectations(tmp_path)] == [word]
