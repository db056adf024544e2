"""Transfers files by FTP (ftplib) one after the other, each at its scheduled time or as soon as the transfer
before has ended. A transfer whose turn comes after its flow's end is recorded as unsent.
Usage: client.py SETTINGS
"""

from __future__ import annotations

import ftplib
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from account import Account

NAME, PASSWORD = "vnet", "vnet"
BLOCK_BYTES = 65_536
FAILURES = ftplib.all_errors


@dataclass(frozen=True)
class Transfer:
    """One scheduled transfer of a file: its time in ns of the lab's clock, its flow and its number in the
    flow.
    """

    due_ns: int
    flow: dict[str, Any]
    seq: int

    @property
    def name(self) -> str:
        return f"{self.flow['number']}-{self.seq}"

    @property
    def download(self) -> bool:
        return bool(self.flow["pattern"] == "request")

    @property
    def bytes(self) -> int:
        """The length of the message that the client itself sends: the request of a download, or the file of
        an upload.
        """
        return int(self.flow["payload"]["bytes"])


class Blocks:
    """A readable file of `size` zeros, the content of an upload."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, most: int) -> bytes:
        count = min(most, self._left)
        self._left -= count
        return bytes(count)


class Client:
    """The client's session with its one server; `session` is None while the client is not connected."""

    def __init__(self, account: Account, settings: dict[str, Any]) -> None:
        self.account, self.settings = account, settings
        self.server, (self.host, self.port) = next(iter(settings["servers"].items()))
        self.session: ftplib.FTP | None = None

    def connect(self) -> ftplib.FTP:
        if self.session is None:
            self.account.step("connecting")
            session = ftplib.FTP(timeout=self.settings["timeout_s"])
            session.connect(self.host, self.port)
            session.login(NAME, PASSWORD)
            self.account.step("connected")
            self.session = session
        return self.session

    def leave(self, why: str = "") -> None:
        """Ends the session and records that: with QUIT if `why` is empty, else as a failed session."""
        session, self.session = self.session, None
        if session is None:
            return
        try:
            if not why:
                session.quit()
        except FAILURES as error:
            why = str(error)
        session.close()
        self.account.step("disconnected", why)

    def move(self, one: Transfer) -> None:
        """Carries out one transfer and records it, whether it succeeds or fails."""
        sent_ns = settled_ns = 0
        try:
            session = self.connect()
            sent_ns = self.account.now_ns()
            if one.download:
                session.retrbinary(f"RETR {one.name}", lambda _: None, BLOCK_BYTES)
                self.account.received(one.flow["number"], one.seq, self.server, 1)
            else:
                session.storbinary(f"STOR {one.name}", Blocks(one.bytes), BLOCK_BYTES)  # type: ignore[arg-type]
            settled_ns = self.account.now_ns()
            if self.settings["login"] == "each":
                self.leave()
        except FAILURES as error:
            if self.session is None:
                self.account.step("failed", str(error))
            self.leave(str(error) or type(error).__name__)
        self.account.sent(one.flow["number"], one.seq, one.bytes, one.due_ns, sent_ns, settled_ns)


def transfers(told: dict[str, Any], t0_ns: int) -> Iterator[Transfer]:
    for flow in told["sends"]:
        for seq, at_ns in enumerate(flow["times_ns"]):
            yield Transfer(t0_ns + at_ns, flow, seq)


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    account = Account()
    client = Client(account, settings)
    print("vnet: ready", flush=True)
    t0_ns = account.await_start()
    for one in sorted(transfers(account.told, t0_ns), key=lambda one: (one.due_ns, one.name)):
        if account.now_ns() > t0_ns + one.flow["stop_ns"]:  # the flow ended before the message's turn
            account.sent(one.flow["number"], one.seq, one.bytes, one.due_ns, 0, 0)
            continue
        account.until(one.due_ns)
        client.move(one)
    client.leave()
    signal.pause()  # the client runs as long as its node


if __name__ == "__main__":
    main()
