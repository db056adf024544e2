"""Tests that each construct that an importer names in its code is in the tool's section of exchange.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from orchestrator.exchange import compose, containerlab, core, gns3, kathara, mahimahi, netlab
from orchestrator.exchange.mininet_recorder import interfaces

PAGE = Path(__file__).parents[2] / "docs" / "exchange.md"
CONSTRUCTS: dict[str, Iterable[str]] = {
    "Startup scripts": ("ip link", "ip addr", "ip route", "netem", "tbf"),
    "containerlab's topologies": {*containerlab.LINUX, *containerlab.BRIDGES, *containerlab.READ},
    "Mininet's scripts": interfaces.IMPAIRMENTS,
    "CORE's scenarios": {
        *core.SWITCHES, *core.RADIO, *core.OUTSIDE, *(core.OPTIONS.keys() - {"per"}), *core.UNKNOWN,
        *(core.FORWARDING & {"IPForward"}),
    },
    "GNS3's projects": {*gns3.PCS, *gns3.CONTAINERS, *gns3.SWITCHES, *gns3.OUTSIDE, *gns3.FILTERS},
    "netlab's topologies": {
        *netlab.HOSTS, *netlab.ROUTERS, *netlab.BRIDGES, *netlab.TC, *netlab.MODULES,
        *netlab.READ, *netlab.NODE, *netlab.LINK, *netlab.SILENT,
    },
    "Docker Compose's projects": compose.READ,
    "Mahimahi's shells": mahimahi.SHELLS,
    "Kathará's labs": kathara.READ,
}  # fmt: skip


@pytest.mark.parametrize("section", CONSTRUCTS)
def test_each_construct_of_the_code_has_words(section: str) -> None:
    (text,) = (part for part in PAGE.read_text().split("\n## ") if part.startswith(f"{section}\n"))
    missing = [
        word
        for word in sorted(CONSTRUCTS[section])
        if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
    ]
    assert not missing, missing


def test_each_importer_of_the_command_line_has_a_section() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)
    tools = ("containerlab", "Mininet", "Kathará", "CORE", "GNS3", "netlab", "Docker Compose", "Mahimahi")
    assert all(any(one.startswith(tool) for one in headings) for tool in tools)
