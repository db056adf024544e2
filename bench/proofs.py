"""Measures the share of link quantities that hold: sets up and proves labs, without their software.

    python bench/proofs.py                                   every topology that ships, in virtual time
    python bench/proofs.py --record                          the same; writes the counts into docs/proofs.json
    python bench/proofs.py --time real --kernel uml FILES    some of them in real time

Takes at most `--most` cells of a campaign, evenly chosen from those whose links differ. Leaves out labs that
this machine cannot set up (virtual machines in virtual time, for example), and says why. Prints one line for
each lab, each quantity that does not hold with its reason, and the shares. `docs/proofs.json` has the counts
of each file; `tests/virtual/test_shipped_proofs.py` compares them with new proofs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from contract import rundir
from contract.plan import Plan
from contract.proof import Proven
from contract.verdict import OPEN
from orchestrator.kernel.protocol import KernelError
from orchestrator.plan.build import make_plan
from orchestrator.run.directories import make_dir
from orchestrator.run.prepare import Request, prepare_plan
from orchestrator.run.run import execute
from orchestrator.topology import Topology, TopologyError, load, load_campaign

Loaded = TypeVar("Loaded")
ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs" / "proofs.json"
FOLDERS = ("", "papers", "atlas", "hunt", "mqtt-conformance")  # of topologies/
SMALL = {"clients": 10, "publishers": 10, "meters": 10}  # small values for files that have such a parameter
HOLD_NS = 100_000_000
MOST = 4
SLOTS = "slots let frames go together"  # the beginning of the reason in proof.json


@dataclass(frozen=True)
class Lab:
    """One lab whose links are proven: its name, its topology file and its plan."""

    name: str
    file: Path
    plan: Plan


def labs_of(file: Path, most: int = MOST) -> list[Lab]:
    """Returns at most `most` labs of a file, evenly chosen from those whose links differ; raises
    TopologyError if the file is refused.
    """
    different = list({_links(lab.plan): lab for lab in _labs(file)}.values())
    return different[:: max(1, -(-len(different) // most))]


def _labs(file: Path) -> list[Lab]:
    try:
        cells = _small(lambda small: load_campaign(file, small).cells, load_campaign(file).cells[0].loaded)
        found = [(cell.name, make_plan(cell.loaded, None, cell.seed)) for cell in cells]
    except TopologyError:  # the file has no campaign
        found = [(file.stem, make_plan(_small(lambda small: load(file, small), load(file))))]
    return [Lab(f"{file.stem}: {name}", file, bare(plan)) for name, plan in found]


def _small(loaded: Callable[[dict[str, Any]], Loaded], topology: Topology) -> Loaded:
    """Returns the result of `loaded`: with few clients if the file has a parameter for them that is no
    factor, else with its defaults.
    """
    try:
        return loaded({name: value for name, value in SMALL.items() if name in topology.parameters})
    except TopologyError:
        return loaded({})


def _links(plan: Plan) -> str:
    return repr([(link.forward.impairment, link.reverse.impairment, link.half_duplex) for link in plan.links])


def bare(plan: Plan) -> Plan:
    """Returns the plan without everything that comes after the proof: software with its files, captures,
    events and flows.
    """
    nodes = tuple(
        replace(node, software=(), mounts_read=(), mounts_write=(), mounts_copy=()) for node in plan.nodes
    )
    return replace(
        plan, nodes=nodes, captures=(), events=(), flows=(), receivers={}, programs=(), ramp_ns=0,
        hold_ns=HOLD_NS, drain_ns=0,
    )  # fmt: skip


def proven(lab: Lab, out: Path, mode: str, kernel: str) -> list[Proven]:
    """Returns the rows of proof.json of one lab; raises KernelError or TopologyError if the lab cannot be set
    up.
    """
    request = Request(lab.file, {}, time=mode, kernel=kernel)
    prepared = prepare_plan(request, lab.plan, out)
    run_dir = make_dir(out / lab.plan.lab, "proof")
    outcome = execute(prepared, run_dir, lambda _event: None, tables=False)
    if outcome.state != "complete":
        raise KernelError(f"{lab.name}: {outcome.state}: {outcome.error}")
    return rundir.read_proof(run_dir)


def shipped() -> Iterator[Path]:
    """Yields every topology file that the project ships."""
    for folder in FOLDERS:
        yield from sorted((ROOT / "topologies" / folder).glob("*.yaml"))


def hidden(line: Proven) -> bool:
    """Returns whether the verdict is "cannot tell" because frames cannot show the quantity, however many
    there are: a rate behind slots.
    """
    return line.verdict == OPEN and line.quantity == "rate" and line.reason.startswith(SLOTS)


def counts(proofs: Iterable[list[Proven]]) -> dict[str, int]:
    """Returns the number of labs, and of quantities by verdict, from the rows of each lab's proof.json."""
    found: Counter[str] = Counter()
    for lines in proofs:
        found["labs"] += 1
        found.update("hidden" if hidden(line) else str(line.verdict) for line in lines)
    return dict(sorted(found.items()))


def told(lab: Lab, lines: list[Proven], took_s: float) -> None:
    """Prints the verdicts of one proof."""
    counted = Counter(str(line.verdict) for line in lines)
    said = ", ".join(f"{number} {word}" for word, number in sorted(counted.items())) or "no link"
    print(f"{lab.name}: {said} ({took_s:.1f} s)", flush=True)
    for text in dict.fromkeys(
        f"  {line.quantity}: {line.verdict}: {line.reason}" for line in lines if line.verdict != "holds"
    ):
        print(text, flush=True)


def _tried(file: Path, place: Path, options: argparse.Namespace) -> dict[str, int] | str:
    """Proves the labs of one file, prints the results and returns the counts, or why the file is left out."""
    proofs = []
    try:
        for lab in labs_of(file, options.most):
            began = time.monotonic()
            proofs.append(proven(lab, place, options.time, options.kernel))
            told(lab, proofs[-1], time.monotonic() - began)
    except (TopologyError, KernelError) as error:
        why = str(error).splitlines()[0].replace(f"{ROOT}/", "")
        print(f"{file}: left out: {why}", flush=True)
        return why
    return counts(proofs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--time", choices=("virtual", "real"), default="virtual")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--most", type=int, default=MOST, help="labs of one campaign")
    parser.add_argument("--record", action="store_true", help="write docs/proofs.json")
    options = parser.parse_args()
    if options.record and (options.files or options.time != "virtual" or options.most != MOST):
        parser.error("--record: of every shipped topology in virtual time only")
    with tempfile.TemporaryDirectory(prefix="vnet-proofs-") as place:
        rows = {file: _tried(file, Path(place), options) for file in options.files or shipped()}
    total: Counter[str] = Counter()
    for row in rows.values():
        total.update({word: n for word, n in row.items() if word != "labs"} if isinstance(row, dict) else {})
    every = total.total()
    for word, number in total.most_common():
        print(f"{word}: {number} of {every}, {100 * number / every:.1f} %")
    if options.record:
        named = {str(file.relative_to(ROOT / "topologies")): row for file, row in rows.items()}
        RECORD.write_text(json.dumps(named, indent=1) + "\n", encoding="utf-8")
    return 0 if every and not total["fails"] else 1


if __name__ == "__main__":
    sys.exit(main())
