"""Tests that a run is marked if a sender stood still, but not if a sender is late by design."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rundirs import T0, S, flow, guarantee, node, plan, received, run_dir, session

from capture.late import Gap, finding
from capture.reduce import reduce_run
from contract import manifest

MS = 1_000_000
RATE = 20  # messages a second


def lab(size: int = 100, **of_sender: Any) -> dict[str, Any]:
    sender = node("p", spec={"publish": {"inflight": 5}})
    of = flow("p", ("s", guarantee())) | {"payload": {"kind": "bytes", "bytes": size}}
    return plan([sender | of_sender, node("s", listens=True)], [of], {"s": ["s"]})


def run(
    path: Path,
    stopped_s: float,
    of: dict[str, Any],
    *,
    outcome: str = "sent",
    size: int = 100,
    settle_ns: int = MS,
    at: float = 5.01,
    more: str = "",
    events: str = "",
    every: bool = False,
    cpu: dict[str, float] | None = None,
    **known: Any,
) -> list[str]:
    """Returns the codes of the warnings that make a run of 10 s suspect, whose sender stopped for `stopped_s`
    seconds at `at`, or in each second if `every`. cpu: share of a core that each node used.
    """
    directory = run_dir(path, of)
    lines = []
    for seq in range(10 * RATE):
        due = T0 + seq * S // RATE
        began = T0 + round(at * S) if not every else due // S * S + 10 * MS
        gone = max(due, began + round(stopped_s * S)) if began <= due < began + stopped_s * S else due
        settled = 0 if outcome == "sent" else gone + settle_ns
        lines.append(f"S,0,{seq},{size},{due},{gone + 1000},{settled},1,{outcome}\n")
        lines.append(received(0, seq, "s", (gone - T0) / S + 0.01))
    (directory / "raw" / "messages.csv").write_text("".join(lines) + more)
    (directory / "raw" / "events.jsonl").write_text(events)
    if cpu is not None:
        (directory / "raw" / "nodes.csv").write_text("".join(samples(cpu)))
    said = {"phases": {"hold": [T0, T0 + 10 * S]}} | known
    manifest.write(directory, manifest.read(directory) | said)  # type: ignore[operator]
    reduce_run(directory)
    found = manifest.read(directory)
    return [w["code"] for w in found["warnings"] if w["suspect"]]


def samples(cpu: dict[str, float]) -> Iterator[str]:
    """Yields lines of nodes.csv, one a second and node."""
    for second in range(12):
        for name, share in cpu.items():
            traffic = f"{second * 10_000},{second * 100}"
            yield f"{T0 + second * S},{name},{round(second * share * S)},{traffic},{traffic},1000\n"


@pytest.mark.parametrize("outcome", ["sent", "settled"])
def test_a_stopped_agent_is_marked(tmp_path: Path, outcome: str) -> None:
    assert run(tmp_path / "a", 2, lab(), outcome=outcome) == ["trust-sender"]
    assert "left up to" in str(manifest.read(tmp_path / "a")["warnings"])
    assert run(tmp_path / "b", 0.02, lab(), outcome=outcome) == [], "within what timers are late by"
    assert run(tmp_path / "c", 0.09, lab(), outcome=outcome, every=True) == ["trust-sender"], (
        "many short ones"
    )


DOWN = {"phase": "hold", "at_ns": 5 * S, "action": "link-down", "targets": []}
EVENT = f'{{"t_ns": {T0 + 5 * S}, "action": "link_down", "ok": true}}\n'
LINK = {"impairment": {"rate_bps": 20_000}}
DESIGNED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a limit of CPU": (lab(cpu_limit_cores=0.1), {}),
    "a program of its own": (plan([node("p", program=True), node("s")], lab()["flows"], {"s": ["s"]}), {}),
    "its window was full": (lab(), {"outcome": "settled", "settle_ns": S}),
    "its connection was away": (lab(), {"more": session("p", "failed", 5.02) + session("p", "connected", 6)}),
    "it was away before": (lab(), {"more": session("p", "disconnected", 4.9)}),
    "an event": (
        lab() | {"events": [DOWN]},
        {"events": f'{{"t_ns": {T0 + 5 * S}, "action": "link_down", "ok": true}}\n'},
    ),
    "a slow path": (lab() | {"links": [{"forward": LINK, "reverse": LINK}]}, {}),
    "more than a socket holds": (lab(size=8000), {"size": 8000}),
}


@pytest.mark.parametrize("why", DESIGNED)
def test_a_sender_that_is_late_by_design_is_not_marked(tmp_path: Path, why: str) -> None:
    of, more = DESIGNED[why]
    assert run(tmp_path / "run", 2, of, **more) == []


MANY = {"p": 0.004, "s": 0.1} | {f"n{i}": 0.003 for i in range(300)}
CORE = "their nodes waited for the modelled core"


@pytest.mark.parametrize(
    ("cpu", "codes", "text"),
    [
        (None, ["trust-sender"], "nothing held them"),
        ({"p": 0.01, "s": 0.01}, ["trust-sender"], "nothing held them"),
        ({"p": 0.01, "s": 0.01, "hog": 0.97}, ["trust-sender"], "nothing held them"),
        (MANY | {"s": 0.8}, ["trust-sender"], "nothing held them"),
        ({"p": 0.01} | {f"n{i}": 0.1 for i in range(10)}, ["trust-sender"], "nothing held them"),
        (MANY, [], CORE),
        ({"p": 0.4, "s": 0.6}, [], CORE),
    ],
    ids=["no samples", "idle", "one other", "one of many", "too few to wait for", "many in turn", "its own"],
)
def test_in_virtual_time_only_a_core_that_nodes_shared_explains_a_late_sender(
    tmp_path: Path, cpu: dict[str, float] | None, codes: list[str], text: str
) -> None:
    found = run(tmp_path / "run", 2, lab(), cpu=cpu, time="virtual")
    assert found == codes
    (warning,) = (w for w in manifest.read(tmp_path / "run")["warnings"] if "were due" in w["text"])
    assert text in warning["text"]


def test_the_core_explains_no_more_than_the_time_that_it_worked(tmp_path: Path) -> None:
    half = {name: share * 0.4 for name, share in MANY.items()}
    assert run(tmp_path / "short", 0.4, lab(), cpu=half, time="virtual", at=5.3) == []
    assert run(tmp_path / "long", 0.6, lab(), cpu=half, time="virtual", at=5.3) == ["trust-sender"]


def test_senders_that_stood_still_together_count_once() -> None:
    def gap(sender: str, due: float, sent: float) -> Gap:
        return Gap(sender, round(due * S), round(sent * S))

    together = [gap("a", 1, 1.15), gap("b", 1.01, 1.15), gap("c", 1.02, 1.14)]
    assert finding(together, 20 * S) is None, "0.15 of 20 s"
    assert "2 senders (a, b)" in str(finding([*together[:2], gap("a", 3, 3.1)], 20 * S))
    assert finding([gap("a", 1, 1.12), gap("b", 1.06, 1.18)], 20 * S) is None, "0.18 of 20 s, 0.06 twice"


def test_no_messages_no_finding(tmp_path: Path) -> None:
    directory = run_dir(tmp_path / "run", lab())
    (directory / "raw" / "messages.csv").write_text("")
    reduce_run(directory)
    assert pl.read_parquet(directory / "messages.parquet").height == 0
    assert manifest.read(directory)["suspect"] is False
