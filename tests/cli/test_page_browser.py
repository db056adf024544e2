"""Tests the page in a real browser: it draws a lab, and shows text from labs as text."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from browser import WHY, comes, here, picture
from command_line import CommandLine
from page_lab import HOSTILE, StandIn
from playwright.sync_api import Page, expect

from contract.plan import Impairment, Plan
from orchestrator.cli.page.app import Settings, application

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from whole_plan import whole

pytestmark = pytest.mark.skipif(not here(), reason=WHY)
CAMPAIGN = """name: trial
segments: {lan: {subnet: 10.20.0.0/24}}
nodes:
  left: {segment: lan, software: {sender: {mqtt: {broker: right, publish: {topic: t, qos: 0, rate: 10 /s}}}}}
  right:
    segment: lan
    software:
      mosquitto: {broker: mosquitto}
      receiver: {mqtt: {broker: right, subscribe: [{topic: t, qos: 0}]}}
links:
  wan: {between: [left, lan], both: {delay: 20 ms}}
run: {hold: 12 s}
campaign: {repetitions: 3}
"""
KEYS = """name: keys
segments: {a: {subnet: 10.20.0.0/24}, b: {subnet: 10.20.0.0/24}}
nodes: {server: {segment: b}}
groups: {meter: {count: 3, segment: a}}
links:
  own: {between: [meter, a], both: {delay: 1 ms}}
  wan:
    between: [a, b]
    both: {rate: 8 Mbit/s, queue: {htb: {voice: {dscp: EF, rate: 2 Mbit/s}, rest: {rate: 4 Mbit/s}}}}
run: {hold: 1 s}
"""
SMALL: Any = {"width": 350, "height": 225}  # a window of 1400 by 900 pixels with all enlarged four times
WIDTH = "document.documentElement.scrollWidth"  # wider than the window: the page scrolls sideways


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yields the address of a page of a lab in which every name and text contains an attack."""
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
            "flows": [{"name": HOSTILE, "traffic_class": HOSTILE}]}  # fmt: skip
    (run / "plan.json").write_text(json.dumps(whole(Plan, plan)))
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


def test_hostile_words_stay_words(hostile: str, chromium: Callable[..., Page]) -> None:
    page = chromium()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.goto(f"{hostile}/?token=secret")
    expect(page.locator("#labs a")).to_have_count(1)
    assert "token" not in page.url
    page.goto(f"{hostile}/lab/shown")
    expect(page.locator(".box")).to_have_count(2)
    comes(page.locator(".box.node"), "50 %")  # share of its counters
    comes(page.locator("#panel"), HOSTILE)
    page.locator(".box.node").press("Enter")
    comes(page.locator("#panel h2").first, "onerror")
    page.locator(".edge").press("Enter")
    comes(page.locator("#panel"), "read back")
    assert (
        page.evaluate("document.images.length + document.querySelectorAll('script:not([src])').length") == 0
    )
    assert troubles == []
    # A page of another origin gets nothing, with the cookie or without.
    refused = f"fetch('{hostile.replace('127.0.0.1', 'localhost')}').then(() => 'in', () => 'out')"
    assert page.evaluate(refused) == "out"


def test_what_was_seen_can_be_looked_at_again(
    hostile: str, tmp_path: Path, chromium: Callable[..., Page]
) -> None:
    page = chromium()
    page.goto(f"{hostile}/?token=secret")
    page.goto(f"{hostile}/lab/shown")
    node, moment = page.locator(".box.node"), page.locator("#moment")
    samples = tmp_path / "results" / "shown" / "1" / "raw" / "nodes.csv"

    def sampled(second: int, cpu_ns: int) -> None:
        with samples.open("a") as file:
            file.write(f"{second}000000000,{HOSTILE},{cpu_ns},1000,1,0,0,7\n")

    comes(node, "50 %")
    sampled(3, 700_000_000)
    comes(node, "20 %")
    page.get_by_label("Moment").fill("0")
    comes(node, "50 %")
    comes(moment, "1.0 s before the newest")
    sampled(4, 1_600_000_000)
    comes(moment, "2.0 s before the newest")
    comes(node, "50 %")  # the map still shows the past moment
    page.get_by_role("button", name="newest").click()
    comes(node, "90 %")
    page.set_viewport_size(SMALL)
    assert page.evaluate(WIDTH) <= SMALL["width"]


@contextmanager
def held(campaign: Path) -> Iterator[None]:
    """Stops the campaign's process once it has begun, so that it cannot end before the page is ready."""
    while not (campaign / "campaign.json").exists():
        time.sleep(0.01)
    runner = int(json.loads((campaign / "page.json").read_text())["pid"])
    os.kill(runner, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(runner, signal.SIGCONT)


def test_a_campaign_from_its_start_to_the_replay_of_a_run(
    vnet: CommandLine, address: str, chromium: Callable[..., Page]
) -> None:
    (vnet.cwd / "trial.yaml").write_text(CAMPAIGN)
    page = chromium()
    page.goto(address)
    page.get_by_label("campaign of").fill("none.yaml")
    page.get_by_label("kernel").select_option("fake")
    page.get_by_role("button", name="start").click()
    comes(page.locator("#begun"), "none.yaml")
    page.get_by_label("campaign of").fill("trial.yaml")
    page.get_by_role("button", name="start").click()
    with held(vnet.cwd / "results" / "trial"):
        page.get_by_role("button", name="stop").click()
        comes(page.locator("#act"), "Stopping")
    page.get_by_role("button", name=re.compile("^(start|resume)$")).click()  # "start" if no cell has begun
    comes(page.locator("#state"), "3 of 3 complete")
    comes(page.locator("#matrix"), "lost 0")
    comes(page.locator("#about"), "report")
    picture(page, "campaign")
    page.locator("#matrix").get_by_role("link", name="report").first.click()
    comes(page.locator("h1").first, "trial")
    page.go_back()
    with page.expect_navigation():
        page.locator("#matrix").get_by_role("link", name="complete").first.click()
    comes(page.locator("#state"), "replay of a run: complete")
    comes(page.locator("#moment"), "11.0 s of")
    page.get_by_label("Speed").select_option("16")
    page.get_by_role("button", name="play").click()
    comes(page.locator("#moment"), re.compile(r"(1\d\.0) s of \1 s"))
    picture(page, "replay")
    page.get_by_label("Moment").fill("0")
    comes(page.locator("#moment"), "1.0 s of")
    expect(page.get_by_role("button", name="shell")).to_have_count(0)
    page.set_viewport_size(SMALL)
    assert page.evaluate(WIDTH) <= SMALL["width"]


NAMED = "at => at.getAttribute('aria-label') || at.id || at.textContent"
THERE = f"""name => [...document.querySelectorAll("a, button, summary, [tabindex]")]
  .some(at => at.checkVisibility() && ({NAMED})(at) === name)"""


def keys_to(page: Page, name: str) -> None:
    """Moves the focus by Tab to the element of this name, as a user without a mouse does."""
    page.wait_for_function(THERE, arg=name)
    for _ in range(200):  # more than once around the page
        page.keyboard.press("Tab")
        if page.evaluate(f"({NAMED})(document.activeElement)") == name:
            return
    raise AssertionError(f"no Tab leads to {name}")


def press(page: Page, name: str) -> None:
    keys_to(page, name)
    page.keyboard.press("Enter")


def change(page: Page, name: str, *effects: str | re.Pattern[str]) -> None:
    """Presses a button of the panel by keys, and waits for the confirmation and the effects."""
    press(page, name)  # the status first shows "…"
    comes(page.locator("#panel [role=status]"), "Done, read back")
    for effect in effects:
        comes(page.locator("#panel"), effect)


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, part, n) => {
    const c = rgba(colour)[n] / 255;
    return sum + part * (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  }, 0);
  const under = (at) => {
    const body = at.closest(".box")?.querySelector(".body");
    if (body && getComputedStyle(body).fill !== "none") return getComputedStyle(body).fill;
    for (; at; at = at.parentElement) if (rgba(getComputedStyle(at).backgroundColor)[3] === 255) return getComputedStyle(at).backgroundColor;
    return "white";
  };
  const weak = [];
  for (const at of document.querySelectorAll("body *:not(.xterm *)")) {
    const text = [...at.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join("");
    if (!text || !at.checkVisibility?.() || at.closest("title")) continue;
    const style = getComputedStyle(at), pair = [light(at instanceof SVGElement ? style.fill : style.color), light(under(at))].sort((x, y) => x - y);
    if ((pair[1] + 0.05) / (pair[0] + 0.05) < 4.5) weak.push(`${text}: ${((pair[1] + 0.05) / (pair[0] + 0.05)).toFixed(1)}`);
  }
  return weak;
}"""  # noqa: E501


def weak(page: Page) -> Any:
    """Returns the texts with too little contrast, once no animation of colours runs."""
    page.wait_for_function("() => document.getAnimations().length === 0")
    return page.evaluate(CONTRAST)


def test_everything_works_by_keys_and_at_four_times_the_size(
    vnet: CommandLine, address: str, chromium: Callable[..., Page]
) -> None:
    (vnet.cwd / "keys.yaml").write_text(KEYS)
    vnet("up", "keys.yaml", "--kernel", "fake")
    page = chromium(viewport=SMALL, device_scale_factor=4, color_scheme="dark")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(address)
    press(page, "keys")
    expect(page.locator(".edge[role=button]")).to_have_count(2)

    # A link: changed, with a class of its queue; cut and mended; the timeline copied.
    press(page, "link wan")
    page.get_by_label("loss", exact=True).fill("2 %")
    page.keyboard.press("Enter")
    comes(page.locator("#panel"), "loss 2 %")
    press(page, "corruption, correlations, distribution, queue")
    page.get_by_label("class of its queue").select_option("voice")
    page.get_by_label("guaranteed").fill("9 Mbit/s")
    press(page, "apply")
    comes(page.locator("#panel [role=status] .bad"), "9 Mbit/s")  # the link has less
    expect(page.get_by_label("guaranteed")).to_have_value("9 Mbit/s")  # a refused value stays in the form
    page.get_by_label("guaranteed").fill("3 Mbit/s")
    change(page, "apply", re.compile(r"queue: \{htb: \{voice: \{rate: 3 Mbit/s"))
    change(page, "cut", "This link is down.", "link-down: wan}")
    change(page, "mend", "link-up: wan}")
    press(page, "copy")
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('link-up: wan}')")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("timeline:\n  - {at: hold + ") and "link-down: wan}" in copied

    # The map: nearer, farther, whole; the group unfolded, and arrows from node to node.
    scene = page.locator("#map svg > g")
    for button in ("Zoom in", "Zoom out"):
        before = scene.get_attribute("transform") or ""
        press(page, button)
        expect(scene).not_to_have_attribute("transform", before)
    press(page, "fit")
    press(page, "unfold")
    expect(page.locator(".box.node")).to_have_count(4)
    keys_to(page, "node meter1")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    comes(page.locator("#panel h2").first, "meter2")

    # A node: its settings, stopped and started; a shell, and out of it again.
    press(page, "MTU, CPU limit, host name")
    page.get_by_label("MTU", exact=True).fill("1280")
    change(page, "set", "1280")
    for button in ("stop", "start"):
        change(page, button)
        comes(page.locator("#timeline"), f"{button} meter2")
    press(page, "shell")
    expect(page.locator("#terminal .xterm-helper-textarea")).to_be_focused()
    page.keyboard.press("Shift+Escape")
    page.keyboard.press("Enter")
    expect(page.locator("#terminal")).to_be_hidden()

    assert page.evaluate(WIDTH) <= SMALL["width"]
    expect(page.locator("body")).to_have_css("background-color", "rgb(16, 19, 22)")
    assert weak(page) == []
    page.emulate_media(color_scheme="light")
    assert weak(page) == []
