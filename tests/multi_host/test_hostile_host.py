"""Tests a host that sends invalid messages in place of its part of a lab: its connection ends with the
reason, and the lab continues.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.lab.clock import SECOND, MonotonicClock
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.channel import Channel

HOSTILE = {
    "words of a shell": b"Last login: today\n",
    "no object": b"[]\n",
    "deep": b"[" * 100_000 + b"\n",
    "no text": b"\xff\xfe\n",
    "an id that is a list": b'{"id": []}\n',
    "an answer without one": b'{"id": 1}\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_part_sends_ends_its_connection(tmp_path: Path, name: str) -> None:
    loop, lost, events = Loop(MonotonicClock()), list[str](), list[object]()
    said = tmp_path / "said"
    said.write_bytes(HOSTILE[name])
    channel = Channel(
        loop, "far", ["sh", "-c", f"cat {said}; exec cat >/dev/null"], tmp_path / "log",
        events.append, lost.append,
    )  # fmt: skip
    answers: list[dict[str, object]] = []
    channel.ask("facts", {}, answers.append)
    loop.until(loop.clock.now_ns() + 20 * SECOND, "the end of the connection", lambda: bool(lost))
    assert "it sent what no part sends" in lost[0] or "its answer is not ours" in lost[0]
    assert events == [] and [answer["ok"] for answer in answers] == [False]
    channel.close()
