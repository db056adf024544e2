"""Tests the owner process of a lab on another machine over its two pipes: its messages, and its behaviour
when the other end is gone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The program simulates a lab that prints one line and serves nobody until it is interrupted.
OWNER = """
import sys, threading
from pathlib import Path
from orchestrator.kernel.remote import remote_owner

class Lab:
    control = Path(sys.argv[1]) / "none.sock"
    asked = threading.Event()

    def events(self):
        yield {"event": "ready"}
        self.asked.wait()
        yield {"event": "end", "status": 130}

    def wait(self, timeout_s=None):
        return 130

    def interrupt(self):
        self.asked.set()

remote_owner.SILENCE_S = float(sys.argv[2])
sys.exit(remote_owner.RemoteOwner(Lab(), Path(sys.argv[1])).run())
"""


def owner(run_dir: Path, silence_s: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OWNER, str(run_dir), str(silence_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.fixture
def started(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = owner(tmp_path, 60)
    yield process
    process.kill()
    process.communicate()


def test_a_signal_from_home_ends_it_in_order(started: subprocess.Popen[str], tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"state": "running"}')
    assert started.stdin is not None and started.stdout is not None
    said: list[dict[str, object]] = []
    while not any("manifest" in line for line in said):
        said.append(json.loads(started.stdout.readline()))
    assert {"out": '{"event": "ready"}'} in said
    started.stdin.write('{"signal": "SIGINT"}\n')
    started.stdin.flush()
    said = [json.loads(line) for line in started.stdout]
    assert said[-1] == {"exit": 130}
    assert {"out": '{"event": "end", "status": 130}'} in said


def test_the_end_of_the_line_ends_the_lab(started: subprocess.Popen[str]) -> None:
    said, errors = started.communicate(timeout=20)  # communicate() closes the standard input
    assert (started.returncode, errors) == (130, "the connection ended: the lab was ended\n")
    assert '"exit"' not in said, "nobody would hear it"


def test_silence_ends_the_lab(tmp_path: Path) -> None:
    process = owner(tmp_path, 0.5)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    assert process.wait(20) == 130
    assert process.stderr.read() == "no message from home for 0.5 s: the lab was ended\n"
    process.communicate()
