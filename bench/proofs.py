"""Measures the share of link quantities that hold: sets up and proves labs, without their software.

    python bench/proofs.py                                   every topology that ships, in virtual time
    python bench/proofs.py --time real --kernel uml FILES    some of them in real time

Takes at most `--most` cells of a campaign, evenly chosen from those whose links differ. Leaves out labs that
this machine cannot set up (virtual machines in virtual time, for example), and says why. Prints one line for
each lab, each quantity that does not hold with its reason, and the shares.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from contract import rundir
from contract.plan import Plan
from contract.proof import Proven
from orchestrator.kernel.protocol import KernelError
from orchestrator.plan.build import make_plan
from orchestrator.run.directories import make_dir
from orchestrator.run.prepare import Request, prepare_plan
from orchestrator.run.run import execute
from orchestrator.topology import Topology, TopologyError, load, load_campaign

Loaded = TypeVar("Loaded")
ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("topologies/*.yaml", "topologies/papers/*.yaml", "topologies/atlas/*.yaml")
SMALL = {"clients": 10, "publishers": 10, "meters": 10}  # small values for files that have such a parameter
HOLD_NS = 100_000_000
MOST = 4


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
    """Returns the plan without everything that comes after the proof: software, captures, events and
    flows.
    """
    nodes = tuple(replace(node, software=()) for node in plan.nodes)
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
    for pattern in SHIPPED:
        yield from sorted(ROOT.glob(pattern))


def told(lab: Lab, lines: list[Proven], took_s: float) -> Counter[str]:
    """Prints the verdicts of one proof and returns how often each verdict came."""
    counted = Counter(str(line.verdict) for line in lines)
    said = ", ".join(f"{number} {word}" for word, number in sorted(counted.items())) or "no link"
    print(f"{lab.name}: {said} ({took_s:.1f} s)", flush=True)
    for text in dict.fromkeys(
        f"  {line.quantity}: {line.verdict}: {line.reason}" for line in lines if line.verdict != "holds"
    ):
        print(text, flush=True)
    return counted


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--time", choices=("virtual", "real"), default="virtual")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--most", type=int, default=MOST, help="labs of one campaign")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="vnet-proofs-") as place:
        for file in options.files or shipped():
            try:
                for lab in labs_of(file, options.most):
                    began = time.monotonic()
                    lines = proven(lab, Path(place), options.time, options.kernel)
                    total += told(lab, lines, time.monotonic() - began)
            except (TopologyError, KernelError) as error:
                print(f"{file}: left out: {str(error).splitlines()[0]}", flush=True)
    every = total.total()
    for word, number in total.most_common():
        print(f"{word}: {number} of {every}, {100 * number / every:.1f} %")
    return 0 if every and not total["fails"] else 1


if __name__ == "__main__":
    sys.exit(main())
