"""Tests tcpdump's command line and the reading of its statistics."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from capture.tcpdump import Statistics, argv, listening, statistics


@dataclass(frozen=True)
class Point:
    device: str = "br-lan"
    snaplen: int = 96
    filter: str = "tcp port 1883"


def test_the_command_names_device_snaplen_precision_and_filter() -> None:
    command = argv(Point())
    assert command[:3] == ("tcpdump", "-i", "br-lan") and command[-1] == "tcp port 1883"
    assert "--time-stamp-precision=nano" in command and command[command.index("-s") + 1] == "96"
    assert command[command.index("-w") + 1] == "-" and "-U" in command
    assert argv(Point(snaplen=0, filter=""))[-1] == "-"


def test_statistics_are_read_from_the_last_words() -> None:
    said = "tcpdump: listening on v0, link-type EN10MB\n12 packets captured\n15 packets received by filter\n"
    assert listening(said.splitlines()[0])
    assert statistics(said + "3 packets dropped by kernel\n") == Statistics(12, 15, 3, 0)
    one = "1 packet captured\n1 packet received by filter\n0 packets dropped by kernel\n"
    assert statistics(one + "2 packets dropped by interface\n") == Statistics(1, 1, 0, 2)


def test_a_killed_tcpdump_has_no_statistics() -> None:
    with pytest.raises(ValueError, match="listening on v0"):
        statistics("tcpdump: listening on v0\n")
