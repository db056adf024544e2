"""Writes the matrix of docs/mqtt-conformance.md from campaigns of topologies/mqtt-conformance.yaml and
topologies/mqtt-conformance-real.yaml.

    python docs/conformance.py CAMPAIGN...              writes the answers of each network that has runs
    python docs/conformance.py --failures CAMPAIGN...   prints each failure with the run's directory

A cell is *holds* if all expectations of its case hold, *fails* if one fails, else *cannot tell*, as for a
suspect run. *not offered*: `vnet check` refuses the case at this broker. *not run*: the campaign has no
complete run of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
END = "<!-- end of the matrix -->"
NETWORKS = ("lte", "lossy-ethernet")
# case -> codes of warnings that it causes: of two clients with one identifier, one is always disconnected.
BROUGHT_ABOUT = {"takeover": ("sessions",)}


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


def suspicions(cell: Cell) -> list[str]:
    """Returns the reasons why a run is suspect, without those that the case itself causes."""
    brought = BROUGHT_ABOUT.get(case_of(cell), ())
    return [
        one["text"] for one in cell.run.manifest.warnings if one["suspect"] and one["code"] not in brought
    ]


def case_of(cell: Cell) -> str:
    return Path(str(cell.levels.get("topology", cell.scenario))).stem.removeprefix("mqtt-")


def answer(cell: Cell) -> str:
    """Returns the verdict on all expectations of one run together."""
    if suspicions(cell):
        return OPEN
    found = {of_run(cell, one).verdict for one in cell.run.plan.expectations}
    return FAILS if FAILS in found else OPEN if OPEN in found or not found else HOLDS


def places(campaigns: Iterable[Path], network: str) -> Iterator[tuple[Place, Cell]]:
    """Yields the complete runs of campaigns on one network, each with its place in the matrix."""
    for campaign in campaigns:
        for cell in study_of_campaign(campaign).cells:
            parameters = cell.run.manifest.parameters
            if parameters.get("network") == network:
                yield (case_of(cell), str(parameters["broker"]), str(parameters.get("version", "5"))), cell


def failures(campaigns: Sequence[Path]) -> Iterator[str]:
    """Yields a line for each expectation that does not hold, with its reason and the run's directory."""
    for network in NETWORKS:
        for place, cell in places(campaigns, network):
            where = " ".join((*place, network))
            for one in cell.run.plan.expectations:
                if (found := of_run(cell, one)).verdict != HOLDS:
                    yield f"{where}: {found.verdict}: {one.text}: {found.reason} ({cell.run.path})"
            for reason in suspicions(cell):
                yield f"{where}: suspect: {reason}"


def matrix(found: Mapping[Place, str]) -> str:
    """Returns the table of all cases and brokers, with a column for each version that a broker offers."""
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
    campaigns = [Path(word) for word in sys.argv[1:] if word != "--failures"]
    if "--failures" in sys.argv[1:]:
        for line in failures(campaigns):
            print(line)
        return
    text = PAGE.read_text(encoding="utf-8")
    for network in NETWORKS:
        if found := {place: answer(cell) for place, cell in places(campaigns, network)}:
            begin, table = f"<!-- matrix of {network}: docs/conformance.py -->", matrix(found)
            pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
            assert pattern.search(text), f"{PAGE}: has no place for the matrix of {network}"
            before, after = pattern.split(text, maxsplit=1)
            text = f"{before}{begin}\n{table}\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
