"""Checks, outside the nested machine, the runs made inside: reduces them, reports them, and compares them
with the expectations.

`verify.py DIR`: DIR is the directory that images/hil/run.sh wrote. Exit status 0 if everything holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
from hil_machine import PORT_A

from capture.reduce import reduce_run
from reports.papers.industrial_ethernet.tables import LOADS, TAGGING, statistics
from reports.report import report
from reports.study import study_of_run

Facts = Iterator[tuple[str, bool]]
LATE_MS = 40  # ms, in addition to the delay of 10 ms: an emulated machine is late, never early


def main(directory: Path) -> int:
    """Prints a line for each check; returns 1 if one fails, else 0."""
    wrong = tests(directory / "junit.xml")
    for lab, facts in LABS.items():
        runs = sorted((directory / "results" / lab).glob("*/manifest.json"))
        wrong += [f"{lab}: no run came out"] if not runs else run(runs[-1].parent, facts)
    for text in wrong:
        print(f"test-hil: WRONG: {text}")
    return 1 if wrong else 0


def tests(file: Path) -> list[str]:
    """Prints the results of the tests inside the machine, and returns a text if not all passed."""
    if not file.exists():
        return [f"{file}: the tests inside did not end"]
    suite = next(ElementTree.parse(file).getroot().iter("testsuite"))
    counts = {key: int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")}
    print(f"test-hil: in the machine: {counts}, {float(suite.attrib['time']):.0f} s")
    for said in suite.iter("property"):
        print(f"test-hil: {said.attrib['value']}")
    return [] if counts["tests"] and sum(counts.values()) == counts["tests"] else [f"tests inside: {counts}"]


def run(path: Path, facts: Callable[[Path, dict[str, Any]], Facts]) -> list[str]:
    """Reduces and reports one run, and returns a text for every expected fact that does not hold."""
    reduce_run(path)
    page = report(path)
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    proof = json.loads((path / "proof.json").read_text())
    held = {
        "kernel host": manifest["kernel"]["kind"] == "host",
        "complete": manifest["state"] == "complete",
        "proven": all(p["measured"] == 1.0 for p in proof if p["quantity"] == "reach"),
        **dict(facts(path, manifest)),
    }
    print(f"test-hil: {path.parent.name}: {page}")
    return [f"{path.parent.name}: {name}" for name, true in held.items() if not true]


def scenario_1(driver: str) -> Callable[[Path, dict[str, Any]], Facts]:
    """Returns a check that every message arrived once, over proven links, with the machine's own netem."""

    def facts(path: Path, manifest: dict[str, Any]) -> Facts:
        rows = json.loads((path / "summary.json").read_text())
        summary = {row["name"]: row["value"] for row in rows if row["traffic_class"]}
        proof = json.loads((path / "proof.json").read_text())
        delays = [p["measured"] for p in proof if (p["link"], p["quantity"]) == ("wan", "delay")]
        scheduled, received = summary.get("messages_scheduled"), summary.get("messages_received")
        print(
            f"test-hil: {path.parent.name}: {scheduled} messages scheduled, {received} received, 10 ms took "
            + ", ".join(f"{delay / 1e6:.1f} ms" for delay in delays)
        )
        yield f"driver {driver}", manifest["driver"] == driver
        yield "messages", bool(scheduled) and scheduled == received
        yield "none lost or twice", summary.get("messages_lost") == 0 == summary.get("messages_duplicated")
        yield "captured", manifest["captures"]["broker"]["packets"] > 0
        yield "delays of netem", len(delays) == 2 and all(9e6 < d < LATE_MS * 1e6 for d in delays)
        yield "both links asked", {p["link"] for p in proof} >= {"cable", "wan"}

    return facts


def qualification(path: Path, _: dict[str, Any]) -> Facts:
    """Yields whether each test of RFC 2544 through both ports ended with a finding, and whether the page has
    the table.
    """
    rows = json.loads((path / "summary.json").read_text())
    found = {row["name"]: row["value"] for row in rows if row["frame_bytes"] == 512}
    shown = {name: found.get(name) for name in ("throughput", "latency_tagged", "back_to_back")}
    print(f"test-hil: {path.parent.name}: {shown}")
    yield from ((name, bool(value)) for name, value in shown.items())
    yield "the page has the RFC's table", "RFC 2544" in (path / "report" / "index.html").read_text()


def interaction(path: Path, manifest: dict[str, Any]) -> Facts:
    """Yields whether updates and their answers passed the cable, in frames of at most 127 bytes."""
    messages = pl.read_parquet(path / "messages.parquet")
    replied, owed = messages["replied_ns"].drop_nulls().len(), messages.height
    sizes = pl.read_parquet(path / "packets" / "at-utility.parquet")["wire_bytes"].to_list()
    longest = max(sizes, default=0)
    print(f"test-hil: {path.parent.name}: {owed} updates, {replied} answered, longest frame {longest} bytes")
    yield "the utility has a port", PORT_A in manifest["parameters"]["nics"]
    yield "all answered", owed > 0 and replied == owed
    yield "short frames", 0 < longest <= 127


def priorities(path: Path, manifest: dict[str, Any]) -> Facts:
    """Yields whether messages with priority in the master's stack, on their way to the port, do not wait for
    its transfer.
    """
    found = statistics(cell for cell in study_of_run(path).cells)
    for (tagging, load), at in found.items():
        trips = f"{at['mean'] / 1e3:.2f} +- {at['std'] / 1e3:.2f} ms, {at['n']:.0f} of {at['requested']:.0f}"
        print(f"test-hil: {path.parent.name}: {tagging}, {load}: {trips}")
    yield "the master has a port", PORT_A in manifest["parameters"]["nics"]
    yield "all round trips", set(found) == {(tagging, load) for tagging in TAGGING for load in LOADS}
    waits = {tagging: found[tagging, "transmit"] for tagging in TAGGING if (tagging, "transmit") in found}
    yield "priority takes the transfer away", waits["queues"]["mean"] < waits["untagged"]["mean"] / 2
    yield "none is lost at priority", waits["queues"]["n"] == waits["queues"]["requested"]


LABS = {
    **{f"interaction-{model}": interaction for model in ("udp", "router-dealer", "pub-sub", "pgm")},
    "mqtt-hil-light": scenario_1("light"),
    "mqtt-hil": scenario_1("vm"),
    "nic-qualification": qualification,
    "priority-stacks": priorities,
}

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
