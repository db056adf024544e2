"""Tests the live page as a user: a real lab in User-Mode Linux, Debian's chromium, every button.

With VNET_PICTURES=DIR, the pictures of the documentation are written there (`make pictures`).
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import CHROMIUM, comes, picture
from command_line import PROJECT, CommandLine
from playwright.sync_api import Locator, Page, expect

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.lab.state import processes

LAB = """name: shown
segments:
  site: {subnet: 10.20.0.0/24}
  plant: {subnet: 10.20.0.0/24}
nodes:
  server: {segment: plant, software: {mosquitto: {broker: mosquitto}}}
groups:
  meter:
    count: 3
    segment: site
    software: {load: {command: "ping -q -n -i 0.04 -s 900 {{ addresses.server }}", start: setup}}
links:
  wan: {between: [site, plant], both: {delay: 20 ms, rate: 2 Mbit/s}}
run: {hold: 10 s, drain: 1 s}
"""

pytestmark = [
    pytest.mark.uml,
    pytest.mark.skipif(
        not find_binaries(), reason="no User-Mode Linux kernel (apt-get install user-mode-linux)"
    ),
    pytest.mark.skipif(not (PROJECT / "target/release/vnet-agent").exists(), reason="the agent is not built"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs chromium (apt-get install chromium)"),
]


def press(page: Page, button: str, said: str = "Done, read back") -> None:
    """Presses a button of the panel, and waits for the page's answer `said`."""
    page.locator("#panel").get_by_role("button", name=button, exact=True).first.click()
    comes(page.locator("#panel [role=status]").first, said)


def box(page: Page, name: str) -> Locator:
    return page.locator(f"[role=button][aria-label='{name}']")


def typed(page: Page, text: str) -> None:
    page.locator("#terminal .xterm-helper-textarea").focus()
    page.keyboard.type(text + "\n")


def test_a_lab_from_its_start_to_its_death(
    vnet: CommandLine, address: str, chromium: Callable[..., Page]
) -> None:
    (vnet.cwd / "lab.yaml").write_text(LAB)
    vnet("up", "lab.yaml", "--kernel", "uml")
    page = chromium(accept_downloads=True)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    page.goto(address)
    page.get_by_role("link", name="shown").click()
    comes(page.locator("#map"), "meter \u00d7 3")
    panel = page.locator("#panel")

    # A link: its impairment is read back and changed, and a program measures the change.
    box(page, "link wan").press("Enter")
    comes(panel, "20 ms, 2 Mbit/s")
    box(page, "group meter \u00d7 3").press("Enter")
    panel.get_by_role("button", name="meter1", exact=True).click()
    panel.get_by_role("button", name="shell").click()
    typed(page, "ping -n -c 2 server | sed -n 's/^rtt[^=]*= \\([0-9]*\\).*/felt \\1 ms/p'")
    comes(page.locator("#terminal"), re.compile(r"felt ([4-9]\d|\d{3,}) ms"))
    box(page, "link wan").press("Enter")
    page.get_by_label("delay", exact=True).fill("50 ms")
    press(page, "apply")
    comes(panel, re.compile("50 ms, 2 Mbit/s.*50 ms, 2 Mbit/s", re.DOTALL))
    comes(panel, "impair: wan, both: {delay: 50 ms")
    typed(page, "ping -n -c 2 server | sed -n 's/^rtt[^=]*= \\([0-9]*\\).*/now \\1 ms/p'")
    comes(page.locator("#terminal"), re.compile(r"now \d{3,} ms"))
    comes(page.locator("#map"), re.compile(r"kbit/s · [1-9]"))  # share of the link's rate
    picture(page, "shell")
    typed(page, "exit")
    comes(page.locator("#terminal"), "ended with status 0")
    page.locator("#terminal").get_by_role("button", name="close").click()
    picture(page, "lab")
    press(page, "cut")
    comes(panel, "This link is down.")
    press(page, "mend")
    press(page, "capture on")
    with page.expect_download() as kept:
        panel.get_by_role("link", name="download").first.click()
    assert kept.value.suggested_filename == "live-link-wan.pcap"
    assert kept.value.path().read_bytes()[:4] == b"\x4d\x3c\xb2\xa1", "nanosecond pcap"
    press(page, "capture off")
    press(page, "plain wire")
    comes(panel, "plain wire")

    # A node: its programs and their log, stopped, started and restarted; a further node is added and removed.
    box(page, "node server").press("Enter")
    panel.get_by_role("button", name="log", exact=True).click()
    comes(panel, re.compile("mosquitto version .* running", re.DOTALL))
    panel.get_by_role("button", name="close", exact=True).click()
    for button in ("stop", "start", "restart"):  # acts on the node
        press(page, button)
    for button in ("stop", "start", "restart"):  # acts on the node's program
        panel.locator("td").get_by_role("button", name=button, exact=True).click()
        comes(panel.get_by_role("status").first, "Done, read back")
    press(page, "add")
    box(page, "node server2").press("Enter")
    press(page, "remove", "Remove server2 from the lab?")
    press(page, "yes")
    expect(box(page, "node server2")).to_have_count(0)
    events = page.locator("#timeline")
    for action in (
        "impair wan",
        "link-down wan",
        "link-up wan",
        "capture-on link wan",
        "add server2",
        "remove server2",
    ):
        comes(events, re.compile(rf"live: {action} \(by \S+ on the live page\)"))

    # The lab process is killed.
    (own,) = [p for p in processes(vnet.state / "shown") if p.role == "lab"]
    os.kill(own.pid, signal.SIGKILL)
    comes(page.locator("#trouble"), re.compile("the lab process is gone|died|the lab has ended"))
    assert [t for t in troubles if "WebSocket" not in t] == []
