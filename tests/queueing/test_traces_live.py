"""Tests traces in labs of the fake driver through the command line: played, shown on the page, and without
effect on other links.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from virtual_place import Place

from capture.reduce import reduce_run
from contract.plan import Impairment, Link, Plan, Step
from orchestrator import queueing
from orchestrator.lab.drivers.fake_tools import FakeTools
from orchestrator.lab.replay import Replay
from orchestrator.plan.build import make_plan
from orchestrator.topology import load
from reports.figures import traces
from reports.rundir import read_run

LAB = """\
name: played
segments:
  a: {subnet: 10.1.0.0/24}
  b: {subnet: 10.1.0.0/24}
  hall: {subnet: 10.2.0.0/24, duplex: half, medium: {trace: walk.csv}}
nodes: {one: {segment: a}, two: {segment: b}, three: {segment: hall}}
groups: {meter: {count: 2, segment: a}}
links:
  wan: {between: [a, b], forward: {trace: {file: walk.csv, repeat: true}}, reverse: {delay: 2 ms}}
  air: {between: [one, a], duplex: half, both: {trace: walk.csv}}
  own: {between: [meter, a], forward: {trace: steps.csv, queue: {prio: {first: {dscp: EF}, rest: {}}}}}
  two-b:
    between: [two, b]
    reverse: {trace: steps.csv, queue: {htb: {v: {dscp: EF, rate: 1 Mbit/s}, rest: {rate: 2 Mbit/s}}}}
run: {ramp: 0 s, hold: 6 s}
"""
WALK = "time_s,rate_mbps,delay_ms\n0,4,10\n1,0,20\n1.5,2,20\n2,3,10\n"
STEPS = "time_s,rate_mbps\n0,4\n0.1,2\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("played"))
    (made.cwd / "played.yaml").write_text(LAB)
    (made.cwd / "walk.csv").write_text(WALK)
    (made.cwd / "steps.csv").write_text(STEPS)
    return made


def test_a_run_has_every_change_and_says_when_traces_began(place: Place) -> None:
    done = place.vnet("run", "played.yaml", "--kernel", "fake", "--results", "out", "--json", "--raw")
    assert done.returncode == 0, done.stderr
    run_dir = place.cwd / json.loads(done.stdout)["run_dir"]
    reduce_run(run_dir)
    played = pl.read_parquet(run_dir / "impairments.parquet")
    t0 = json.loads((run_dir / "manifest.json").read_text())["t0_ns"]
    due = played.with_columns(((pl.col("planned_ns") - t0) // 10**6).alias("ms"))
    wan, air = due.filter(link="wan"), due.filter(link="air")
    assert wan["ms"].to_list()[:7] == [0, 1000, 1500, 2000, 3000, 3500, 4000]
    assert wan["rate_bps"].to_list()[:4] == [4_000_000, 0, 2_000_000, 4_000_000]
    assert air["direction"].unique().to_list() == ["both"], "half duplex has one transmitter"
    assert air["ms"].to_list() == [0, 1000, 1500, 2000], "its last state stays"
    events = pl.read_parquet(run_dir / "events.parquet").filter(action="trace")
    assert sorted(events["label"].to_list()) == [
        "trace steps.csv: own-meter1 forward", "trace steps.csv: own-meter2 forward",
        "trace steps.csv: two-b reverse", "trace walk.csv: air both", "trace walk.csv: hall both",
        "trace walk.csv: wan forward",
    ]  # fmt: skip
    assert due.filter(link="hall")["rate_bps"].to_list() == [4e6, 0, 2e6, 3e6]
    for link in ("own-meter1", "two-b"):
        assert due.filter(link=link)["rate_bps"].to_list() == [4e6, 2e6]
    assert "requested_bps" in pl.read_parquet_schema(run_dir / "links.parquet")
    of_one: Any = SimpleNamespace(cells=[SimpleNamespace(run=read_run(run_dir))])
    delays = traces.delays(of_one)
    assert delays["curve"].unique().sort().to_list() == ["air both", "hall both", "wan forward"]
    assert delays.filter(curve="air both").select("time", "value").rows() == [
        (0, 10), (1, 20), (1.5, 20), (2, 10)
    ]  # fmt: skip
    assert traces.rates(of_one)["what"].unique().sort().to_list() == ["carried", "requested"]


def test_nobody_else_changes_such_a_link(place: Place) -> None:
    done = place.vnet("up", "played.yaml", "--kernel", "fake")
    assert done.returncode == 0, done.stderr
    try:
        refused = place.vnet("link", "played", "wan", "--forward", "--delay", "3 ms")
        assert refused.returncode != 0 and "links.wan.forward: is played from a trace" in refused.stderr
        allowed = place.vnet("link", "played", "wan", "--reverse", "--delay", "3 ms")
        assert allowed.returncode == 0, allowed.stderr
        refused = place.vnet("link", "played", "hall", "--delay", "3 ms")
        assert refused.returncode != 0 and "is played from a trace" in refused.stderr
    finally:
        assert place.vnet("down", "played").returncode == 0
    assert not list(Path(place.cwd / "state").iterdir())


class Stage:
    """A lab reduced to the parts that Replay uses (clock, links, `tc`); its time advances only on request."""

    def __init__(self, run_dir: Path, plan: Plan) -> None:
        self.run_dir, self.plan, self.now = run_dir, plan, 0
        self.links: dict[str, Link] = {}
        self.impairments: dict[tuple[str, str], Impairment] = {}
        self.waiting: list[tuple[int, Callable[[], None]]] = []
        self.tools, self.loop, self.driver, self.events = FakeTools(), self, self, self
        self.clock = SimpleNamespace(now_ns=lambda: self.now)
        self.phase_name = "hold"
        self.on_added: Callable[[list[Link]], None] = lambda _: None
        self.after_change: Callable[[str, str], None] = lambda *_: None
        (run_dir / "raw").mkdir()

    def add(self, link: Link) -> None:
        at = link.forward
        self.links[link.name], self.impairments[link.name, "forward"] = link, at.impairment
        self.tools.run("ip", at.netns, f"link add name {at.device} type veth peer name {at.device}-p\n")
        self.tools.run("tc", at.netns, queueing.set_text(at.device, at.impairment))
        self.on_added([link])

    def emit(self, *_: object, **__: object) -> None:
        pass

    def at(self, time_ns: int, do: Callable[[], None]) -> None:
        self.waiting.append((time_ns, do))

    def until(self, time_ns: int) -> None:
        while due := sorted((w for w in self.waiting if w[0] <= time_ns), key=lambda w: w[0]):
            self.waiting.remove(due[0])
            self.now = max(self.now, due[0][0])
            due[0][1]()
        self.now = time_ns

    def qdiscs(self, netns: str) -> list[dict[str, Any]]:
        return self.tools.qdiscs(netns)

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        self.tools.run("tc", step.netns, step.text)
        return self.tools.qdiscs(step.netns)


def test_a_link_that_comes_later_is_where_its_trace_is_by_now(place: Place, tmp_path: Path) -> None:
    plan = make_plan(load(place.cwd / "played.yaml"))
    stage = Stage(tmp_path, plan)
    first, later = (next(li for li in plan.links if li.name == n) for n in ("own-meter1", "own-meter2"))
    stage.add(first)
    replay = Replay(stage, 0)  # type: ignore[arg-type]
    rate = lambda link: stage.impairments[link.name, "forward"].rate_bps  # noqa: E731
    stage.until(50_000_000)
    assert rate(first) == 4_000_000
    stage.until(150_000_000)
    assert rate(first) == 2_000_000
    stage.add(later)
    assert rate(later) == 4_000_000, "proven with its first state"
    stage.until(150_000_001)
    assert rate(later) == 2_000_000
    lines = (tmp_path / "raw" / "impairments.csv").read_text().splitlines()
    assert [line.split(",")[2] for line in lines[1:]] == ["own-meter1", "own-meter1", "own-meter2"]
    replay.end()
    assert not stage.waiting
