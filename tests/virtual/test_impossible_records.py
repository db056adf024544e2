"""Tests users' programs whose records are invalid, each in a different way, and a program that writes its
records late.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from virtual_place import Place, Ran

from capture.reduce import reduce_run

TAKE = """\
import os, socket, json, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 9000))
told = json.load(open(os.environ["VNET_FLOWS"])); me = told["endpoint"]
records = open(os.environ["VNET_RECORDS"], "a", buffering=1)
print("listening", flush=True)
while True:
    flow, seq, due, mode = s.recv(65536).decode().split()[:4]
    at = time.monotonic_ns() + told["clock_offset_ns"]
    if mode == "arrives-early": at = int(due) + 1
    if mode == "arrives-later": at += 3600 * 10**9
    records.write(f"R,{flow},{seq},{me},0,{at},0\\n")
    if mode == "twice": records.write(f"R,{flow},{seq},{me},0,{at},0\\n")
    if mode == "phantom": records.write(f"R,{flow},{int(seq) + 100000},{me},0,{at},0\\n")
"""
SEND = """\
import json, os, socket, sys, time
mode = sys.argv[1]
def told(): return json.load(open(os.environ["VNET_FLOWS"]))
while (account := told())["t0_ns"] is None: time.sleep(0.01)
now = lambda: time.monotonic_ns() + account["clock_offset_ns"]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
records = open(os.environ["VNET_RECORDS"], "a", buffering=1)
flow = account["sends"][0]; n = flow["number"]; to = (flow["to"][0]["address"], 9000)
for seq, at in enumerate(flow["times_ns"]):
    due = account["t0_ns"] + at
    late = 80_000_000 if mode in ("late", "omission", "arrives-early") else 0
    time.sleep(max(0, due + late - now()) / 1e9)
    sent, attempts, outcome, size = max(due, now()), 1, "sent", 100
    s.sendto(f"{n} {seq} {due} {mode} ".encode().ljust(100, b"."), to)
    if mode == "silent" and seq % 2: continue
    if mode == "omission": due = sent
    if mode == "unsent": sent, attempts, outcome = 0, 0, "unsent"
    if mode == "no-time": sent = 0
    if mode == "sent-later": sent += 3600 * 10**9
    if mode == "longer": size = 100000
    line = f"{size},{due},{sent},0,{attempts},{outcome}\\n"
    records.write(f"S,{n},{seq},{line}")
    if mode == "more": records.write(f"S,{n},{seq + 100000},{line}")
time.sleep(1e6)
"""
# The finding for each mode, from the agent of the node ("records") or from the records of both ends together
# ("trust-").
SAID = {
    "honest": (), "late": (),
    "omission": ("records", "scheduled_ns is not when the message was due"),
    "arrives-early": ("trust-records", "were received before they were sent"),
    "arrives-later": ("records", "received_ns is after now"),
    "sent-later": ("records", "sent_ns is after now"),
    "unsent": ("trust-records", "were received by all, although their sender records them as never sent"),
    "no-time": ("records", "is sent and has no sent_ns"),
    "more": ("records", "is not due yet, if ever"),
    "phantom": ("trust-records", "were received that no sender was due to send"),
    "twice": ("trust-records", "were received more often than they were sent"),
    "longer": ("trust-records", "have another size than the plan's"),
    "silent": ("trust-unrecorded", "10 of 20 messages that were due have no S record"),
}  # fmt: skip


def file(name: str, content: str) -> str:
    return f"{name}: |\n" + "".join(f"            {line}\n" for line in content.splitlines())


SINK = """\
name: liars
segments: {lan: {subnet: 10.92.0.0/24}}
nodes:
  sink:
    segment: lan
    software:
      take:
        command: python3 -S take.py
        receives: true
        ready: {log: listening, within: 20 s}
        files:
          """
LIAR = """\
  MODE:
    segment: lan
    software:
      send:
        command: python3 -S send.py MODE
        flows: {readings: {to: sink, size: 100 B, rate: 20 /s, rate_of: client, class: MODE}}
        files:
          """
SHORT = "run: {ramp: 0 s, hold: 2 s, drain: 2 s}\n"  # no message is due in the first second


def liars_file() -> str:
    nodes = [LIAR.replace("MODE", mode) + file("send.py", SEND) for mode in SAID]
    return "".join([SINK, file("take.py", TAKE), *nodes, SHORT])


@pytest.fixture(scope="module")
def liars(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    place = Place(tmp_path_factory.mktemp("liars"))
    (place.cwd / "liars.yaml").write_text(liars_file())
    ran = place.run(file="liars.yaml")
    reduce_run(ran.run_dir)
    return ran


def warned(ran: Ran, mode: str) -> list[dict[str, Any]]:
    """Returns the warnings that name the node or the class of a mode."""
    places = (f"nodes.{mode}.send: ", f"({mode}: ", f", {mode}: ", f"{mode}: ")
    return [w for w in ran.manifest["warnings"] if any(place in w["text"] for place in places)]


@pytest.mark.parametrize("mode", SAID)
def test_what_cannot_be_makes_the_run_suspect_and_says_why(liars: Ran, mode: str) -> None:
    messages = pl.read_parquet(liars.run_dir / "messages.parquet").filter(pl.col("class") == mode)
    if mode == "arrives-later":  # the findings about the receiver's own lines
        found = [w for w in liars.manifest["warnings"] if w["text"].startswith("nodes.sink.take: ")]
    else:
        found = warned(liars, mode)
    if not SAID[mode]:
        assert not found and messages.height == messages["received_ns"].count() == 20
        assert (messages["latency_ns"].min() > 79_000_000) == (mode == "late")  # type: ignore[operator]
        return
    code, text = SAID[mode]
    assert any(w["code"] == code and text in w["text"] and w["suspect"] for w in found), found
    assert liars.manifest["suspect"]


SLOW = """\
import os, json, time
while (plan := json.load(open(os.environ["VNET_FLOWS"])))["t0_ns"] is None: time.sleep(0.01)
records = open(os.environ["VNET_RECORDS"], "a", buffering=1)
now = lambda: time.monotonic_ns() + plan["clock_offset_ns"]
for seq, at in enumerate(plan["sends"][0]["times_ns"]):
    due = plan["t0_ns"] + at
    while now() < due: time.sleep((due - now()) / 1e9)
    sent = now(); time.sleep(1.5); back = now()
    records.write(f"R,0,{seq},server,1,{back},0\\n")
    records.write(f"S,0,{seq},100,{due},{sent},{back},1,settled\\n")
time.sleep(1e6)
"""
OWING = """\
name: owing
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server: {segment: lan, software: {take: {command: sleep 1000, receives: true}}}
  load:
    segment: lan
    software:
      ask:
        command: python3 -S slow.py
        flows: {get: {to: server, pattern: request, size: 100 B, reply: 100 B, rate: 1 /s}}
        files:
          """


def test_the_drain_waits_for_records_that_a_program_owes_and_no_longer(place: Place) -> None:
    """Shows that the drain waits until the last record, of a request due before 4 s and settled by 7.5 s, and
    then ends.
    """
    (place.cwd / "owing.yaml").write_text(
        OWING + file("slow.py", SLOW) + "run: {ramp: 0 s, hold: 4 s, drain: 30 s}\n"
    )
    ran = place.run(file="owing.yaml")
    reduce_run(ran.run_dir)
    due = json.loads((ran.run_dir / "plan.json").read_text())["flows"][0]["schedule"]["rates"]
    messages = pl.read_parquet(ran.run_dir / "messages.parquet")
    assert due[0]["per_s"] == 1.0 and messages.height == 3 and set(messages["outcome"]) == {"settled"}
    assert not ran.manifest["suspect"] and ran.manifest["warnings"] == []
    begin, end = ran.manifest["phases"]["drain"]
    last = messages["settled_ns"].max()
    assert begin + 500_000_000 < last < end < last + 2_000_000_000  # type: ignore[operator]
