"""Tests the judgement of a run: the reasons that make it suspect, and their entry in the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rundirs import T0, S, flow, guarantee, node, plan, run_dir, sent

from capture.reduce import reduce_run
from contract import manifest
from contract.manifest import Warned

PLAN = plan([node("p"), node("s", listens=True)], [flow("p", ("s", guarantee()))], {"s": ["s"]})


def judged(path: Path, of: dict[str, Any] | None = None, **known: Any) -> dict[str, Any]:
    """Reduces a run of 20 s whose manifest has the fields `known`, and returns its manifest."""
    run = path if path.exists() else run_dir(path, of or PLAN)
    manifest.write(run, manifest.read(run) | {"phases": {"hold": [T0, T0 + 20 * S]}} | known)
    reduce_run(run)
    return manifest.read(run)


def host(
    path: Path, busy: float, stolen: float, of: dict[str, Any] | None = None, file: str = "host"
) -> Path:
    """Writes samples of a host with 2 cores, whose time was used (share `busy`) and stolen (share
    `stolen`).
    """
    run = path if path.exists() else run_dir(path, of or PLAN)
    rows = []
    for second in range(21):
        user, steal = (round(2 * S * second * share) for share in (busy, stolen))
        idle = 2 * S * second - user - steal
        rows.append(f"{T0 + second * S},{user},0,0,{idle},0,0,0,{steal},0.5,1000,2\n")
    (run / "raw" / f"{file}.csv").write_text("".join(rows))
    return run


def suspicions(found: dict[str, Any]) -> list[str]:
    assert found["suspect"] == any(w["suspect"] for w in found["warnings"])
    return [w["code"] for w in found["warnings"] if w["suspect"]]


@pytest.mark.parametrize(
    ("busy", "stolen", "codes"),
    [(0.5, 0.01, []), (0.95, 0.0, ["trust-busy"]), (0.5, 0.03, ["trust-steal"])],
)
def test_an_overloaded_or_shared_machine(
    tmp_path: Path, busy: float, stolen: float, codes: list[str]
) -> None:
    assert suspicions(judged(host(tmp_path / "a", busy, stolen))) == codes
    outer = host(host(tmp_path / "b", 0.1, 0.0), busy, stolen, file="outer")
    assert suspicions(judged(outer)) == codes, "the machine outside"


def test_a_modelled_core_and_a_generator_may_be_busy(tmp_path: Path) -> None:
    found = judged(host(tmp_path / "a", 0.93, 0.05), time="virtual")
    assert suspicions(found) == [] and "trust-core" in [w["code"] for w in found["warnings"]]
    trials = plan([node("p", kind="frames")])
    found = judged(host(tmp_path / "b", 0.97, 0.0, trials))
    assert suspicions(found) == []


def test_a_message_before_its_time_and_a_lossy_capture(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PLAN)
    early = f"R,0,0,s,0,{T0 + S - 5},0\n"
    (run / "raw" / "messages.csv").write_text(sent(0, 0, 1) + early)
    counts = {"lan": {"packets": 9, "dropped_kernel": 3, "dropped_interface": 1}}
    found = judged(run, captures=counts)
    assert suspicions(found) == ["trust-clock", "trust-captures"]
    assert "lan lost 4 packets" in found["warnings"][-1]["text"]


@pytest.mark.parametrize(("corrupt", "code"), [(0.01, "trust-flipped"), (0.0, "trust-clock")])
@pytest.mark.parametrize("own", ["", f"R,0,0,s,0,{T0 + S + 5},0\n"], ids=["own lost", "own arrived"])
def test_a_number_that_became_another_s_on_a_link_that_flips_bits(
    tmp_path: Path, corrupt: float, code: str, own: str
) -> None:
    way = {"impairment": {"corrupt": corrupt}}
    run = run_dir(tmp_path / "run", {**PLAN, "links": [{"forward": way, "reverse": way}]})
    (run / "raw" / "messages.csv").write_text(sent(0, 0, 1) + f"R,0,0,s,0,{T0 + S - 5},0\n" + own)
    found = judged(run)
    assert code in [w["code"] for w in found["warnings"]]
    assert ("trust-clock" in suspicions(found)) == (code == "trust-clock")


@pytest.mark.parametrize(
    ("at", "took_ns", "suspect", "doubted"),
    [
        (("a", "b"), -200, [], True),
        (("a", "b"), -400, ["trust-clock"], True),
        (("a", "b"), 10_000, [], False),
        (("a", "a"), -200, ["trust-clock"], False),
    ],
)
def test_between_hosts_a_latency_is_known_as_well_as_their_clocks(
    tmp_path: Path, at: tuple[str, str], took_ns: int, suspect: list[str], doubted: bool
) -> None:
    nodes = [{**one, "host": host} for one, host in zip(PLAN["nodes"], at, strict=True)]
    run = run_dir(tmp_path / "run", {**PLAN, "nodes": nodes})
    (run / "raw" / "messages.csv").write_text(sent(0, 0, 1) + f"R,0,0,s,0,{T0 + S + took_ns},0\n")
    clocks = {"a": {"error_ns": 100}, "b": {"error_ns": 200}}
    found = judged(run, hosts={"a": {}, "b": {}}, clocks=clocks)
    assert suspicions(found) == suspect
    said = [w["text"] for w in found["warnings"] if w["code"] == "trust-clocks"]
    assert bool(said) == doubted
    assert all("of meter half are above" in text and "known to 0.0003 ms" in text for text in said)


@pytest.mark.parametrize(
    ("kinds", "took_ns", "suspect"),
    [
        (("vm", "light"), -90, []),
        (("vm", "vm"), -290, []),
        (("vm", "light"), -110, ["trust-clock"]),
        (("light", "light"), -1, ["trust-clock"]),
    ],
)
def test_machines_of_one_host_have_clocks_of_their_own(
    tmp_path: Path, kinds: tuple[str, str], took_ns: int, suspect: list[str]
) -> None:
    nodes = [{**one, "kind": kind} for one, kind in zip(PLAN["nodes"], kinds, strict=True)]
    run = run_dir(tmp_path / "run", {**PLAN, "nodes": nodes})
    (run / "raw" / "messages.csv").write_text(sent(0, 0, 1) + f"R,0,0,s,0,{T0 + S + took_ns},0\n")
    clocks = {node["name"]: {"error_ns": ns} for node, ns in zip(nodes, (100, 200), strict=True)}
    assert suspicions(judged(run, clocks=clocks)) == suspect


def test_a_broken_promise_is_said_and_is_a_result(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PLAN)
    (run / "raw" / "messages.csv").write_text(sent(0, 0, 1))
    found = judged(run)
    assert suspicions(found) == []
    assert [w["text"] for w in found["warnings"] if w["code"] == "trust-guarantee"] == [
        "meter, all: the guarantee did not hold: 1 lost"
    ]


def test_what_a_reduction_says_is_taken_back_by_the_next(tmp_path: Path) -> None:
    lab = {"code": "late", "text": "came late", "remedy": "repeat", "suspect": False}
    run = host(tmp_path / "run", 0.95, 0.0)
    assert judged(run, warnings=[lab])["suspect"] is True
    (run / "seal.json").unlink()  # the following records belong to another run
    host(run, 0.5, 0.0)
    found = judged(run)
    assert found["suspect"] is False and found["warnings"][0] == lab


def test_an_end_that_others_write_puts_the_run_in_doubt(tmp_path: Path) -> None:
    run = tmp_path / "lab" / "run"
    run.mkdir(parents=True)
    manifest.reduced(run, [Warned("reduce-x", "x", "y")])
    assert manifest.read(run) == {}, "no manifest is made of a reduction alone"
    found = manifest.ended(run, "interrupted", "killed", by="watchdog")
    assert (found.lab, found.run, found.suspect, found.ended_by) == ("lab", "run", True, "watchdog")
    assert manifest.load(run) == found
