"""Tests that the cases of topologies/mqtt-conformance, their campaign and the page that lists them agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.topology import TopologyError, load, load_campaign

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "topologies/mqtt-conformance").glob("*.yaml"))
PAGE = (ROOT / "docs/mqtt-conformance.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| \[([a-z-]+)\]\([^)]*\) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
ROWS = {name: (clause, *answers) for name, clause, *answers in ROW.findall(PAGE)}


def offered(case: Path, broker: str, version: str) -> str | None:
    """Returns the problems that a check has with a case at a broker; None if there is none."""
    given = {"broker": broker}
    if "version:" in case.read_text(encoding="utf-8").split("segments:")[0]:
        given["version"] = version
    try:
        load(case, given)
    except TopologyError as error:
        return "\n".join(map(str, error.problems))
    return None


def test_the_page_has_a_row_for_each_case() -> None:
    assert sorted(ROWS) == sorted(case.stem for case in CASES)
    words = {"holds", "fails", "cannot tell", "not offered", "not run"}
    assert {answer.strip("*") for row in ROWS.values() for answer in row[1:]} <= words


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_case_names_its_clause_and_what_rabbitmq_lacks_is_refused(case: Path) -> None:
    first = case.read_text(encoding="utf-8").splitlines()[0]
    sections = re.findall(r"\d\.\d[\d.]*\d", ROWS[case.stem][0])
    assert sections and all(section in first for section in sections), (first, sections)
    assert offered(case, "mosquitto", "5") is None
    refused = offered(case, "rabbitmq", "3.1.1")
    assert (refused is None) == (ROWS[case.stem][3] != "not offered"), refused
    assert refused is None or "cannot do it" in refused


def test_the_campaign_has_every_case_that_a_broker_offers() -> None:
    campaign = load_campaign(ROOT / "topologies/mqtt-conformance.yaml")
    run = {(cell.topology, cell.parameters["broker"]) for cell in campaign.cells}
    named = {Path(str(topology)).stem for topology, _ in run}
    assert named == {case.stem for case in CASES}
    at_rabbit = {Path(str(topology)).stem for topology, broker in run if broker == "rabbitmq"}
    assert at_rabbit == {case.stem for case in CASES if offered(case, "rabbitmq", "3.1.1") is None}
