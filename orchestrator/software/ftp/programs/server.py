"""Serves files by FTP (pyftpdlib), each as long as its flow requires.

Usage: server.py SETTINGS. The name of a file is FLOW-SEQ and its content is zeros. Uploads are recorded and
discarded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from account import Account
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.filesystems import AbstractedFS
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer

NAME, PASSWORD = "vnet", "vnet"
ACCOUNT = Account()


def flow_and_seq(name: str) -> tuple[int, int]:
    """Returns the flow's number and the sequence number from a file's name, FLOW-SEQ."""
    flow, _, seq = name.rpartition("/")[2].partition("-")
    return int(flow), int(seq)


class Zeros:
    """A readable file of `size` zeros."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.closed, self._left = name, False, size

    def read(self, most: int) -> bytes:
        count = min(most, self._left)
        self._left -= count
        return bytes(count)

    def seek(self, to: int, *_: int) -> None:
        self._left -= to

    def close(self) -> None:
        self.closed = True


class Sink:
    """A file for uploads that discards its content."""

    def __init__(self, name: str) -> None:
        self.name, self.closed = name, False

    def write(self, data: bytes) -> int:
        return len(data)

    def close(self) -> None:
        self.closed = True


class Files(AbstractedFS):  # type: ignore[misc]
    """The file system that clients see: reading gives zeros, writing discards."""

    def open(self, filename: str, mode: str) -> Any:
        if "r" not in mode:
            return Sink(filename)
        flow, _ = flow_and_seq(filename)
        return Zeros(filename, SIZES[flow])


class Handler(FTPHandler):  # type: ignore[misc]
    """Serves one client, and records each request of a file and each upload."""

    use_sendfile = False
    banner = "vNET"

    def ftp_RETR(self, file: str) -> Any:  # noqa: N802
        ACCOUNT.received(*flow_and_seq(file), ACCOUNT.endpoint, 0)
        return super().ftp_RETR(file)

    def on_file_received(self, file: str) -> None:
        ACCOUNT.received(*flow_and_seq(file), ACCOUNT.endpoint, 0)


SIZES = {flow["number"]: (flow["reply"] or flow["payload"])["bytes"] for flow in ACCOUNT.told["receives"]}


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    users = DummyAuthorizer()
    users.add_user(NAME, PASSWORD, ".", perm="elrw")
    Handler.authorizer, Handler.abstracted_fs = users, Files
    server = FTPServer((settings["host"], settings["port"]), Handler)
    ACCOUNT.step("listening")
    print("vnet: ready", flush=True)
    server.serve_forever(handle_exit=False)


if __name__ == "__main__":
    main()
