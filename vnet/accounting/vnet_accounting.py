"""Accounts for the messages of a program in a vNET lab (docs/accounting.md). Copy this file beside it.

    account = Accounting()
    for message in account.due():  # each when it is due
        sent_ns = account.now_ns()
        ...
        account.sent(message, sent_ns)

A receiver calls `account.received(flow, seq)` for each arrival: put both numbers into the message. The
standard library only; threads may share an object.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Message:
    """A message that is due: `size` in bytes, and (endpoint, address) of each receiver."""

    flow: int
    seq: int
    size: int
    scheduled_ns: int
    to: tuple[tuple[str, str], ...]


class Accounting:
    """The messages that this program must send and receive, and the program's records of them. Ends the
    program if vNET has not started it with `flows` or `receives`.
    """

    def __init__(self) -> None:
        if not {"VNET_FLOWS", "VNET_RECORDS"} <= os.environ.keys():
            sys.exit(
                "vnet_accounting: no VNET_FLOWS and VNET_RECORDS: "
                "the command needs `flows:` or `receives: true`"
            )
        self._told = self._read()
        self.endpoint: str = self._told["endpoint"]
        self._records = open(os.environ["VNET_RECORDS"], "a", buffering=1)  # noqa: PTH123, SIM115

    def _read(self) -> dict[str, Any]:
        with open(os.environ["VNET_FLOWS"]) as file:  # noqa: PTH123
            told: dict[str, Any] = json.load(file)
        return told

    def now_ns(self) -> int:
        """Returns the lab's time in Unix nanoseconds."""
        return time.monotonic_ns() + int(self._told["clock_offset_ns"])

    def begin(self) -> int:
        """Waits until vNET states when the scenario starts, and returns that time."""
        while self._told["t0_ns"] is None:
            time.sleep(0.01)
            self._told = self._read()
        return int(self._told["t0_ns"])

    def due(self) -> Iterator[Message]:
        """Yields each message of all flows when it is due, in the order of those times."""
        t0_ns = self.begin()
        for at_ns, flow, seq in sorted(_times(self._told["sends"])):
            told = next(one for one in self._told["sends"] if one["number"] == flow)
            to = tuple((peer["endpoint"], peer["address"]) for peer in told["to"])
            time.sleep(max(0, t0_ns + at_ns - self.now_ns()) / 1e9)
            yield Message(flow, seq, told["payload"]["bytes"], t0_ns + at_ns, to)

    def sent(self, message: Message, sent_ns: int) -> None:
        """Records a message that was sent, and whose arrival the protocol does not confirm."""
        self._outcome(message, sent_ns, 0, 1, "sent")

    def settled(self, message: Message, sent_ns: int, settled_ns: int, attempts: int = 1) -> None:
        """Records a message that was acknowledged, or a request whose replies have all arrived."""
        self._outcome(message, sent_ns, settled_ns, attempts, "settled")

    def unsettled(self, message: Message, sent_ns: int, attempts: int = 1) -> None:
        """Records a message that was sent, and whose acknowledgement or reply did not come."""
        self._outcome(message, sent_ns, 0, attempts, "unsettled")

    def unsent(self, message: Message) -> None:
        """Records a message that was never sent."""
        self._outcome(message, 0, 0, 0, "unsent")

    def _outcome(self, message: Message, sent_ns: int, settled_ns: int, attempts: int, outcome: str) -> None:
        sent_ns = max(sent_ns, message.scheduled_ns) if sent_ns else 0
        which = f"{message.flow},{message.seq},{message.size},{message.scheduled_ns}"
        self._records.write(f"S,{which},{sent_ns},{settled_ns},{attempts},{outcome}\n")

    def received(self, flow: int, seq: int, copy: bool = False) -> None:
        """Records an arrival at this program, now; `copy`: the protocol marks it as a repetition."""
        self._records.write(f"R,{flow},{seq},{self.endpoint},0,{self.now_ns()},{int(copy)}\n")

    def replied(self, flow: int, seq: int, receiver: str) -> None:
        """Records the arrival of the reply of an endpoint to a request of this program, now."""
        self._records.write(f"R,{flow},{seq},{receiver},1,{self.now_ns()},0\n")

    def listening(self) -> None:
        """Records that this program takes messages from now on."""
        self._records.write(f"C,{self.endpoint},listening,{self.now_ns()},\n")


def _times(sends: list[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Yields time, flow and number of each message; ends the program for a flow without a list of times."""
    for told in sends:
        if told["times_ns"] is None:
            sys.exit(
                f"vnet_accounting: {told['name']} has no list of times: it has more than 10,000 messages"
            )
        for seq, at_ns in enumerate(told["times_ns"]):
            yield at_ns, told["number"], seq
