"""Tests `--junit` (verdicts as test cases) through the real command line, with the fake driver's figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from command_line import PROJECT, TOPOLOGIES, CommandLine

from orchestrator.cli import errors
from reports.junit import Case, Suite, junit, text_of

PAIR = str(TOPOLOGIES / "pair.yaml")


def cases(file: Path) -> dict[tuple[str, str], str]:
    """Returns the outcome of each test case by (class, name); asserts that the counts of each suite agree."""
    found = {}
    for suite in ElementTree.parse(file).getroot():
        ways = [
            next((e.tag for e in case if e.tag != "system-out"), "passed") for case in suite.iter("testcase")
        ]
        counts = [str(ways.count(way)) for way in ("failure", "error", "skipped")]
        assert counts == [suite.get(name) for name in ("failures", "errors", "skipped")]
        assert suite.get("tests") == str(len(ways))
        for case, way in zip(suite.iter("testcase"), ways, strict=True):
            found[str(case.get("classname")), str(case.get("name"))] = way
    return found


def change(file: Path, **fields: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_verdicts_of_a_run_are_told_apart(vnet: CommandLine) -> None:
    file = vnet.cwd / "verdicts.xml"
    done = vnet("run", PAIR, "--kernel", "fake", "-p", "hold=1s", "--json", "--junit", str(file))
    found = cases(file)
    skipped = [where for where, way in found.items() if way == "skipped"]
    assert skipped and {of for of, _ in skipped} == {"pair.check"}, "of invented figures some cannot be told"
    assert "the fake driver's figures are invented" in file.read_text()
    assert {way for where, way in found.items() if where not in skipped} == {"passed"}
    assert ("pair.proof", "left-access forward delay") in found
    assert any(where == "pair.guarantee" for where, _ in found)

    run_dir = vnet.cwd / json.loads(done.stdout)["run_dir"]
    proof = json.loads((run_dir / "proof.json").read_text())
    proof[0] |= {"verdict": "fails", "reason": "lost\x1b everything"}
    proof[1] |= {"verdict": "not judged", "reason": "too few frames"}
    (run_dir / "proof.json").write_text(json.dumps(proof))
    doubt = {"code": "steal", "text": "steal time", "remedy": "ask again", "suspect": True}
    change(run_dir / "manifest.json", suspect=True, warnings=[doubt])
    vnet("report", str(run_dir), "--junit", str(file))
    found = cases(file)
    names = [f"{one['link']} {one['direction']} {one['quantity']}" for one in proof]
    assert found["pair.proof", names[0]] == "failure"
    assert found["pair.proof", names[1]] == "skipped"
    assert found["pair.run", "not suspect"] == "error" and found["pair.run", "complete"] == "passed"
    assert "steal time; ask again" in file.read_text()

    change(run_dir / "manifest.json", state="failed", error="a node died")
    file.write_text(junit(run_dir))
    assert cases(file)["pair.run", "complete"] == "error"


def test_what_was_refused_leaves_no_verdicts_of_before(vnet: CommandLine) -> None:
    file = vnet.cwd / "verdicts.xml"
    file.write_text("of before")
    vnet("run", "gone.yaml", "--junit", str(file), status=3)
    assert cases(file) == {("gone.run", "gone"): "error"}
    vnet("run", PAIR, "--raw", "--junit", str(file), status=2)
    assert "choose another --junit" in vnet("run", PAIR, "--junit", "no/such/x.xml", status=1).stderr


def test_a_campaign_has_a_suite_a_run_and_claims(vnet: CommandLine) -> None:
    topology = TOPOLOGIES / "mqtt-many-to-one.yaml"
    (vnet.cwd / "c.yaml").write_text(
        f"name: c\ncampaign: {{topologies: [{topology}], factors: {{qos: [0, 1]}}, "
        "parameters: {clients: 3, hold: 1 s}}\n"
    )
    file = vnet.cwd / "verdicts.xml"
    vnet("campaign", "run", "c.yaml", "--kernel", "fake", "--no-page", "--junit", str(file))
    found = cases(file)
    assert [way for (_, name), way in found.items() if name == "complete"] == ["passed", "passed"]
    claims = {way for (where, _), way in found.items() if where == "c.claim"}
    assert "skipped" in claims  # three clients are not the paper's

    lines = (vnet.cwd / "results/c/cells.jsonl").read_text().splitlines()
    failed = json.loads(lines[0]) | {"state": "failed", "error": "no room"}
    (vnet.cwd / "results/c/cells.jsonl").write_text(json.dumps(failed) + "\n")
    vnet("report", "results/c", "--junit", str(file))
    ended = [way for (_, name), way in cases(file).items() if name == "complete"]
    assert sorted(ended) == ["error", "skipped"]
    strict = vnet("report", "results/c", "--strict", status=5)
    assert "the run's state is 'failed': no room" in strict.stderr


def test_what_xml_cannot_hold_is_left_out() -> None:
    text = text_of([Suite("a\x00<b>", (Case("proof", "\ud800&", "failure", "\x1b[31m]]>"),))])
    assert ElementTree.fromstring(text.partition("\n")[2])[0].get("name") == "a?<b>"


def test_the_exit_statuses_are_listed_in_one_place() -> None:
    page = (PROJECT / "docs/contracts/exit-statuses.md").read_text()
    listed = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    known = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    assert listed == sorted(known)
