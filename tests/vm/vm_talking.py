"""Sends requests of tests to running machines."""

from __future__ import annotations

import base64

from lab_running import Control

SERVING = "serving until `vnet down`"


def execute(control: Control, name: str, *argv: str) -> tuple[int, str]:
    answer, events = control.answer(control.send("exec", node=name, argv=list(argv), env={}, tty=None))
    assert answer["ok"], answer
    said = b"".join(base64.b64decode(e["data"]) for e in events if e["event"] == "output")
    return answer["status"], said.decode()
