"""Judges from a run's tables whether its figures can be trusted: load and steal of the machine, clocks,
delivery guarantees, late senders, CPU accounting, trials and lost captures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from capture import clocks, delivery, late, trials
from contract.manifest import TRUST, Manifest, Warned
from contract.plan import WAYS, Plan

# A machine is overloaded from this load on, if it has the load in more than this share of the scenario.
BUSY, BUSY_TIME = 0.9, 0.05
# largest share of the scenario's CPU time that a hypervisor may take, before CPU and latency are affected
STOLEN = 0.02
LEAST_SAMPLES = 3
MATTERS = 0.1  # share of a latency; if the error of the clocks is a larger share, a warning is given
MOST_NAMED = 3  # largest number of classes that a warning names
TICK_NS = 10_000_000  # timer tick of Debian's user-mode-linux (HZ=100)
KERNELS = {"lab": "the lab's kernel", "outer": "the machine outside"}


def judge(run_dir: Path, plan: Plan, manifest: Manifest) -> list[Warned]:
    """Returns all warnings that the run's tables, and the counts of captures in the manifest, give; an absent
    table gives none.
    """
    names = ("host", "messages", "nodes", "findings", "sessions", "events")
    host, messages, nodes, findings, sessions, events = (_table(run_dir, name) for name in names)
    found: list[Warned] = []
    if host is not None:
        modelled = manifest.virtual
        look = _core if modelled else _machine
        found += look(_within(host, manifest), trials.planned(plan))
    if messages is not None:
        known = messages.with_columns(known_ns=clocks.known_ns(messages, plan, manifest))
        found += [*_early(known, plan), *_known(known)]
        found += _guarantees(messages, plan)
        gaps = late.gaps(messages, plan, sessions, events)
        found += _senders(gaps, plan, nodes, _length_ns(messages, manifest), manifest.virtual)
    if nodes is not None:
        found += _accounting(nodes)
    if findings is not None:
        found += _tester(findings, plan)
    return [*found, *_captures(manifest)]


def _table(run_dir: Path, name: str) -> pl.DataFrame | None:
    path = run_dir / f"{name}.parquet"
    return pl.read_parquet(path) if path.exists() else None


def _within(host: pl.DataFrame, manifest: Manifest) -> pl.DataFrame:
    """Returns the samples within the scenario; all samples if its times are not known."""
    phases = manifest.phases
    if not phases:
        return host
    begin, end = min(b for b, _ in phases.values()), max(e for _, e in phases.values())
    return host.filter(pl.col("t_ns").is_between(begin, end))


def _length_ns(messages: pl.DataFrame, manifest: Manifest) -> int:
    """Returns the scenario's length in ns; if its times are not known, the time over which messages were
    due.
    """
    if phases := manifest.phases:
        return max(e for _, e in phases.values()) - min(b for b, _ in phases.values())
    due = messages["scheduled_ns"].drop_nulls()
    return int(due[-1]) - int(due[0]) if due.len() > 1 else 1


def _senders(
    gaps: list[late.Gap], plan: Plan, nodes: pl.DataFrame | None, length_ns: int, virtual: bool
) -> Iterator[Warned]:
    """Yields a warning of senders that stood still, which makes the run suspect; in virtual time one that
    does not if they waited for the modelled core.
    """
    free, waited = late.by_core(gaps, plan, nodes) if virtual else (gaps, [])
    if text := late.finding(free, length_ns):
        remedy = (
            "report it as an error: the modelled core had room"
            if virtual
            else "repeat it when the machine is idle"
        )
        yield _suspect("sender", f"{text} although nothing held them: latencies show it", remedy)
    if text := late.finding(waited, length_ns):
        why = "their nodes waited for the modelled core, and latencies show it"
        yield Warned(f"{TRUST}core", f"{text}: {why}", "lower the load, or VNET_SYSCALL_COST")


def _machine(host: pl.DataFrame, of_trials: bool) -> Iterator[Warned]:
    """Yields warnings, which make the run suspect, for the lab's kernel, its machine and each host: over 90 %
    busy in more than 5 % of the samples, unless the plan has trials (`of_trials`), or a mean steal above 2 %.
    """
    hosts = host.filter(~pl.col("where").is_in(list(KERNELS)))["where"].unique().sort()
    for where, kernel in {**KERNELS, **{name: f"host {name}" for name in hosts}}.items():
        rows = host.filter(pl.col("where") == where).drop_nulls("busy_share")
        over = rows.filter(pl.col("busy_share") > BUSY).height
        enough = rows.height >= LEAST_SAMPLES and over >= 2
        # a generator of frames uses all CPU time
        if enough and over > rows.height * BUSY_TIME and not of_trials:
            busy = f"{kernel} was over {BUSY:.0%} busy in {over} of {rows.height} s"
            text = f"{busy}: it shows in latency and CPU"
            yield _suspect("busy", text, "repeat it on an idle machine, or with less load")
        stolen = rows["steal_share"].mean()
        if isinstance(stolen, float) and stolen > STOLEN:
            text = f"{stolen:.1%} of the time of {kernel} was stolen by its hypervisor"
            yield _suspect("steal", text, "repeat it on a machine of its own")


def _core(host: pl.DataFrame, of_trials: bool) -> Iterator[Warned]:
    """Yields a warning, which does not make the run suspect, if the modelled core of a run in virtual time
    was busy for over 90 % of the time, unless the plan has trials (`of_trials`).
    """
    busy = host.filter(pl.col("where") == "lab")["busy_share"].mean()
    if isinstance(busy, float) and busy > BUSY and not of_trials:
        text = f"the modelled core was {busy:.0%} busy in the scenario: nodes waited for it"
        yield Warned(f"{TRUST}core", text, "lower the load, or VNET_SYSCALL_COST")


def _early(messages: pl.DataFrame, plan: Plan) -> Iterator[Warned]:
    """Yields a warning of messages that arrived before they were scheduled, by more than the known clock
    error, since they show a wrong clock or record.

    If a link flips bits, the warning does not make the run suspect, because a message with a damaged number
    counts as another message.
    """
    early = messages.filter(pl.col("latency_ns") < -pl.col("known_ns"))
    if early.is_empty():
        return
    if _flipped(plan):
        classes = ", ".join(early["class"].unique().sort())
        text = f"{classes}: {_messages(early)} arrived before being scheduled: a link flips bits"
        remedy = (
            "a number became it that nothing above Ethernet checks: the message that had it counts as lost"
        )
        yield Warned(f"{TRUST}flipped", text, remedy)
        return
    text = f"{_messages(early)} arrived before being scheduled: the lab's clock or the records are wrong"
    yield _suspect("clock", text, "latencies of this run are off by an unknown amount")


def _messages(found: pl.DataFrame) -> str:
    return "1 message" if found.height == 1 else f"{found.height} messages"


def _flipped(plan: Plan) -> bool:
    """Returns True if the plan requests bit errors on a link from the start."""
    return any(link.way(way).impairment.corrupt for link in plan.links for way in WAYS)


def _known(messages: pl.DataFrame) -> Iterator[Warned]:
    """Yields a warning with the classes whose clock error between kernels is above a tenth of the median
    latency. The warning does not make the run suspect.
    """
    across = messages.filter((pl.col("known_ns") > 0) & pl.col("latency_ns").is_not_null())
    of = across.group_by("class", maintain_order=True).agg(
        pl.col("latency_ns").median() / 1e6, pl.col("known_ns").max() / 1e6
    )
    doubted = of.filter(pl.col("known_ns") > MATTERS * pl.col("latency_ns"))
    if doubted.height:
        named = [
            f"{name} half are above {ms:.3g} ms, known to {to:.3g} ms" for name, ms, to in doubted.iter_rows()
        ]
        rest = f" and {len(named) - MOST_NAMED} more classes" if len(named) > MOST_NAMED else ""
        text = (
            "latencies between kernels are known no better than their clocks: of "
            f"{'; of '.join(named[:MOST_NAMED])}{rest}"
        )
        yield Warned(
            f"{TRUST}clocks", text, "halves of round trips do not depend on clocks; section Hosts has these"
        )


def _guarantees(messages: pl.DataFrame, plan: Plan) -> Iterator[Warned]:
    for v in delivery.verdicts(messages, plan):
        if v.holds is False:
            text = f"{v.class_}, {v.guarantee}: the guarantee did not hold: {v.reason}"
            yield Warned(f"{TRUST}guarantee", text, f"{v.rule}; messages.parquet has every message")


def ticked(nodes: pl.DataFrame) -> bool:
    """Returns True if all CPU times in the table of nodes are multiples of 10 ms: the kernel counts timer
    ticks, which miss short work. False for an empty table.
    """
    return nodes.height > 0 and bool(nodes.select((pl.col("cpu_ns") % TICK_NS == 0).all()).item())


def _accounting(nodes: pl.DataFrame) -> Iterator[Warned]:
    if ticked(nodes):
        text = (
            "the lab's kernel counts CPU in ticks of 10 ms, and work that a timer wakes falls between them: "
            "CPU of nodes may differ far from the shown values, and no claim on it is judged"
        )
        yield Warned(f"{TRUST}ticks", text, "vnet images build lab-kernel: one that counts nanoseconds")


def _tester(findings: pl.DataFrame, plan: Plan) -> Iterator[Warned]:
    """Yields warnings, which do not make the run suspect. One is of streams whose ends have different clocks;
    another is of frame sizes whose throughput was limited by the generator, not by the path.
    """
    streams = trials.streams(plan)
    if not all(trials.one_clock(plan, stream) for stream in streams):
        text = "sender and receiver are in two kernels, whose clocks differ: latency is not shown"
        yield Warned(f"{TRUST}clocks", text, "for latency take two nodes of one kernel")
    found = findings.filter(pl.col("test") == "throughput")
    slow = found.filter(pl.col("limit") == "tester").unique(["stream", "size"], maintain_order=True)
    if slow.height:
        named = (
            trials.label(stream, size, len(streams))
            for stream, size in slow.select("stream", "size").iter_rows()
        )
        text = (
            f"the tester, not the path, limited the throughput of {slow.height} of "
            f"{found.n_unique(['stream', 'size'])} frame sizes ({', '.join(named)}): "
            "the path carries at least this rate"
        )
        yield Warned(f"{TRUST}tester", text, "an idle machine, more cores, or a line rate within its reach")


def _captures(manifest: Manifest) -> Iterator[Warned]:
    for name, counts in manifest.captures.items():
        lost = sum(int(counts.get(k) or 0) for k in ("dropped_kernel", "dropped_interface"))
        if lost:
            text = f"capture {name} lost {lost:,} packets that are in no figure ({counts['packets']:,} kept)"
            yield _suspect("captures", text, "take a shorter snap length or a narrower filter")


def _suspect(code: str, text: str, remedy: str) -> Warned:
    return Warned(f"{TRUST}{code}", text, remedy, suspect=True)
