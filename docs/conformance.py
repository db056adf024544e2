"""Writes the matrix of docs/mqtt-conformance.md from a campaign of topologies/mqtt-conformance.yaml.

    python docs/conformance.py CAMPAIGN [NETWORK]   writes the answers of one network (lte)

A cell is *holds* if all expectations of its case hold, *fails* if one fails, else *cannot tell*, as for a
suspect run. *not offered*: `vnet check` refuses the case at this broker. *not run*: the campaign has no
complete run of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from contract.verdict import FAILS, HOLDS, OPEN
from orchestrator.topology import TopologyError, load
from reports.cell import Cell
from reports.expect.judge import of_run
from reports.study import study_of_campaign

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/mqtt-conformance.md"
CASES = ROOT / "topologies/mqtt-conformance"
NOT_OFFERED, NOT_RUN = "not offered", "not run"
VERSIONS = ("3.1.1", "5")
# broker in files -> its name on the page
BROKERS = {
    "mosquitto": "mosquitto",
    "rabbitmq": "RabbitMQ",
    "mochi": "mochi",
    "rumqttd": "rumqttd",
    "aedes": "aedes",
    "amqtt": "amqtt",
    "moquette": "moquette",
}
Place = tuple[str, str, str]  # case, broker, version
BEGIN, END = "<!-- matrix: docs/conformance.py -->", "<!-- end of the matrix -->"


def versions(case: Path) -> tuple[str, ...]:
    """Returns the versions of MQTT that a case can be run with; one without the parameter is of MQTT 5."""
    return VERSIONS if "\n  version: {" in case.read_text(encoding="utf-8") else ("5",)


def offered(case: Path, broker: str, version: str) -> bool:
    """Returns whether `vnet check` accepts a case at a broker."""
    if version not in versions(case):
        return False
    given = {"broker": broker} | ({"version": version} if len(versions(case)) > 1 else {})
    try:
        load(case, given)
    except TopologyError:
        return False
    return True


def answer(cell: Cell) -> str:
    """Returns the verdict on all expectations of one run together."""
    if cell.run.manifest.suspect:
        return OPEN
    found = {of_run(cell, one).verdict for one in cell.run.plan.expectations}
    return FAILS if FAILS in found else OPEN if OPEN in found or not found else HOLDS


def answers(campaign: Path, network: str) -> dict[Place, str]:
    """Returns the answers of a campaign's complete runs on one network."""
    found: dict[Place, str] = {}
    for cell in study_of_campaign(campaign).cells:
        levels: Mapping[str, object] = cell.levels
        parameters = cell.run.manifest.parameters
        if parameters.get("network") == network:
            case = Path(str(levels.get("topology", cell.scenario))).stem
            version = str(parameters.get("version", "5"))
            found[case, str(parameters["broker"]), version] = answer(cell)
    return found


def matrix(found: Mapping[Place, str]) -> str:
    """Returns the table of all cases and brokers; a column for each version that a broker offers at all."""
    cases = sorted(CASES.glob("*.yaml"))
    can = {(c.stem, b, v): offered(c, b, v) for c in cases for b in BROKERS for v in VERSIONS}
    columns = [(b, v) for b in BROKERS for v in VERSIONS if any(can[c.stem, b, v] for c in cases)]
    lines = [
        f"| case | {' | '.join(f'{BROKERS[b]}, {v}' for b, v in columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for case in cases:
        cells = [
            found.get((case.stem, b, v), NOT_RUN) if can[case.stem, b, v] else NOT_OFFERED for b, v in columns
        ]
        marked = [f"**{cell}**" if cell == FAILS else cell for cell in cells]
        lines.append(f"| [{case.stem}](../topologies/mqtt-conformance/{case.name}) | {' | '.join(marked)} |")
    return "\n".join(lines)


def main() -> None:
    campaign, *more = sys.argv[1:]
    table = matrix(answers(Path(campaign), more[0] if more else "lte"))
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    assert pattern.search(text), f"{PAGE}: has no place for the matrix"
    PAGE.write_text(pattern.sub(lambda _: f"{BEGIN}\n{table}\n{END}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
