"""Tests that the cases of topologies/mqtt-conformance, their campaign and the page that lists them agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.topology import TopologyError, load, load_campaign

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "topologies/mqtt-conformance").glob("*.yaml"))
PAGE = (ROOT / "docs/mqtt-conformance.md").read_text(encoding="utf-8")
CLAUSE = re.compile(r"^\| ([a-z-]+) \| (MQTT [^|]*) \|$", re.MULTILINE)
CLAUSES = dict(CLAUSE.findall(PAGE))
MATRIX = PAGE[PAGE.index("<!-- matrix of lte") : PAGE.index("<!-- end of the matrix")].splitlines()
HEAD = [cell.strip() for cell in MATRIX[1].strip("|").split("|")][1:]
ANSWERS = {
    line[3 : line.index("]")]: [cell.strip(" *") for cell in line.strip("|").split("|")][1:]
    for line in MATRIX
    if line.startswith("| [")
}


def offered(case: Path, broker: str, version: str) -> str | None:
    """Returns the errors that `vnet check` finds in a case with a broker; None if there is none."""
    given = {"broker": broker}
    if "version:" in case.read_text(encoding="utf-8").split("segments:")[0]:
        given["version"] = version
    try:
        load(case, given)
    except TopologyError as error:
        return "\n".join(map(str, error.problems))
    return None


def test_the_page_has_a_row_for_each_case() -> None:
    assert sorted(CLAUSES) == sorted(ANSWERS) == sorted(case.stem for case in CASES)
    words = {"holds", "fails", "cannot tell", "not offered", "not run"}
    assert all(len(row) == len(HEAD) for row in ANSWERS.values())
    assert {answer for row in ANSWERS.values() for answer in row} <= words
    assert {"mosquitto", "RabbitMQ", "mochi", "rumqttd", "aedes", "amqtt", "moquette"} == {
        column.rpartition(",")[0] for column in HEAD
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_case_names_its_clause_and_what_a_broker_lacks_is_refused(case: Path) -> None:
    first = case.read_text(encoding="utf-8").splitlines()[0]
    sections = re.findall(r"\d\.\d[\d.]*\d", CLAUSES[case.stem])
    assert sections and all(section in first for section in sections), (first, sections)
    assert offered(case, "mosquitto", "5") is None
    for column, answer in zip(HEAD, ANSWERS[case.stem], strict=True):
        name, _, version = column.rpartition(", ")
        if version == "3.1.1" and "version: {" not in case.read_text(encoding="utf-8"):
            assert answer == "not offered"
            continue
        refused = offered(case, name.lower(), version)
        assert (refused is None) == (answer != "not offered"), refused
        assert refused is None or "cannot do it" in refused


def test_the_campaign_has_every_case_that_a_broker_offers() -> None:
    campaign = load_campaign(ROOT / "topologies/mqtt-conformance.yaml")
    run = {(Path(str(cell.topology)).stem, str(cell.parameters["broker"])) for cell in campaign.cells}
    assert {case for case, _ in run} == {case.stem for case in CASES}
    for broker in ("mosquitto", "rabbitmq", "mochi", "rumqttd", "aedes", "amqtt"):
        can = {c.stem for c in CASES if any(offered(c, broker, v) is None for v in ("3.1.1", "5"))}
        assert {case for case, of in run if of == broker} == can, broker
