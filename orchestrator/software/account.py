"""Reads the flows of a program from $VNET_FLOWS, and writes the program's records to $VNET_RECORDS
(docs/accounting.md).
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Account:
    """The flows that $VNET_FLOWS gives to this program, and the file $VNET_RECORDS for its records; times are
    those of the lab's clock.
    """

    def __init__(self) -> None:
        self.told: dict[str, Any] = self._read()
        self.endpoint: str = self.told["endpoint"]
        self._records = Path(os.environ["VNET_RECORDS"]).open("a", buffering=1)  # a line each  # noqa: SIM115

    def now_ns(self) -> int:
        return time.monotonic_ns() + int(self.told["clock_offset_ns"])

    def await_start(self) -> int:
        """Waits until the scenario's start is known, and returns it in ns of the lab's clock."""
        while self.told["t0_ns"] is None:
            time.sleep(0.01)
            self.told = self._read()
        return int(self.told["t0_ns"])

    def until(self, at_ns: int) -> None:
        time.sleep(max(at_ns - self.now_ns(), 0) / 1e9)

    def step(self, what: str, detail: str = "") -> None:
        """Records a step of a connection; commas and line ends in `detail` become semicolons and blanks."""
        self._write("C", self.endpoint, what, self.now_ns(), detail.replace(",", ";").replace("\n", " "))

    def sent(
        self, flow: int, seq: int, size: int, due_ns: int, sent_ns: int, settled_ns: int, attempts: int = 0
    ) -> None:
        """Records a message that this program sent; `sent_ns` or `settled_ns` is 0 if that never happened.
        `attempts`: how often it was sent over a protocol that confirms nothing; 0: once, by one that does.
        """
        outcome = (
            "settled" if settled_ns else "unsent" if not sent_ns else "sent" if attempts else "unsettled"
        )
        self._write("S", flow, seq, size, due_ns, sent_ns, settled_ns, attempts or int(sent_ns > 0), outcome)

    def received(self, flow: int, seq: int, by: str, leg: int, copy: int = 0) -> None:
        """Records the arrival of a message, or of its reply (leg 1); `copy` is 1 for one that came before."""
        self._write("R", flow, seq, by, leg, self.now_ns(), copy)

    def span(self, what: str, begin_ns: int, lasted_ns: int) -> None:
        """Records an activity of this program that belongs to no message."""
        self._write("P", self.endpoint, what, "", "", begin_ns, lasted_ns)

    def _write(self, *fields: object) -> None:
        self._records.write(",".join(map(str, fields)) + "\n")

    @staticmethod
    def _read() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(Path(os.environ["VNET_FLOWS"]).read_text())
        return told
