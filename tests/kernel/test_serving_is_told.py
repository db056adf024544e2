"""Tests that a guest reports the lab's control socket before it passes on the lab's next line, because a
reader of that line may use the socket at once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.uml.guest import Supervisor


def test_the_control_socket_is_told_of_before_the_line_that_says_serving(tmp_path: Path) -> None:
    host, guest = os.openpty()
    control = tmp_path / "control.sock"
    supervisor = Supervisor({"serial": os.ttyname(guest), "control": str(control)})
    out, lab = os.pipe()
    said = LineStream(out)
    told = []
    for word in ("building", "serving until `vnet down`", "later"):
        os.write(lab, json.dumps({"text": word}).encode() + b"\n")
        supervisor._output(said)
        supervisor.serial.flush()
        told += _messages(host, through=word)
        control.touch()
    assert [next(iter(message)) for message in told] == ["out", "serving", "out", "out"]


def _messages(terminal: int, through: str) -> list[dict[str, object]]:
    """Returns the JSON messages from a terminal up to the line with `through`; a terminal delivers whole
    lines, but not all at once.
    """
    got = b""
    while through.encode() not in got or not got.endswith(b"\n"):
        got += os.read(terminal, 4096)
    return [json.loads(line) for line in got.splitlines()]
