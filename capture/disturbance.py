"""Judges disturbances of a run by rules with thresholds: paused heartbeats, clock steps, suspension, CPU
contention, thermal throttling and stopped processes (disturbance.parquet).

If a machine lacks a counter, only the rules that need it cannot tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from capture import trials
from capture.rawfile import INTEGER, OPTIONAL
from contract import retired
from contract.manifest import TRUST, Manifest, Warned
from contract.plan import Plan

SECOND = 1_000_000_000
EDGE_NS = 300_000_000  # heartbeats may begin and end by at most this before or after the scenario
STOPPED = "stopped"
FILES = {"lab": "disturbance.csv", "outer": "disturbance.outer.csv"}
COLUMNS = dict.fromkeys(
    ("t_ns", "beats", "late_ns", "worst_ns", "stalled_ns", "suspended_ns", "set_ns"), INTEGER
) | dict.fromkeys(
    (
        "periods", "throttled", "throttled_ns", "ran_ns", "waited_ns", "slices", "pressure_ns",
        "cores", "cores_ns", "idle_ns", "steal_ns", "own_core_ns", "own_steal_ns", "heat_ns", STOPPED,
    ),
    OPTIONAL,
)  # fmt: skip
STALL_NS = 200_000_000  # one gap of this length is a finding in any run
# gaps over more than this share of the scenario are a finding, because they then affect the 99th percentile
STALLED = 0.01
STALLED_NS = 100_000_000  # a smaller sum of gaps is no finding, even in a short run
SUSPENDED_NS = 10_000_000
SET_NS = 100_000_000
TAKEN = 0.02  # highest share of the scenario's CPU time that others may take
# Wait per time slice that does not count; a process switch on an idle machine takes 0.1 to 0.2 us
SWITCH_NS = 2_000
# highest share of PSI, which is used without schedstat; it also counts other programs of the machine
PRESSED = 0.25
BUSY, BUSY_TIME = 0.9, 0.05
LEAST = 3  # least number of samples
SHORT, FEW = "the scenario was too short", "too few lines of the scenario"
WHOSE = {"lab": "the lab's processes", "outer": "the lab's kernel"}
OF = {"lab": "the lab", "outer": "the machine outside"}
QUIET = "repeat the run when the machine is idle"
Found = tuple[str | None, str]  # the finding or None, and the text on what was measured


class Unknown(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a rule that cannot give a verdict; its text is the reason."""


@dataclass(frozen=True)
class Disturbance:
    """The lines of one heartbeat thread, one for each second. `rows` are the lines within 0.3 s of the
    scenario; `whole` are those of them whose second lies completely within it.

    where: lab or outer. unmade: for each subject of a rule, the reason why it was not recorded.
    """

    where: str
    rows: pl.DataFrame
    whole: pl.DataFrame  # the lines whose whole second is in the scenario
    span_ns: int
    cores: int
    unmade: dict[str, str]

    @property
    def length_ns(self) -> int:
        return max(1, self.span_ns)

    def growth(self, column: str, of: str) -> int:
        """Returns the growth of a counter over the scenario; raises Unknown if fewer than two lines have it.
        The error's text is the recorded reason for the subject `of`, if there is one.
        """
        values = self.rows[column].drop_nulls()
        if values.len() < 2:
            raise Unknown(self.unmade.get(of, f"raw/{FILES[self.where]} has no {column}"))
        return int(values[-1]) - int(values[0])

    def share(self, column: str, of: str) -> float:
        return self.growth(column, of) / self.length_ns

    def knows(self, column: str) -> bool:
        return self.rows[column].drop_nulls().len() >= 2


def stalls(s: Disturbance) -> Found:
    """Judges gaps between heartbeats, which show that a kernel, machine or process was paused: a finding for
    a gap of 200 ms, or for gaps over 1 % of the scenario and 100 ms.
    """
    worst, total = int(s.whole["worst_ns"].max() or 0), int(s.whole["stalled_ns"].sum())  # type: ignore[arg-type]
    share = total / s.length_ns
    late = f"late by up to {worst / 1e6:.0f} ms, by {share:.1%} of the time in all"
    said = f"heartbeats of {OF[s.where]} came {late}"
    bad = worst >= STALL_NS or (share >= STALLED and total >= STALLED_NS)
    return (f"{said}: it stood still, and latencies show it" if bad else None), said


def suspended(s: Disturbance) -> Found:
    """Judges suspension of the machine by the machine's own counter, since the lab's clock stops during a
    suspension: a finding from 10 ms on.
    """
    by = s.growth("suspended_ns", "suspended")
    said = f"the machine was suspended for {by / 1e9:.2f} s"
    return (said if by >= SUSPENDED_NS else None), said


def clock_steps(s: Disturbance) -> Found:
    """Judges steps of the time of day, as after a machine was paused or restored from a snapshot: a finding
    if they add up to 100 ms or more.
    """
    by = s.growth("set_ns", "clock steps")
    said = f"the time of day of {OF[s.where]} moved by {by / 1e9:+.3f} s against its clock"
    return (f"{said}: it was set, or the machine was paused" if abs(by) >= SET_NS else None), said


def throttling(s: Disturbance) -> Found:
    """Judges throttling by control groups with a CPU quota, as containers have: a finding above 2 % of the
    scenario.
    """
    share, hit = s.share("throttled_ns", "throttling"), s.growth("throttled", "throttling")
    periods = s.growth("periods", "throttling")
    said = f"a CPU quota stopped {WHOSE[s.where]} in {hit} of {periods} periods, {share:.1%} of the time"
    return (said if share > TAKEN else None), said


def run_queue(s: Disturbance) -> Found:
    """Judges the time for which the lab waited for a core, less 2 us for each time slice: a finding above 2 %
    of the scenario. Without schedstat it judges PSI of the whole machine: a finding above 25 %.
    """
    if not s.knows("waited_ns") and s.knows("pressure_ns"):
        share = s.share("pressure_ns", "pressure")
        said = f"programs of this machine waited for a core in {share:.1%} of the time"
        return (said if share > PRESSED else None), said
    waited, slices = s.growth("waited_ns", "run queue"), s.growth("slices", "run queue")
    share = max(0, waited - slices * SWITCH_NS) / s.length_ns
    said = f"{WHOSE[s.where]} waited for a core that others had in {share:.1%} of the time"
    return (said if share > TAKEN else None), said


def steal(s: Disturbance) -> Found:
    """Judges steal on the cores that the lab may use, and on the core on which it ran: a finding if one share
    is above 2 %.
    """
    may = s.growth("steal_ns", "cores") / _core_time(s)
    own = s.growth("own_steal_ns", "cores") / max(1, s.growth("own_core_ns", "cores"))
    said = f"a hypervisor stole {max(may, own):.1%} of the time of the cores that {WHOSE[s.where]} were on"
    return (said if max(may, own) > TAKEN else None), said


def _core_time(s: Disturbance) -> int:
    """Returns the CPU time of the cores that the lab may use; raises Unknown if /proc/stat counts none, as
    in some sandboxes.
    """
    if (time := s.growth("cores_ns", "cores")) <= 0:
        raise Unknown("/proc/stat counts no time of cores")
    return time


def heat(s: Disturbance) -> Found:
    """Judges thermal throttling of cores that the lab may use: a finding above 2 % of the scenario. A
    governor that slows idle cores does not count.
    """
    share = s.share("heat_ns", "heat")
    said = f"a core that the lab may use ran slower to cool down in {share:.1%} of the time"
    return (said if share > TAKEN else None), said


def busy_cores(s: Disturbance) -> Found:
    """Judges the load of the cores that the lab may use, unless these are all cores of the machine: a finding
    if they were over 90 % busy in more than 5 % of the seconds, and in at least two seconds.
    """
    _core_time(s)
    may = s.rows["cores"].drop_nulls()[-1]
    if may >= s.cores:
        return None, f"the lab may use all {s.cores} cores"
    shares = s.rows.select(1 - pl.col("idle_ns").diff() / pl.col("cores_ns").diff()).to_series().drop_nulls()
    over = int((shares > BUSY).sum())
    may_use = f"the {may} of {s.cores} cores that the lab may use"
    said = f"{may_use} were over {BUSY:.0%} busy in {over} of {shares.len()} s"
    return (said if over >= 2 and over > shares.len() * BUSY_TIME else None), said


def stopped(s: Disturbance) -> Found:
    """Judges stopped processes (SIGSTOP) of the lab: a finding for any second with such a process. Raises
    Unknown if no thread checked the processes.
    """
    looks = s.rows[STOPPED].drop_nulls()
    if not looks.len():
        raise Unknown(f"raw/{FILES[s.where]} has no look at processes")
    seconds = int((looks > 0).sum())
    who = f": {names}" if (names := s.unmade.get(STOPPED)) else ""
    said = f"processes of the lab were stopped (SIGSTOP) in {seconds} of {looks.len()} seconds with a look"
    return (f"{said}{who}" if seconds else None), said


RULES = {
    "stalls": stalls, STOPPED: stopped, "suspended": suspended, "clock-steps": clock_steps,
    "throttling": throttling, "run-queue": run_queue, "core-steal": steal, "core-busy": busy_cores,
    "heat": heat,
}  # fmt: skip
OUTSIDE = tuple(name for name in RULES if name != STOPPED)
STOP = re.compile(r"\bkill\b.*(STOP|TSTP|-19\b)")
# rules that do not apply to trials, because a generator of frames uses all CPU time
OF_TRIALS = ("stalls", "run-queue", "core-busy")


Judged = tuple[list[Warned], list[dict[str, Any]]]


def judge(run_dir: Path, manifest: Manifest, plan: Plan) -> Judged:
    """Returns the findings, and every check that applies with its verdict. Both are empty for a run without
    heartbeats, such as one in virtual time. If some checks could not be made, one more finding names them;
    it does not make the run suspect.
    """
    path = retired.there(run_dir / "disturbance.parquet")
    if path is None:
        return [], []
    table = pl.read_parquet(path)
    table = table.rename(retired.columns("disturbance", table.columns))
    warned, checks = list[Warned](), list[dict[str, Any]]()
    for where in FILES:
        s = _of(run_dir, table, manifest, where)
        for name, rule in _rules(where, manifest, plan):
            verdict, text = _answer(rule, s)
            checks.append({"name": f"{name} ({where})", "verdict": verdict, "text": text, "numbers": {}})
            if verdict == "fails":
                warned.append(Warned(f"{TRUST}{name}", text, QUIET, suspect=True))
    missing = [c for c in checks if c["verdict"] == "cannot tell" and c["text"] != SHORT]
    # few machines have a counter of thermal throttling
    missing = [c for c in missing if not c["name"].startswith("heat")]
    unmade = [f"{c['name']}: {c['text']}" for c in missing]
    if unmade:
        text = f"could not be checked: {'; '.join(unmade)}"
        warned.append(Warned(f"{TRUST}unmade", text, "such use of the lab's CPU leaves no trace"))
    return warned, checks


def _answer(rule: Any, s: Disturbance) -> tuple[str, str]:
    if s.rows.height < LEAST:
        return "cannot tell", SHORT if s.length_ns < LEAST * SECOND else f"raw/{FILES[s.where]} has {FEW}"
    try:
        finding, said = rule(s)
    except Unknown as why:
        return "cannot tell", str(why)
    return ("holds", said) if finding is None else ("fails", finding)


def _rules(where: str, manifest: Manifest, plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yields name and function of the rules that apply to one heartbeat thread. In the lab kernel these are
    only stalls and stopped processes, because its counters are not the machine's.

    Runs with trials leave out stalls, run-queue and core-busy; timelines that stop processes leave out
    `stopped`. Without the lab kernel there is no thread `outer`.
    """
    inside = manifest.kernel.get("kind") == "uml"
    if where == "outer" and not inside:
        return
    seen = ("stalls", STOPPED) if inside else tuple(RULES)
    passed = OF_TRIALS if trials.planned(plan) else ()
    for name, rule in RULES.items():
        if name not in (seen if where == "lab" else OUTSIDE) or name in passed:
            continue
        if not (name == STOPPED and _stops(plan)):
            yield name, rule


def _stops(plan: Plan) -> bool:
    """Returns True if the timeline freezes programs, or runs a `kill` command with a stopping signal (STOP,
    TSTP, 19).
    """
    if any(event.action == "freeze" for event in plan.events):
        return True
    runs = (event for event in plan.events if event.action == "run")
    return any(STOP.search(" ".join(map(str, event.args.get("argv", ())))) for event in runs)


def _of(run_dir: Path, table: pl.DataFrame, manifest: Manifest, where: str) -> Disturbance:
    phases = manifest.phases
    rows = table.filter(pl.col("where") == where)
    begin, end = 0, 0
    if phases:
        begin, end = min(b for b, _ in phases.values()), max(e for _, e in phases.values())
        # A line describes the second before it; what is set up or taken down outside the scenario may be
        # late.
        rows = rows.filter(pl.col("t_ns").is_between(begin - EDGE_NS, end + EDGE_NS))
    elif rows.height:
        begin, end = rows["t_ns"][0], rows["t_ns"][-1]
    reasons = retired.there(run_dir / "raw" / Path(FILES[where]).with_suffix(".json"))
    unmade = retired.named("disturbance", json.loads(reasons.read_text()) if reasons else {})
    cores = int((manifest.machine or manifest.host).get("cores") or 0)
    return Disturbance(
        where, rows, rows.filter(pl.col("t_ns") >= begin + SECOND - EDGE_NS), end - begin, cores, unmade
    )
