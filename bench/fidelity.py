"""Compares what a lab measures in virtual time with what the same lab measures in real time.

Without options, both runs use the uml kernel with delay, jitter and loss; with `--plain`, the run in real
time uses the machine's own kernel (root), and both are without them, which needs no netem.
docs/virtual-time.md has the bounds and their reasons. Exit status: 0 if all bounds hold, 1 if one is broken,
3 without a judgement because the run in real time is suspect (a busy machine).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from commands import VNET, failed

from contract import manifest

TOPOLOGY = Path(__file__).with_suffix(".yaml")
PLAIN = ("delay=0ms", "jitter=0ms", "loss=0%")
Figures = dict[str, float]


@dataclass(frozen=True)
class Bound:
    """A bound on one figure: `holds` judges (real, virtual), and `words` describe the rule."""

    figure: str
    unit: str
    words: str
    holds: Callable[[float, float], bool]


def near(share: float, floor: float = 0.0) -> Callable[[float, float], bool]:
    """Returns the rule that the virtual value differs from the real value by at most a share of the real one,
    or by at most `floor` if that is more.
    """
    return lambda real, virtual: abs(virtual - real) <= max(share * abs(real), floor)


def below(ms: float) -> Callable[[float, float], bool]:
    """Returns a rule that the virtual value is at most 0.5 ms above the real one and at most `ms` below it,
    because real time adds the kernel's own delays.
    """
    return lambda real, virtual: real - ms <= virtual <= real + 0.5


BOUNDS = (
    Bound("latency p10", "ms", "2.5 ms below to 0.5 ms above real", below(2.5)),
    Bound("latency p50", "ms", "2.5 ms below to 0.5 ms above real", below(2.5)),
    Bound("latency p90", "ms", "3.5 ms below to 0.5 ms above real", below(3.5)),
    Bound("messages later than 20 ms", "%", "at most 0.8 points above real", lambda r, v: v <= r + 0.8),
    Bound("goodput", "kB/s", "within 0.5 %", near(0.005)),
    Bound("messages lost", "%", "equal", lambda r, v: r == v),
    Bound("broker receives", "kB/s", "within 2 %", near(0.02)),
    Bound("broker sends", "kB/s", "within 2 %", near(0.02)),
    Bound("packets at the broker", "/s", "within 3 %", near(0.03)),
    Bound("packets lost on the link", "%", "within 0.3 points", near(0.0, 0.3)),
    Bound("mean packet", "B", "within 1 %", near(0.01)),
)
# A latency above this on a link of 10 ms comes from a retransmission of TCP or a pause of the machine.
LATE_NS = 20_000_000
SIZES = "packet sizes: largest gap of the distributions"
SIZES_BOUND = 0.02


def run(arguments: list[str], out: Path) -> Path:
    """Runs the topology once and returns the run directory; progress goes to standard error."""
    lab = f"fidelity-{os.getpid()}"
    argv = (str(VNET), "run", str(TOPOLOGY), "--results", str(out), "--lab", lab, *arguments)
    status = subprocess.run(argv, stdout=sys.stderr).returncode
    if status != 0:
        failed(argv, status, "vnet says why above")
    return max((out / lab).iterdir())


def figures(run_dir: Path) -> Figures:
    """Returns the figures of the hold, during which all clients are connected."""
    start, end = manifest.load(run_dir).phases["hold"]
    seconds = (end - start) / 1e9
    messages = pl.read_parquet(run_dir / "messages.parquet").filter(
        pl.col("scheduled_ns").is_between(start, end)
    )
    latency = messages["latency_ns"].drop_nulls()
    inside = packets(run_dir).filter(pl.col("t_ns").is_between(start, end))
    sizes = inside["wire_bytes"].cast(pl.Float64)
    to_broker = (inside["dst_port"] == 1883).fill_null(value=False)
    links = (
        pl.read_parquet(run_dir / "links.parquet")
        .group_by("direction")
        .agg(pl.col("packets", "dropped").max())
    )
    dropped, passed = float(links["dropped"].sum()), float(links["packets"].sum())
    found = {f"latency p{q}": float(latency.quantile(q / 100) or 0) / 1e6 for q in (10, 50, 90)}
    late = float((latency > LATE_NS).mean() or 0)  # type: ignore[arg-type]
    return found | {
        "messages later than 20 ms": 100 * late,
        "goodput": messages.filter(pl.col("received_ns").is_not_null()).height * 717 / 1000 / seconds,
        "messages lost": 100 * float(messages["received_ns"].null_count()) / max(1, messages.height),
        "broker receives": float(sizes.filter(to_broker).sum()) / 1000 / seconds,
        "broker sends": float(sizes.filter(~to_broker).sum()) / 1000 / seconds,
        "packets at the broker": inside.height / seconds,
        "packets lost on the link": 100 * dropped / max(1.0, passed + dropped),
        "mean packet": float(sizes.mean() or 0),  # type: ignore[arg-type]
    }


def packets(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "packets" / "broker.parquet")


def size_gap(one: Path, other: Path) -> float:
    """Returns the Kolmogorov-Smirnov distance between the packet sizes at the broker of two runs."""
    counts = [packets(d)["wire_bytes"].value_counts(normalize=True, name="share") for d in (one, other)]
    joined = (
        counts[0].join(counts[1], on="wire_bytes", how="full", coalesce=True).fill_null(0).sort("wire_bytes")
    )
    gaps = (joined["share"].cum_sum() - joined["share_right"].cum_sum()).abs()
    return float(gaps.max() or 0)  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plain", action="store_true", help="against the host kernel, without impairments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    kernel = "host" if options.plain else "uml"
    common = ["--seed", str(options.seed)]
    for parameter in [*(PLAIN if options.plain else ()), *options.parameters]:
        common += ["-p", parameter]
    with tempfile.TemporaryDirectory() as out:
        real = run([*common, "--kernel", kernel], Path(out, "real"))
        found = manifest.load(real)
        if found.suspect:
            codes = {w["code"] for w in found.warnings if w.get("suspect", True)}
            said = ", ".join(sorted(codes))
            print(f"the run in real time is suspect ({said}): repeat when the machine is idle")
            return 3
        virtual = run([*common, "--time", "virtual"], Path(out, "virtual"))
        broken = compare(real, virtual, f"real, {kernel}")
    return 1 if broken else 0


def compare(real: Path, virtual: Path, heading: str) -> int:
    """Prints the table and returns the number of broken bounds."""
    one, other, gap = figures(real), figures(virtual), size_gap(real, virtual)
    rows = [(f"{b.figure}, {b.unit}", one[b.figure], other[b.figure], b.words) for b in BOUNDS]
    verdicts = [b.holds(one[b.figure], other[b.figure]) for b in BOUNDS]
    print(f"| figure of the hold | {heading} | virtual | bound | verdict |\n|---|---|---|---|---|")
    for (name, r, v, words), holds in zip(rows, verdicts, strict=True):
        print(f"| {name} | {r:.5g} | {v:.5g} | {words} | {'holds' if holds else 'fails'} |")
    fits = gap <= SIZES_BOUND
    print(f"| {SIZES} | | {gap:.3f} | at most {SIZES_BOUND} | {'holds' if fits else 'fails'} |")
    return verdicts.count(False) + (not fits)


sys.exit(main())
