"""Tests captures that never begin or never end: no tcpdump is left running, and the error names the
capture.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.plan import Capture
from orchestrator.lab import captures, live_captures
from orchestrator.lab.clock import SECOND, JumpingClock, MonotonicClock
from orchestrator.lab.errors import Interrupted, LabError, TimedOut
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.verbs import Verbs
from orchestrator.lab.process import end_captures

POINT = Capture("late", "node left", "vnet-x", "eth0", 1600, "", keep=True)

STUBBORN = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("there", file=sys.stderr, flush=True)
signal.pause()
"""


class Deaf:
    """A capture that never reports that it is ready."""

    listening = False

    def __init__(self) -> None:
        self.stopped = 0

    def stop(self) -> dict[str, int]:
        self.stopped += 1
        raise LabError("no counts")


class OneDriver:
    """A driver whose captures are all the same process."""

    def __init__(self, process: Deaf) -> None:
        self.process = process

    def capture(self, point: Capture, file: Path, ended: object) -> Deaf:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return self.process


def _lab(tmp_path: Path, process: Deaf, loop: Loop) -> Any:
    return SimpleNamespace(driver=OneDriver(process), loop=loop, run_dir=tmp_path, captures={})


def test_a_live_capture_that_never_begins_is_ended(tmp_path: Path) -> None:
    process = Deaf()
    lab = _lab(tmp_path, process, Loop(JumpingClock()))
    with pytest.raises(TimedOut, match="capture late"):
        live_captures._begin(lab, POINT)
    assert process.stopped == 1 and lab.captures == {}
    assert not (tmp_path / "pcap" / "late.pcap").exists(), "its name is free again"


def test_a_live_capture_whose_start_is_interrupted_is_ended(tmp_path: Path) -> None:
    process, loop = Deaf(), Loop(JumpingClock())
    loop.interrupt(Interrupted("SIGINT"))
    with pytest.raises(Interrupted):
        live_captures._begin(_lab(tmp_path, process, loop), POINT)
    assert process.stopped == 1


def test_a_capture_of_a_part_that_never_begins_is_ended(tmp_path: Path) -> None:
    process = Deaf()
    part = SimpleNamespace(home=tmp_path, loop=Loop(JumpingClock()))
    verbs = Verbs(part)  # type: ignore[arg-type]
    verbs._opened = OneDriver(process)  # type: ignore[assignment]
    message = {"name": "late", "file": str(tmp_path / "late.pcap"), "capture": _as_data(POINT)}
    with pytest.raises(TimedOut, match="capture late"):
        verbs._capture(message)
    assert process.stopped == 1 and verbs._captures == {}


def _as_data(point: Capture) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(point)


def test_tcpdump_that_ignores_the_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "command", lambda _: [sys.executable, "-S", "-c", STUBBORN])
    loop, died = Loop(MonotonicClock()), list[str]()
    process = captures.TcpdumpCapture(loop, POINT, tmp_path / "late.pcap", died.append)
    loop.until(loop.clock.now_ns() + 20 * SECOND, "the script", lambda: bool(process._tcpdump.said))
    monkeypatch.setattr(captures, "STOP_NS", 0)
    with pytest.raises(TimedOut, match="capture late to end"):
        process.stop()
    loop.until(loop.clock.now_ns() + 20 * SECOND, "its end", lambda: process._tcpdump.ended)
    assert process._tcpdump.process.returncode == -signal.SIGKILL and died == []


def test_one_capture_that_fails_does_not_keep_the_others_from_ending() -> None:
    one, other = Deaf(), Deaf()
    lab: Any = SimpleNamespace(
        captures={n: SimpleNamespace(process=p) for n, p in (("a", one), ("b", other))}
    )
    with pytest.raises(LabError, match="no counts; no counts"):
        end_captures(lab)
    assert (one.stopped, other.stopped, lab.captures) == (1, 1, {})
