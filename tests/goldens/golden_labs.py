"""Golden experiments: small labs in virtual time, what is hashed of them, what the hashes depend on."""

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
    """One golden: a topology with parameters and a seed."""

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
    """For the interpreter: the command that runs the lab."""
    words = ["-m", "orchestrator.cli.main", "run", lab.topology, "--time", "virtual", "--seed", str(lab.seed)]
    return words + [word for name, value in lab.parameters.items() for word in ("-p", f"{name}={value}")]


def run(lab: Lab, directory: Path) -> Path:
    """Run directory of the lab, run anew below `directory`; AssertionError with its words if it fails."""
    argv = [sys.executable, *arguments(lab), "--results", str(directory / "out")]
    env = {**os.environ, "VNET_STATE_DIR": str(directory / "state")}
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next((directory / "out").glob("*/*/manifest.json")).parent


def inputs(run_dir: Path) -> dict[str, str]:
    """What the hashes depend on that is not in this tree; the same on two machines: the same hashes.

    From the run's manifest: the kernel, and the packages of the lab's closed root; not what this tree makes.
    """
    named = json.loads((run_dir / "manifest.json").read_text())["inputs"]
    found = {name: value for name, value in named.items() if name not in OURS}
    rustc = re.search(rb"rustc version ([0-9.]+)", (PROJECT / "target/release/vnet-agent").read_bytes())
    return found | {"rustc": rustc[1].decode() if rustc else "unknown"}


def contents(run_dir: Path) -> dict[str, list[str]]:
    """File -> its lines as they are hashed: all that was measured, and the figures computed from it.

    A capture is a line a packet. Memory is left out: it follows the size of the agent's binary. Figures and
    page are left out too: their drawing depends on the machine's fonts; the tables behind them are in.
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
    """`seconds length bytes` of each packet of a capture, the bytes as a short hash."""
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
    """File -> SHA-256 of its lines."""
    return {name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in content.items()}


def combined(of: dict[str, str]) -> str:
    """One hash for all files of a lab."""
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


def reference(lab: str, file: str) -> Path:
    """Where the first KEPT lines of a file are committed."""
    return HERE / "reference" / lab / file.replace("/", "_")


def kept(file: str) -> bool:
    """Whether reference data of a file are kept: a table only repeats what is in summary.json."""
    return not file.startswith("report/")


def first_difference(lab: str, file: str, lines: list[str]) -> str:
    """The first line that is not as committed, with its place."""
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
