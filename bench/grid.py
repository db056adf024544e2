"""Measures a routed grid on the host's kernel: its bring-up with routes, and the proof of its links.

The peers do less: Mininet makes the hosts and links of the same graph without routes, and `ip -batch` makes
only its namespaces, veth pairs and addresses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from commands import VNET, as_root, reads, timed
from graphs import edges

BENCH = Path(__file__).parent
SIDE, TURNS = 20, 3


def topology(side: int) -> str:
    lines = ["name: grid", f"description: {side} x {side} routers, each joined to its neighbours.", "nodes:"]
    lines += [f"  r{number}: {{forward: true}}" for number in range(side * side)]
    lines.append("links:")
    lines += [f"  l{a}-{b}: {{between: [r{a}, r{b}]}}" for a, b in edges(side)]
    return "\n".join(lines) + "\n"


def vnet(side: int, directory: Path) -> dict[str, float]:
    """Returns the seconds of `vnet up` without its proof ("up"), of the proof of links and paths ("proof"),
    and of `vnet down` ("down").
    """
    file, out, lab = directory / "grid.yaml", directory / "out", f"grid-{os.getpid()}"
    directory.mkdir()
    file.write_text(topology(side))
    start = time.monotonic()
    up = subprocess.Popen(
        [str(VNET), "up", str(file), "--lab", lab, "--kernel", "host", "--results", str(out)],
        stdout=sys.stderr,
    )
    begun: dict[str, float] = {}
    while up.poll() is None:
        for event in progress(out):
            begun.setdefault(str(event.get("phase") or event["event"]), time.monotonic())
        time.sleep(0.01)  # the proof's part of the time is known to 10 ms
    ended = time.monotonic()
    if up.returncode != 0:
        raise SystemExit(f"grid.py: vnet up: status {up.returncode}; it says why above")
    proof = begun.get("ready", ended) - begun.get("prove", ended)
    return {"up": ended - start - proof, "proof": proof, "down": timed(str(VNET), "down", lab)}


def progress(out: Path) -> Iterator[dict[str, object]]:
    for file in out.rglob("progress.jsonl"):
        yield from (json.loads(line) for line in file.read_text().splitlines() if line.endswith("}"))


def floor(side: int) -> float:
    """Returns the seconds of `ip -batch` for the namespaces, veth pairs and addresses of the same graph."""
    name = f"grid-{os.getpid()}-"
    places = [f"netns add {name}{number}" for number in range(side * side)]
    wires = [
        f"link add name e{link}a netns {name}{a} type veth peer name e{link}b netns {name}{b}"
        for link, (a, b) in enumerate(edges(side))
    ]
    addresses: dict[int, list[str]] = {number: [] for number in range(side * side)}
    for link, ends in enumerate(edges(side)):
        for host, (end, number) in enumerate(zip("ab", ends, strict=True), 1):
            addresses[number] += [
                f"address add 10.{link >> 6}.{(link & 63) << 2}.{host}/30 dev e{link}{end}",
                f"link set dev e{link}{end} up",
            ]
    start = time.monotonic()
    try:
        batch(places + wires)
        for number, lines in addresses.items():
            batch(lines, "-n", f"{name}{number}")
        return time.monotonic() - start
    finally:
        batch([f"netns del {name}{number}" for number in range(side * side)], "-force")


def batch(lines: list[str], *options: str) -> None:
    done = subprocess.run(
        ["ip", *options, "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True
    )
    if done.returncode != 0 and "-force" not in options:
        raise SystemExit(f"grid.py: ip -batch: {done.stderr.strip()}")


def mininet(side: int) -> dict[str, float]:
    """Returns the seconds of Mininet's start() and stop() for the same graph, without the time in which its
    Python interpreter starts.
    """
    peer = ("/usr/bin/python3", str(BENCH / "mininet_peer.py"), "--grid")
    times: dict[str, float] = json.loads(reads("unshare", "--net", *peer, str(side)))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=SIDE)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--print", action="store_true", help="print the topology and measure nothing")
    options = parser.parse_args()
    if options.print:
        print(topology(options.side), end="")
        return
    as_root()
    with tempfile.TemporaryDirectory() as directory:
        turns = [
            (vnet(options.side, Path(directory, str(turn))), mininet(options.side), floor(options.side))
            for turn in range(options.turns)
        ]
    ours = {part: min(turn[0][part] for turn in turns) for part in ("up", "proof", "down")}
    peer = {part: min(turn[1][part] for turn in turns) for part in ("up_s", "down_s")}
    least = min(turn[2] for turn in turns)
    routers = f"{options.side**2} routers in a grid"
    rows = [
        (
            f"{routers} up, routes set",
            ours["up"],
            f"Mininet, the same graph, {peer['up_s']:.2f} s",
            peer["up_s"],
        ),
        (f"{routers} up, routes set", ours["up"], f"ip -batch, no routes, {least:.2f} s", least),
        (f"{routers}: links and paths proven", ours["proof"], "their bring-up", ours["up"]),
        (f"{routers} down", ours["down"], f"Mininet, {peer['down_s']:.2f} s", peer["down_s"]),
    ]
    json.dump(
        [{"name": n, "value": v, "unit": "s", "peer": p, "ratio": v / against} for n, v, p, against in rows],
        sys.stdout,
    )


if __name__ == "__main__":
    main()
