"""Reduces a run directory: makes its Parquet tables from raw files and pcaps, checks them, and seals it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from capture import (
    disturbance,
    message_frames,
    messages,
    packed,
    possible,
    rawfile,
    record_consistency,
    records,
    requested,
    series,
    shared,
    tcpdump,
    transfers,
    trials,
    trust,
)
from capture.conservation import registry
from capture.conservation.evidence import Evidence, Recorded
from capture.errors import CaptureError
from capture.monitors import brokers, delayed_acks, queues, sockets
from capture.monitors.monitor import Monitor, Reading
from capture.pcap import Counts, reduce_pcap, reducer
from contract import manifest, regular, retired, rundir, seal
from contract.events import Applied
from contract.manifest import Warned
from contract.plan import Capture, Plan
from contract.tables import TABLES, Kind

# The monitors with their readers. docs/monitors.md explains each.
MONITORS: dict[Monitor, Callable[[Evidence], Reading]] = {
    queues.OVERFLOW: queues.overflow,
    queues.AT_RATE: queues.at_rate,
    sockets.DROPS: sockets.drops,
    sockets.AGAIN: sockets.retransmissions,
    delayed_acks.PLATEAU: delayed_acks.plateau,
    brokers.LIMITS: brokers.limits,
}

ALTERED = "The figures are made of what it holds now: repeat the run."
ABSENT = "The run may have ended before it was written; figures that need it are left out."
KINDS: Mapping[Kind, pl.DataType] = {
    "u8": pl.UInt8(), "u32": pl.UInt32(), "i64": pl.Int64(), "f64": pl.Float64(), "str": pl.String(),
    "bool": pl.Boolean(), "list[str]": pl.List(pl.String),
}  # fmt: skip


def schema(name: str) -> dict[str, pl.DataType]:
    """Returns the columns that every table of that name has, with their types."""
    return {one.name: KINDS[one.kind] for one in TABLES[name].columns if not one.absent}


@dataclass(slots=True)
class Reduced:
    """The result of a reduction: rows per table, counts per capture, and warnings, which the manifest has,
    too. The other fields are input of the conservation checks (capture.conservation.evidence.Evidence).
    """

    run_dir: Path
    tables: dict[str, int] = field(default_factory=dict)
    captures: dict[str, Counts] = field(default_factory=dict)
    warnings: list[Warned] = field(default_factory=list)
    recorded: Recorded | None = None
    pcap_bytes: dict[str, int] = field(default_factory=dict)
    matching: dict[str, int] = field(default_factory=dict)
    seen: dict[str, pl.DataFrame] = field(default_factory=dict)

    def write(self, name: str, table: pl.DataFrame) -> None:
        """Writes the table as `name`.parquet and stores its number of rows; the file gets its final name only
        when it is complete.
        """
        with regular.replacing(self.run_dir / f"{name}.parquet") as file:
            table.write_parquet(file, compression="lz4")
        self.tables[name] = table.height


def reduce_run(run_dir: Path) -> Reduced:
    """Writes every table that the run's raw files and pcaps allow, writes warnings, checks and monitors to
    the manifest, and seals the run. Warnings name absent and damaged files and pcaps that cannot be reduced.

    Deletes a reduced pcap unless its capture keeps it or it was cut. CaptureError if `run_dir` has no
    readable plan, has an entry that is neither a regular file nor a directory, or has pcaps while the reducer
    is not installed; then no table is written.
    """
    if other := regular.other_entry(run_dir):
        raise CaptureError(f"{run_dir}: {other}; a run has regular files and directories only; remove it")
    try:
        plan = rundir.read_plan(run_dir)
    except rundir.UnreadableError as error:
        raise CaptureError(str(error)) from error
    files = [run_dir / "pcap" / f"{capture.name}.pcap" for capture in plan.captures]
    if any(pcap.exists() or packed.packed(pcap).exists() for pcap in files):
        reducer()  # raises early if the reducer is missing, since no pcap could be reduced later
    done = Reduced(run_dir, warnings=_altered(run_dir))
    raw = run_dir / "raw"
    _if_present(done, raw / "nodes.csv", plan, _nodes)
    _if_present(done, raw / "links.csv", plan, _links)
    _host(done, raw)
    _disturbance(done, raw)
    _if_present(done, raw / "messages.csv", plan, _messages)
    _if_present(done, raw / "events.jsonl", plan, _events)
    if (path := run_dir / "raw" / "stacks.csv").exists():  # runs of earlier versions have no such file
        _stacks(done, path, plan)
    _disks(done, raw, plan)
    if trials.planned(plan):
        _trials(done, run_dir / "raw")
    for capture in plan.captures:
        if capture.to:
            continue  # the capture's packets were sent to another machine
        _capture(done, capture, _apps(plan))
    said = manifest.load(run_dir)
    done.warnings += [*trust.judge(run_dir, plan, said), *possible.judge(run_dir, said)]
    disturbances, checks = disturbance.judge(run_dir, said, plan)
    evidence = Evidence(run_dir, plan, said, done.recorded, done.pcap_bytes, done.matching, done.seen)
    conserved = registry.of_tables(evidence)
    done.warnings += [*disturbances, *registry.findings(conserved)]
    monitored = map(asdict, readings(evidence))
    manifest.reduced(run_dir, done.warnings, [*checks, *map(asdict, conserved)], monitored)
    seal.seal(run_dir, records=said.state != "running")
    return done


def readings(evidence: Evidence) -> list[Reading]:
    """Returns the readings of the monitors, in the order of MONITORS; omits monitors for a role that the run
    lacks. In a run of the fake driver, all verdicts are `cannot tell`.
    """
    roles = {"", *(software.role for node in evidence.plan.nodes for software in node.software)}
    monitors = [monitor for monitor in MONITORS if monitor.role in roles]
    if evidence.manifest.driver == "fake":
        return [monitor.untold("the fake driver's figures are invented") for monitor in monitors]
    return [MONITORS[monitor](evidence) for monitor in monitors]


def _altered(run_dir: Path) -> list[Warned]:
    """Returns a warning for each file of the lab (plan, manifest, proof, raw/, pcap/) that was changed or
    added after the run was sealed.
    """
    return [
        Warned(manifest.ALTERED, f"{name} was changed after it had been reduced", ALTERED, suspect=True)
        for name in seal.altered_records(run_dir)
    ]


def _apps(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Returns the ports of each application protocol in the plan's software."""
    spoken: dict[str, set[int]] = {}
    for node in plan.nodes:
        for software in node.software:
            for protocol, ports in software.ports.items():
                spoken.setdefault(protocol, set()).update(ports)
    return {protocol: tuple(sorted(ports)) for protocol, ports in sorted(spoken.items())}


Work = Callable[[Reduced, Path, Plan], None]


def _if_present(done: Reduced, path: Path, plan: Plan, work: Work) -> None:
    if path.exists():
        work(done, path, plan)
    elif path.stem not in ("links", "events") or getattr(plan, path.stem):
        # The tables of links and events are not needed if the plan has none.
        done.warnings.append(Warned("reduce-absent", f"raw/{path.name} is absent.", ABSENT))


def _nodes(done: Reduced, path: Path, plan: Plan) -> None:
    done.write("nodes", series.nodes(_both(done, path, series.NODES), plan))


def _links(done: Reduced, path: Path, plan: Plan) -> None:
    below = path.with_name("classes.csv")
    classes = _both(done, below, series.CLASSES) if below.exists() else None
    samples = series.links(_both(done, path, series.LINKS), classes)
    if (changed := path.with_name("impairments.csv")).exists():  # only a plan with traces has the file
        raw = rawfile.table(changed, requested.IMPAIRMENTS)
        done.warnings += raw.warnings
        done.write("impairments", raw.lines)
        samples = requested.beside(samples, raw.lines)
    done.write("links", samples)


def _both(done: Reduced, path: Path, schema: dict[str, Any]) -> pl.DataFrame:
    """Reads a file of samples, together with that of the VM nodes (such as nodes.vm.csv) if there is one,
    and adds the warnings to `done`.
    """
    tables = []
    for file in (path, path.with_name(f"{path.stem}.vm.csv")):
        if file == path or file.exists():
            raw = rawfile.table(file, schema)
            done.warnings += raw.warnings
            tables.append(raw.lines)
    return pl.concat(tables).sort("t_ns", maintain_order=True) if len(tables) > 1 else tables[0]


def _host(done: Reduced, raw_dir: Path) -> None:
    """Writes the table host from the samples of the lab's kernel and its machine, or of each host of a
    multi-host lab; gives a warning if raw/host.csv is needed and absent.
    """
    files = {path.stem.partition(".")[2]: path for path in sorted(raw_dir.glob("host.*.csv"))}
    files |= {"lab": raw_dir / "host.csv"} if not files or (raw_dir / "host.csv").exists() else {}
    if (outer := raw_dir / "outer.csv").exists():
        files["outer"] = outer
    if "lab" in files and not files["lab"].exists():
        done.warnings.append(Warned("reduce-absent", "raw/host.csv is absent.", ABSENT))
        return
    tables = []
    for where, file in files.items():
        raw = rawfile.table(file, series.HOST)
        done.warnings += raw.warnings
        tables.append(series.host(raw.lines, where))
    done.write("host", pl.concat(tables).sort("t_ns", maintain_order=True))


def _disturbance(done: Reduced, raw_dir: Path) -> None:
    """Writes the table disturbance from the records of heartbeats and CPU contention; does nothing without
    such records, as in virtual time.
    """
    tables = []
    for where, name in disturbance.FILES.items():
        if (file := retired.there(raw_dir / name)) is not None:
            raw = rawfile.table(file, disturbance.COLUMNS, retired.NAMES["disturbance"])
            done.warnings += raw.warnings
            tables.append(raw.lines.with_columns(where=pl.lit(where)))
    if tables:
        done.write("disturbance", pl.concat(tables).sort("t_ns", maintain_order=True))


def _messages(done: Reduced, path: Path, plan: Plan) -> None:
    found = shared.of_groups(records.read(path, len(plan.flows)), plan)
    table, misfits = messages.join(found, plan)
    done.warnings += [*found.warnings, *misfits]
    replies = found.received.filter(pl.col("leg") == records.BACK).height
    left_out = bool(misfits) or any(w.code != "reduce-cut" for w in found.warnings)
    done.recorded = Recorded(found.sent.height, found.received.height - replies, replies, left_out)
    done.warnings += record_consistency.check(found, table, plan, manifest.load(done.run_dir))
    done.write("messages", table)
    done.write("sessions", found.sessions.sort("t_ns", maintain_order=True))
    done.write("transfers", transfers.table(found.progress, plan))
    if found.windows.height:
        done.write("windows", transfers.windows(found.windows, plan))
    if found.spans.height:
        done.write("spans", messages.spans(found.spans, plan))


def _stacks(done: Reduced, path: Path, plan: Plan) -> None:
    raw = rawfile.table(path, series.STACKS)
    done.warnings += raw.warnings
    done.write("stacks", series.stacks(raw.lines, plan))


def _disks(done: Reduced, raw_dir: Path, plan: Plan) -> None:
    """Writes the table disks from the disk I/O of light nodes and VM nodes; does nothing if neither a kernel
    nor libvirt counted it.
    """
    tables = []
    for file in (raw_dir / "disks.csv", raw_dir / "disks.vm.csv"):
        if file.exists():
            raw = rawfile.table(file, series.DISKS)
            done.warnings += raw.warnings
            tables.append(raw.lines)
    if tables:
        done.write("disks", series.disks(pl.concat(tables), plan))


def _events(done: Reduced, path: Path, plan: Plan) -> None:
    raw = rawfile.read(path)
    done.warnings += raw.warnings
    rows = [_event(done, line) for line in raw.lines["line"]]
    kept = [row for row in rows if row is not None]
    done.write("events", pl.DataFrame(kept, schema=schema("events"), orient="row"))


def _trials(done: Reduced, raw_dir: Path) -> None:
    """Writes the tables trials, latencies and findings of RFC 2544 trials; gives a warning for each absent
    file.
    """
    patterns = {"trials": trials.TRIALS, "latencies": trials.LATENCIES, "findings": trials.FINDINGS}
    for name, pattern in patterns.items():
        path = raw_dir / f"{name}.csv"
        if not path.exists():
            done.warnings.append(Warned("reduce-absent", f"raw/{path.name} is absent.", ABSENT))
            continue
        raw = rawfile.table(path, pattern)
        done.warnings += raw.warnings
        done.write(name, trials.trials(raw.lines) if name == "trials" else raw.lines)


def _event(done: Reduced, line: str) -> dict[str, Any] | None:
    """Returns the row of one event, with `args` as JSON text, because they differ between actions; None and a
    warning for an invalid line.
    """
    try:
        row = asdict(Applied.parse(line))
    except ValueError:
        text = f"events.jsonl: {line[:60]!r} is no event and was left out."
        done.warnings.append(Warned("reduce-odd-lines", text, rawfile.CUT_REMEDY))
        return None
    return row | {"args": json.dumps(row["args"] or {})}


def _capture(done: Reduced, capture: Capture, apps: Mapping[str, tuple[int, ...]]) -> None:
    name = capture.name
    pcap = done.run_dir / "pcap" / f"{name}.pcap"
    if not packed.packed(pcap).exists():
        _plain_capture(done, capture, pcap, apps)
        return
    try:
        with packed.plain(pcap) as (file, damage):
            if damage:
                text = f"pcap/{name}.pcap.zst: {damage}; the packets before that were kept."
                done.warnings.append(Warned("reduce-cut", text, rawfile.CUT_REMEDY))
            _plain_capture(done, capture, file, apps)
            # A missing capture file counts as complete: it was reduced, and then removed because it is not to
            # be kept.
            whole = not damage and not file.exists()
    except CaptureError as error:
        done.warnings.append(Warned("reduce-pcap", str(error), "The capture is kept."))
        return
    if whole:
        packed.packed(pcap).unlink()


def _plain_capture(done: Reduced, capture: Capture, pcap: Path, apps: Mapping[str, tuple[int, ...]]) -> None:
    name = capture.name
    table = done.run_dir / "packets" / f"{name}.parquet"
    if not pcap.exists():
        if not table.exists():  # otherwise the capture was reduced before, and not kept
            done.warnings.append(Warned("reduce-absent", f"pcap/{name}.pcap is absent.", ABSENT))
        return
    connections = done.run_dir / "connections" / f"{name}.parquet"
    for folder in (table.parent, connections.parent):
        folder.mkdir(exist_ok=True)
    try:
        counts = reduce_pcap(pcap, table, apps, connections)
    except CaptureError as error:
        done.warnings.append(
            Warned("reduce-pcap", str(error), "The pcap is kept; look at it with tcpdump -r.")
        )
        return
    done.captures[name], done.tables[f"packets/{name}"] = counts, counts.packets
    done.warnings += _doubts(name, counts)
    if not counts.truncated:
        done.pcap_bytes[name] = pcap.stat().st_size
        done.seen[name] = message_frames.first_seen(pcap)
    if capture.filter and (count := tcpdump.matching(pcap, capture.filter)) is not None:
        done.matching[name] = count
    if not capture.keep and not counts.truncated:
        pcap.unlink()


def _doubts(name: str, counts: Counts) -> Iterator[Warned]:
    """Yields warnings about a capture: a cut file, evicted connections, streams that could not be followed,
    and link types that could not be decoded.
    """
    if counts.truncated:
        text = f"pcap/{name}.pcap {counts.cut}; {counts.packets} packets before that were kept."
        yield Warned("reduce-cut", text, rawfile.CUT_REMEDY)
    if counts.evicted:
        text = (
            f"{name}: {counts.evicted} TCP connections were removed to save memory; their later packets "
            "count as new connections."
        )
        yield Warned(
            "reduce-evicted", text, "Retransmissions of those may be missed; reduce with more --max-flows."
        )
    if counts.app_unknown:
        text = f"{name}: in {counts.app_unknown} packets the application's stream could not be followed."
        yield Warned("reduce-app", text, "Packets were lost in the capture, or snaplen cuts headers.")
    for text in counts.doubts():
        yield Warned("reduce-link", f"{name}: {text}", "Capture at an interface of another kind.")
