"""Debian's chromium without a window, by its own protocol (Chrome DevTools): what a page test needs of it."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = "/usr/bin/chromium"


class Browser:
    """One page."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self.troubles: list[str] = []  # exceptions, refused loads, dialogs

    def call(self, method: str, **params: Any) -> Any:
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") in (
                "Runtime.exceptionThrown",
                "Log.entryAdded",
                "Page.javascriptDialogOpening",
            ):
                self.troubles.append(json.dumps(message["params"]))

    def run(self, script: str) -> Any:
        """The value of an expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, timeout_s: float = 60) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + timeout_s
        while not (found := self.run(script)):
            assert time.monotonic() < deadline, (script, self.run("document.body.innerText"), self.troubles)
            time.sleep(0.05)
        return found


@contextmanager
def browser(profile: Path, address: str) -> Iterator[Browser]:
    """A page at `address`; ends with the block."""
    process = subprocess.Popen(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
         "--window-size=1400,1000", f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        said = profile / "DevToolsActivePort"
        deadline = time.monotonic() + 60
        while not (said.exists() and said.read_text().count("\n")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        port = said.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30) as answer:
            (page,) = [one for one in json.load(answer) if one["type"] == "page"]
        with connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
            found = Browser(socket)
            for domain in ("Runtime", "Log", "Page"):
                found.call(f"{domain}.enable")
            found.call("Page.navigate", url=address)
            yield found
    finally:
        process.terminate()
        process.wait(30)
