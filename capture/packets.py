"""Runs tshark on the pcap of a run's capture point, and yields the lines of its dissection."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from capture import packed
from capture.errors import CaptureError
from capture.keys import key_file, keys
from contract import regular, rundir

ROOT = "Running as user"  # tshark prints this line at every start by root


def points(run_dir: Path) -> list[str]:
    """Returns the names of the capture points in the run's plan; UnreadableError without a readable plan."""
    return [capture.name for capture in rundir.read_plan(run_dir).captures]


def packets(
    run_dir: Path, point: str, display_filter: str = "", *, detail: bool = False, count: int = 0
) -> Iterator[str]:
    """Returns an iterator over the lines of tshark's dissection: one summary line for each packet that passes
    `display_filter`, or with `detail` the whole tree. `count` limits how many packets of the capture are
    read before the filter (0: all). If the run's programs have kept keys of TLS connections, the keys
    decrypt the packets. CaptureError if the plan, the point, its pcap or tshark is absent, or while
    iterating if tshark fails, for example because the filter is wrong.
    """
    pcap = pcap_of(run_dir, point)
    keys(run_dir)  # raises the error of a wrong file of keys before the first line is yielded
    argv = [_tshark(), "-n", "-r", str(pcap), "-t", "ad"]
    argv += ["-Y", display_filter] if display_filter else []
    argv += ["-V"] if detail else []
    argv += ["-c", str(count)] if count else []
    return _decrypted(run_dir, argv, pcap)


def _decrypted(run_dir: Path, argv: list[str], pcap: Path) -> Iterator[str]:
    with key_file(run_dir) as file:
        yield from _run([*argv, *(["-o", f"tls.keylog_file:{file}"] if file else [])], pcap)


def pcap_of(run_dir: Path, point: str) -> Path:
    if run_dir.is_dir() and (other := regular.other_entry(run_dir)):
        rule = "a run has regular files and directories only"
        raise CaptureError(f"{run_dir}: {other}; {rule}; remove it")
    try:
        known = points(run_dir)
    except rundir.UnreadableError as error:
        raise CaptureError(f"{run_dir}: {error}; it has to be a run directory with its plan.json") from error
    if point not in known:
        raise CaptureError(f"{run_dir}: no capture point {point!r}; it has {', '.join(known) or 'none'}")
    pcap = run_dir / "pcap" / f"{point}.pcap"
    if (small := packed.packed(pcap)).exists() and not pcap.exists():
        raise CaptureError(f"{small} is compressed; `zstd -d {small}` unpacks it")
    if not pcap.exists():
        table = run_dir / "packets" / f"{point}.parquet"
        where = f"its packets are in {table}; " if table.exists() else ""
        raise CaptureError(f"{pcap} does not exist; {where}set `keep: true` on the capture to keep the pcap")
    return pcap


def _tshark() -> str:
    found = shutil.which("tshark")
    if found is None:
        raise CaptureError("tshark is not installed; `apt-get install tshark`")
    return found


def _run(argv: list[str], pcap: Path) -> Iterator[str]:
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stdout:
                yield line.rstrip("\n")
            said = process.stderr.read().strip()
        finally:
            process.terminate()  # a reader that stops early leaves tshark running
    # tshark also exits with 2 for a file that is cut short, after all its packets
    if process.returncode > 0 and "cut short" not in said:
        lines = [line.removeprefix("tshark: ") for line in said.splitlines() if not line.startswith(ROOT)]
        reason = lines or [f"tshark ended with {process.returncode}"]
        raise CaptureError(f"{pcap}: {' '.join(reason)}")
