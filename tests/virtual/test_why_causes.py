"""Tests in virtual time that a cause built into a lab, drawn by a seed, is named first and confirmed by a run
without it, and that labs without a cause name none. `python tests/virtual/test_why_causes.py` prints the
table.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import pytest
from virtual_place import Place

from capture.why.answer import Run
from capture.why.causes import Cause, Causes, causes
from contract.verdict import HOLDS
from orchestrator.cli.why_effect import effect_of

LAB = """\
name: why-planted
seed: 1
segments:
  left: {subnet: 10.1.0.0/24}
  right: {subnet: 10.1.0.0/24}
nodes:
  a: {segment: left, LIMITsoftware: {ask: {PROTOCOL: {to: b, NODELAYpush: PUSH}}WARM}}
  b: {segment: right, software: {answer: {PROTOCOL: {listen: 9000}}}}
  s: {segment: left, software: {send: {bulk: {to: d, protocol: udp, rate: FLOW, size: 1000 B}}}}
  d: {segment: right, software: {take: {bulk: {listen: 5201}}}}
links:
  wan: {between: [left, right], both: {rate: BANDWIDTH, delay: DELAY ms, limit: QUEUEEXTRA}}
captures:
  a: {at: node a}
  wan: {at: link wan, snaplen: 400}
  b: {at: node b}
EVENTS
run: {connect_interval: 100 ms, hold: 3 s, drain: 2 s}
"""
# One datagram goes before the first message, so that the address of b is known and a lab without a cause has
# no address lookup.
HELLO = "exec bash -c 'echo > /dev/udp/{{ addresses.b }}/7; exec sleep 99'"
KNOW = f', know: {{command: "{HELLO}", role: utility}}'
CLEAN = {
    "WARM": KNOW,
    "PUSH": "{size: 200 B, rate: RATE /s, class: site-a}",
    "LIMIT": "", "PROTOCOL": "udp", "NODELAY": "",
    "RATE": "20", "FLOW": "20 kbit/s", "BANDWIDTH": "20 Mbit/s",
    "DELAY": "20", "QUEUE": "200", "EXTRA": "", "EVENTS": "",
}  # fmt: skip
PLANTED = 40
CLEAN_RUNS = 20
LEAST = 38  # of the labs with a cause, the least number in which it must be named first
CAUSES = {
    "flow": Cause("flow", "s.send"),
    "rate": Cause("rate", "wan"),
    "queue": Cause("queue", "wan"),
    "overload": Cause("rate", "wan"),
    "loss": Cause("loss", "wan"),
    "loss-tcp": Cause("loss", "wan"),
    "jitter": Cause("jitter", "wan"),
    "cut": Cause("cut", "wan"),
    "lookup": Cause("lookup", "a"),
    "nagle": Cause("nagle", "a"),
    "cpu": Cause("cpu", "a"),
}


def planted(kind: str, draw: random.Random) -> dict[str, str]:
    """Returns the parts of a lab with the cause that differ from one without."""
    if kind == "flow":
        return {"FLOW": f"{draw.randint(5050, 5400)} kbit/s", "QUEUE": "400", "BANDWIDTH": "5 Mbit/s"}
    if kind == "rate":
        return {"BANDWIDTH": f"{draw.randint(85, 95)} kbit/s", "FLOW": "8 kbit/s", "RATE": "50"}
    if kind == "queue":
        burst = f"{{size: 200 B, rate: 5 /s, burst: {draw.randint(8, 14)}, class: site-a}}"
        return {"QUEUE": str(draw.randint(2, 4)), "PUSH": burst, "BANDWIDTH": "300 kbit/s"}
    if kind == "overload":
        return {"QUEUE": "60", "RATE": f"{draw.randint(2, 4)}00", "BANDWIDTH": "300 kbit/s"}
    if kind == "loss":
        return {"EXTRA": f", loss: {draw.randint(10, 25)} %"}
    if kind == "loss-tcp":
        nodelay = {"PROTOCOL": "tcp", "NODELAY": "nodelay: true, "}
        return {"EXTRA": f", loss: {draw.randint(8, 20)} %", **nodelay}
    if kind == "jitter":
        return {"EXTRA": f", jitter: {draw.randint(10, 18)} ms"}
    if kind == "cut":
        at, length = draw.randint(500, 1500), draw.randint(200, 800)
        return {"EVENTS": f"timeline:\n  - {{at: hold + {at} ms, link-down: wan, for: {length} ms}}"}
    if kind == "lookup":
        return {"DELAY": str(draw.randint(100, 240)), "WARM": ""}
    if kind == "nagle":
        return {"PROTOCOL": "tcp", "RATE": str(draw.randint(60, 150))}
    return {"LIMIT": f"cpu_limit: 0.0{draw.randint(10, 15)} cores, ", "RATE": "1000"}


def run_of(place: Place, changes: dict[str, str], seed: int) -> Run:
    """Runs the lab with changes and returns it with tables."""
    text = LAB
    for word, value in {**CLEAN, **changes}.items():
        text = text.replace(word, value)
    (place.cwd / "lab.yaml").write_text(text)
    done = place.run("--lab", "why", seed=seed, file="lab.yaml")
    return Run(done.run_dir)


def causes_in(run: Run) -> Causes:
    """Returns the causes of the messages of site-a."""
    return causes(run, run.messages.filter(run.messages["class"] == "site-a"))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", CAUSES)
def test_a_planted_cause_is_named_first_and_confirmed(place: Place, kind: str) -> None:
    run = run_of(place, planted(kind, random.Random(1)), 1)
    all_of_them = causes_in(run)
    found = all_of_them.named
    assert found and found[0].cause == CAUSES[kind] and not all_of_them.untold, all_of_them
    rows = run.messages.filter(run.messages["class"] == "site-a")
    effect = effect_of(run.path, rows, str(found[0].cause), found)
    assert effect.verdict == HOLDS, effect


@pytest.mark.sweep
def test_a_clean_run_names_no_cause(place: Place) -> None:
    assert causes_in(run_of(place, {}, 1)) == Causes([], 0.0, 0)


def table(root: Path, planted_: int = PLANTED, clean: int = CLEAN_RUNS) -> bool:
    """Prints what is named in labs with and without a cause; returns whether enough causes are named, and
    none where there is none.
    """
    hits, quiet, kinds = 0, 0, list(CAUSES)
    for seed in range(planted_ + clean):
        draw = random.Random(seed)
        kind = kinds[seed % len(kinds)] if seed < planted_ else ""
        changes = planted(kind, draw) if kind else {"DELAY": str(draw.randint(5, 40))}
        all_of_them = causes_in(run_of(Place(root / str(seed)), changes, seed + 1))
        found = all_of_them.named
        said = ", ".join(f"{one.cause} {one.share:.0%} {one.lost} lost" for one in found) or "none"
        said += f", {all_of_them.lost_untold} lost untold" if all_of_them.untold else ""
        fine = bool(found) and found[0].cause == CAUSES[kind] if kind else not (found or all_of_them.untold)
        hits, quiet = hits + (fine and bool(kind)), quiet + (fine and not kind)
        print(f"{seed:3} {kind or 'clean':10} {'yes' if fine else 'NO ':3} {said}", flush=True)
    print(f"named first: {hits} of {planted_}; clean runs that name none: {quiet} of {clean}")
    return hits >= LEAST * planted_ / PLANTED and quiet == clean


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="why-") as place_:
        sys.exit(0 if table(Path(place_), *map(int, sys.argv[1:3])) else 1)
