"""Provides Ethernet frames between nodes, tshark and libiec61850 for tests of the agent's roles."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import Launcher

PEER = Path(__file__).with_name("iec61850_peer.py")


def armed(launcher: Launcher, *items: dict[str, Any]) -> None:
    launcher.do("messages", path=str(launcher.directory / "messages.csv"))
    launcher.do("workload", items=list(items))


def clock_ns(launcher: Launcher) -> int:
    """Returns the lab's current time in ns."""
    return int(launcher.do("hello")["clock_offset_ns"]) + time.monotonic_ns()


def peer(launcher: Launcher, node: str, *arguments: str) -> subprocess.Popen[str]:
    pytest.importorskip("pyiec61850", reason="its wheel is for x86-64 only")
    argv = ["ip", "netns", "exec", launcher.netns(node), sys.executable, str(PEER), *arguments]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def captured(launcher: Launcher, node: str, path: Path) -> subprocess.Popen[str]:
    """Starts tcpdump on eth0 of a node and returns its process once it captures."""
    argv = [
        "ip",
        "netns",
        "exec",
        launcher.netns(node),
        "tcpdump",
        "-i",
        "eth0",
        "--immediate-mode",
        "-U",
        "-w",
        path,
    ]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "listening on" in process.stderr.readline()
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=20)


def shown(pcap: Path, protocol: str, fields: list[str], *options: str) -> list[list[str]]:
    """Returns the values of the fields that tshark prints, one row for each frame; asserts that no frame is
    malformed.
    """
    asked = [part for field in ["_ws.malformed", *fields] for part in ("-e", field)]
    argv = [
        "tshark",
        "-n",
        "-r",
        str(pcap),
        *options,
        "-Y",
        protocol,
        "-T",
        "fields",
        "-E",
        "separator=;",
        *asked,
    ]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    rows = [line.split(";") for line in said.splitlines()]
    assert {row[0] for row in rows} == {""}
    return [row[1:] for row in rows]
