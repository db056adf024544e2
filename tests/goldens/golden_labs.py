"""Defines the golden experiments (small labs in virtual time), their hashed content, and the inputs on which
the hashes depend.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
RECORD = HERE / "goldens.json"
KEPT = 300  # lines of reference data a file
HOLD_MEMORY = ("nodes", "groups", "metrics")  # tables with memory, which follows the agent's binary
OURS = ("agent", "code", "closed root")  # inputs that this tree makes: a change of these is to be explained


@dataclass(frozen=True)
class Lab:
    """A golden experiment: a topology with parameters and a seed."""

    name: str
    topology: str
    seed: int
    parameters: dict[str, str] = field(default_factory=dict)


LABS = (
    Lab("pair-with-ping", "topologies/pair.yaml", 1, {"hold": "4s"}),
    Lab("ten-clients-qos0", "tests/goldens/golden-qos.yaml", 5, {"qos": "0"}),
    Lab("ten-clients-qos1", "tests/goldens/golden-qos.yaml", 5, {"qos": "1"}),
    Lab("ten-clients-qos2", "tests/goldens/golden-qos.yaml", 5, {"qos": "2"}),
    Lab("every-impairment", "topologies/every-impairment.yaml", 7, {"hold": "80s"}),
    Lab("outage", "topologies/mqtt-outage.yaml", 3, {"clients": "5", "hold": "28s"}),
)


def arguments(lab: Lab) -> list[str]:
    """Returns the arguments for the Python interpreter that run the lab."""
    words = ["-m", "orchestrator.cli.main", "run", lab.topology, "--time", "virtual", "--seed", str(lab.seed)]
    return words + [word for name, value in lab.parameters.items() for word in ("-p", f"{name}={value}")]


def run(lab: Lab, directory: Path) -> Path:
    """Runs the lab below `directory` and returns its run directory; AssertionError with its messages if it
    fails.
    """
    argv = [sys.executable, *arguments(lab), "--results", str(directory / "out")]
    env = {**os.environ, "VNET_STATE_DIR": str(directory / "state")}
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next((directory / "out").glob("*/*/manifest.json")).parent


def inputs(run_dir: Path) -> dict[str, str]:
    """Returns the inputs outside this repository on which the hashes depend: with equal inputs, two machines
    give equal hashes.

    They are the kernel, the packages of the lab's closed root (both from the run's manifest) and the version
    of rustc.
    """
    named = json.loads((run_dir / "manifest.json").read_text())["inputs"]
    found = {name: value for name, value in named.items() if name not in OURS}
    rustc = re.search(rb"rustc version ([0-9.]+)", (PROJECT / "target/release/vnet-agent").read_bytes())
    return found | {"rustc": rustc[1].decode() if rustc else "unknown"}


def ours(run_dir: Path) -> dict[str, str]:
    """Returns the hashes of what this tree made and the lab read: where two machines build different bytes of
    one commit, they tell which.
    """
    named = json.loads((run_dir / "manifest.json").read_text())["inputs"]
    return {name: named[name] for name in OURS if name in named}


def contents(run_dir: Path) -> dict[str, list[str]]:
    """Returns the lines to hash by file: all measurements, and the figures computed from them.

    A capture has one line for each packet. Memory is left out, because it depends on the size of the agent's
    binary. Figures and page are left out, because their drawing depends on the machine's fonts; the tables
    behind them are included.
    """
    found = {f"pcap/{p.name}": list(packets(p.read_bytes())) for p in run_dir.glob("pcap/*.pcap")}
    raw = [run_dir / "raw" / n for n in ("messages.csv", "links.csv", "events.jsonl")]
    for path in [*raw, *run_dir.glob("raw/logs/*.log"), run_dir / "proof.json"]:
        found[str(path.relative_to(run_dir))] = path.read_text(errors="replace").splitlines()
    found["raw/nodes.csv"] = without_memory((run_dir / "raw/nodes.csv").read_text())
    metrics = json.loads((run_dir / "summary.json").read_text())
    found["summary.json"] = [json.dumps(m) for m in metrics if m["name"] != "memory"]
    for path in run_dir.glob("report/tables/*.csv"):
        if path.stem not in HOLD_MEMORY:  # summary.json and raw/nodes.csv hold the rest of these
            found[str(path.relative_to(run_dir))] = path.read_text().splitlines()
    return dict(sorted(found.items()))


def packets(data: bytes) -> Iterator[str]:
    """Yields `seconds length bytes` of each packet of a capture, with a short hash in place of the bytes."""
    order, unit = ("<", 1) if data[:4] == b"\x4d\x3c\xb2\xa1" else ("<", 1000)
    assert data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xd4\xc3\xb2\xa1"), "not a little-endian pcap"
    at = 24
    while at < len(data):
        seconds, fraction, kept, length = struct.unpack_from(order + "IIII", data, at)
        short = hashlib.sha256(data[at + 16 : at + 16 + kept]).hexdigest()[:12]
        yield f"{seconds}.{fraction * unit:09d} {length} {short}"
        at += 16 + kept


def without_memory(text: str) -> list[str]:
    rows = list(csv.DictReader(io.StringIO(text)))
    return [",".join(v for name, v in row.items() if name != "memory_bytes") for row in rows]


def hashes(content: dict[str, list[str]]) -> dict[str, str]:
    """Returns the SHA-256 of the lines of each file."""
    return {name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in content.items()}


def combined(of: dict[str, str]) -> str:
    """Returns one hash for all files of a lab."""
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


def reference(lab: str, file: str) -> Path:
    """Returns the path of the committed first KEPT lines of a file."""
    return HERE / "reference" / lab / file.replace("/", "_")


def kept(file: str) -> bool:
    """Returns whether the repository keeps lines of the file; report tables only repeat summary.json."""
    return not file.startswith("report/")


def first_difference(lab: str, file: str, lines: list[str]) -> str:
    """Returns the first line that differs from the committed one, with its place."""
    path = reference(lab, file)
    if not path.exists():
        return f"{file}: differs; only its hash is kept"
    known = path.read_text().splitlines()
    for number, (was, now) in enumerate(zip(known, lines, strict=False), start=1):
        if was != now:
            return f"{file}, line {number}:\n  was {was}\n  now {now}"
    if len(lines) < len(known) or len(known) < KEPT:
        return f"{file}: {len(known)} lines before, {len(lines)} now; as far as both go they agree"
    return f"{file}: differs after its first {KEPT} lines, the part that is kept as reference"
