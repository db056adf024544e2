"""Tests FTP servers and clients in the plan: the transfers, the programs' settings, and mistakes."""

from __future__ import annotations

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

LOAD = "ftp: {to: files, download: {size: 1 MB, rate: 2 /s}, upload: {size: 10 kB, rate: 1 /s}}"
FILE = f"""\
name: moving
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  files:
    segment: lan
    software:
      server: {{ftp: {{listen: 21}}}}
  desk:
    segment: lan
    software:
      load:
        {LOAD}
run: {{hold: 10 s}}
"""
PLACE = "nodes.desk.software.load.ftp"


def planned(text: str = FILE) -> Plan:
    return make_plan(parse("moving.yaml", text.encode()))


def test_a_download_is_a_request_and_an_upload_a_push() -> None:
    plan = planned()
    down, up = plan.flows
    assert (down.pattern, down.reply and down.reply.bytes) == ("request", 1_000_000)
    assert (up.pattern, up.payload.bytes, up.reply) == ("push", 10_000, None)


def test_the_server_is_told_what_it_will_be_asked_for() -> None:
    (files, desk) = planned().nodes
    (server,), (client,) = files.software, desk.software
    assert [flow["number"] for flow in server.spec["accounts"]["receives"]] == [0, 1]
    assert [flow["to"] for flow in client.spec["accounts"]["sends"]] == [
        [{"endpoint": "files", "address": "10.1.0.1"}]
    ] * 2


@pytest.mark.parametrize(
    ("was", "now", "place", "rule"),
    [
        (LOAD, "ftp: {to: files}", PLACE, "says to whom, but not what it sends"),
        ("to: files", "to: desk", f"{PLACE}.to", "a flow to itself"),
        ("size: 10 kB", "size: 0 B", f"{PLACE}.upload.size", "a file has from 1 B"),
        ("listen: 21", "listen: 21, login: each", "nodes.files.software.server.ftp.login", "does not belong"),
        (LOAD, f"{LOAD[:-1]}, timeout: 0 s}}", f"{PLACE}.timeout", "is not above zero"),
    ],
)
def test_mistakes(was: str, now: str, place: str, rule: str) -> None:
    refused(FILE, was, now, place, rule)
