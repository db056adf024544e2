"""Tests that files made to take for ever, or to fill the memory, are refused in bounded time and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

CPU_S, MEMORY = 60, 3 << 30  # enough for a slow machine that also runs other tests
RUN = """
import sys
from pathlib import Path
from orchestrator.exchange import compose, containerlab, core, gns3, kathara, mahimahi, netlab, writing
from orchestrator.topology import TopologyError
from orchestrator.topology.graphml import topology_text
from orchestrator.topology.loading import read_bytes
file = Path(sys.argv[2])
try:
    if sys.argv[1] == "graphml":
        topology_text("x", read_bytes(file), "x")
    else:
        writing.write(globals()[sys.argv[1]].read(file))
except TopologyError as error:
    sys.exit(f"refused: {error}")
"""
ZOO = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph>'


def lines(count: int, text: str) -> str:
    return "".join(text.replace("#", str(number)) for number in range(count))


MANY, DTD, LAB = "more than 4000", "document type", "a[0]=A\nb[0]=A\na[exec]="
END = "</graph></graphml>"
CHAIN = "".join(f"  g{n}: {{members: [g{n + 1}]}}\n" for n in range(300)) + "  g300: {members: [a]}\n"
PAIR = "nodes: [a, b]\nlinks: [a-b]\ndefaults.device: linux\ngroups:\n"
# Tool, text of the file, and words (with | between them) of which the error has one; "": the file may be
# read.
HEAVY = {
    "graphml-nodes": ("graphml", ZOO + lines(40_000, '<node id="#"/>') + END, MANY),
    "graphml-deep": ("graphml", ZOO + "<node>" * 50_000 + "</node>" * 50_000, "nested"),
    "graphml-entities": ("graphml", f'<!DOCTYPE g [<!ENTITY a "x"><!ENTITY b "&a;&a;">]>{ZOO}{END}', DTD),
    "core-devices": ("core", f"<scenario><devices>{lines(20_000, '<device/>')}</devices></scenario>", MANY),
    "core-entities": ("core", '<!DOCTYPE s [<!ENTITY a "x">]><scenario>&a;</scenario>', DTD),
    "containerlab-aliases": (
        "containerlab",
        "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}, *a{n}]\n" for n in range(30)),
        "expand to more",
    ),
    "containerlab-deep": ("containerlab", "[" * 90_000, "nested|nest|not YAML"),
    "kathara-machines": ("kathara", lines(60_000, "a#[0]=A\n"), MANY),
    "kathara-loop": ("kathara", LAB + "i=0; while [ $i -ge 0 ]; do i=$((i+1)); done\n", "runs more"),
    "kathara-words": ("kathara", LAB + "echo {1..99999}{1..99999}\n", "expands to more"),
    "kathara-deep": ("kathara", LAB + "$(" * 9_000 + ")" * 9_000 + "\n", ""),
    "kathara-power": ("kathara", LAB + "ip addr add $((9**9**9**9)) dev eth0\n", ""),
    "netlab-groups": ("netlab", PAIR + CHAIN, "more than 100 groups"),
    "netlab-expression": ("netlab", PAIR + "  g: {members: ['~(a+)+x']}\n", "may never end"),
    "compose-braces": (
        "compose", "services: {a: {image: '" + "${A:-" * 20_000 + "}" * 20_000 + "'}}\n", "",
    ),
    "compose-replicas": ("compose", "services:\n" + lines(100, "  a#: {scale: 1000}\n"), MANY),
    "mahimahi-shells": ("mahimahi", "mm-delay " * 90_000 + "\n", "has no number"),
}  # fmt: skip


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_file_is_refused_or_read_within_its_bounds(name: str, tmp_path: Path) -> None:
    tool, text, said = HEAVY[name]
    file = tmp_path / ("lab.conf" if tool == "kathara" else "file")
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", RUN, tool, str(file)],
        preexec_fn=bounded,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), (done.returncode, done.stderr[-500:])
    assert "Traceback" not in done.stderr, done.stderr[-500:]
    if said:
        assert done.returncode == 1 and any(one in done.stderr for one in said.split("|")), done.stderr[:500]
