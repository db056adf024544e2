"""Tests that the host kernel starts, follows and ends the lab process, which a short Python program
replaces.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kernel_plans import facts, plan

from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.protocol import KernelError, Launch

SAY = """
import json, os, signal, sys, time
def bye(*_):
    print(json.dumps({"event": "end", "status": 3}), flush=True); sys.exit(3)
signal.signal(signal.SIGINT, bye)
print("not json", flush=True)
kernel = json.loads(os.environ["VNET_KERNEL"])
print(json.dumps({"event": "ready", "kernel": kernel, "session": os.getsid(0)}))
sys.stdout.flush()
time.sleep(60)
"""
DIE = "import sys; print('{\"event\": \"phase\"}'); sys.exit('the broker is missing')"


def start(tmp_path, code):
    kernel = HostKernel(facts(), lambda launch, state: ["-c", code], why="for the test")
    return kernel.start(
        Launch(plan(), tmp_path / "run", tmp_path / "state", Path("/bin/true"), scenario=True)
    )


def test_events_come_live_and_an_interrupt_ends_it(tmp_path):
    lab = start(tmp_path, SAY)
    events = lab.events()
    assert next(events) == {"event": "text", "text": "not json"}
    ready = next(events)
    assert ready["kernel"] == {"kind": "host", "release": "6.12.0", "why": "for the test"}
    assert ready["session"] == lab.process.pid != os.getsid(0)
    with pytest.raises(TimeoutError, match="still runs after"):
        lab.wait(0.1)
    lab.interrupt()
    assert list(events) == [{"event": "end", "status": 3}]
    assert lab.wait(10) == 3
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["lab"] == "pair"


def test_a_death_without_a_word_is_told_with_the_log(tmp_path):
    phase, error, end = start(tmp_path, DIE).events()
    assert phase == {"event": "phase"}
    assert "ended with status 1 before its work was done" in error["text"]
    assert error["text"].endswith("lab.log ends with\n  the broker is missing")
    assert end == {"event": "end", "status": 1}


def test_kill_ends_it_at_once(tmp_path):
    lab = start(tmp_path, SAY)
    lab.kill()
    assert lab.wait(1) == 128 + 9


def test_a_state_directory_too_long_for_a_socket_is_refused_before_anything_is_made(tmp_path):
    place = tmp_path / ("d" * 100)
    place.mkdir()
    with pytest.raises(
        KernelError, match=r"control.sock: has \d+ characters.*at most 107; set VNET_STATE_DIR"
    ):
        start(place, SAY)
    assert list(place.iterdir()) == []
