"""The page in a real browser: it draws a lab, and words from labs stay words."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from browser import CHROMIUM, browser
from page_lab import HOSTILE, StandIn

from orchestrator.cli.page.app import Settings, application
from orchestrator.model import Impairment

ENTER = "document.querySelector('%s').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); 1"
pytestmark = pytest.mark.skipif(
    not Path(CHROMIUM).exists(), reason="needs chromium (apt-get install chromium)"
)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of a lab in which every name and text is hostile."""
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    run = tmp_path / "results" / "shown" / "1"
    (run / "raw" / "logs").mkdir(parents=True)
    interface = {"name": HOSTILE, "segment": HOSTILE, "address": HOSTILE, "prefix": 8, "mtu": 1, "port": "p"}
    node = {"name": HOSTILE, "group": HOSTILE, "kind": "light", "interfaces": [interface],
            "software": [{"name": HOSTILE, "kind": HOSTILE, "role": "server"}]}  # fmt: skip
    way = {"impairment": dataclasses.asdict(Impairment(delay_ns=10**6, limit_packets=10))}
    link = {
        "name": f"{HOSTILE}-access",
        "a": HOSTILE,
        "b": HOSTILE,
        "kind": "access",
        "forward": way,
        "reverse": way,
    }
    event = {
        "t_ns": 1,
        "action": HOSTILE,
        "targets": [HOSTILE],
        "label": HOSTILE,
        "ok": False,
        "error": HOSTILE,
    }
    plan = {"nodes": [node], "links": [link], "segments": [{"name": HOSTILE}], "events": [], "captures": [],
            "ramp_ns": 0, "hold_ns": 0, "drain_ns": 0, "flows": [{"traffic_class": HOSTILE}]}  # fmt: skip
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "manifest.json").write_text(json.dumps({"lab": HOSTILE, "state": HOSTILE, "warnings": [HOSTILE]}))
    (run / "raw" / "events.jsonl").write_text(json.dumps(event) + "\n")
    (run / "raw" / "messages.csv").write_text("S,0,1,10,1000,1001,1600,1,settled\n")
    (run / "raw" / "nodes.csv").write_text(
        f"1000000000,{HOSTILE},0,0,0,0,0,5\n2000000000,{HOSTILE},500000000,1000,1,0,0,7\n"
    )
    stand_in = StandIn(tmp_path / "s" / "shown", run)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app, _ = application(
        Settings("secret", frozenset({f"127.0.0.1:{port}"}), tmp_path / "results", every_s=0.1)
    )
    config = uvicorn.Config(
        app, log_level="warning", lifespan="off", ws="websockets-sansio", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)
    stand_in.shutdown()
    stand_in.server_close()


def test_hostile_words_stay_words(address: str, tmp_path: Path) -> None:
    with browser(tmp_path / "profile", f"{address}/?token=secret") as page:
        page.until("document.querySelectorAll('#labs a').length === 1 && !location.search")
        page.run("location.href = '/lab/shown'; 1")
        page.until(
            "document.querySelectorAll('.box').length === 2 && document.querySelector('.edge') !== null"
        )
        page.until("document.querySelector('.box .sub')?.textContent.includes('50 %')")  # of its counters
        said: dict[str, Any] = page.until(
            "(() => { const all = document.body.innerText; return all.includes('plan:') && "
            "{images: document.images.length, scripts: document.scripts.length, warning: all}; })()"
        )
        assert (said["images"], said["scripts"]) == (0, 1) and HOSTILE in said["warning"]
        page.run(ENTER % ".box.node")
        page.until("document.querySelector('#panel h2').textContent.includes('onerror')")
        page.run(ENTER % ".edge")
        page.until("document.querySelector('#panel').textContent.includes('as read back')")
        assert page.run("document.images.length + document.querySelectorAll('script:not([src])').length") == 0
        # A page of another origin gets nothing, with the cookie or without.
        refused = (
            f"fetch({json.dumps(address.replace('127.0.0.1', 'localhost'))}).then(() => 'in', () => 'out')"
        )
        assert page.run(refused) == "out"
        page.troubles = [t for t in page.troubles if "localhost" not in t]
        assert page.troubles == []
