"""Tests captures in virtual time against tcpdump, which captures the other end of the same wire in the same
run: frames and times are equal.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_place import Place, Ran

TCPDUMP = (
    "timeout -s INT 16 tcpdump -i eth0 -n -B 4096 --time-stamp-precision=nano -s {snaplen} -w - {filter}"
)
FILTERS = {"all": "", "some": "tcp port 1883 and greater 100", "lossy": "icmp or arp"}
FILE = """\
name: two-captures
seed: 1
segments:
  left: {subnet: 10.50.0.0/24}
  right: {subnet: 10.50.0.0/24}
nodes:
  broker:
    segment: right
    software:
      mosquitto: {broker: mosquitto}
      tcpdump: {command: TCPDUMP, at_end: exited}
  ear: {segment: right, software: {ear: {mqtt: {broker: broker, subscribe: [{topic: "t/#", qos: 1}]}}}}
  quiet: {segment: left, software: {ping: {command: "ping -c 60 -i 0.25 10.50.0.1", at_end: exited}}}
groups:
  mouth:
    count: 2
    segment: left
    software: {mouth: {mqtt: {broker: broker, publish: {topic: "t/{index}", qos: 1, rate: 200 /s}}}}
links:
  wan: {between: [left, right], both: {delay: 10 ms, jitter: 2 ms, loss: 2 %}}
captures:
  own: {at: node broker, snaplen: SNAPLEN, filter: "FILTER"}
run: {connect_interval: 100 ms, hold: 10 s, drain: 5 s}
"""


def records(text: bytes) -> list[tuple[int, int, bytes]]:
    """Returns the complete records of a pcap file: time (ns), size on the wire, captured bytes. The last one
    may be cut, where a program's log ends.
    """
    found, at = [], 24
    while at + 16 <= len(text):
        s, ns, kept, wire = struct.unpack_from("=IIII", text, at)
        if at + 16 + kept <= len(text):
            found.append((s * 10**9 + ns, wire, text[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def ran(place: Place, name: str, snaplen: int) -> Ran:
    wanted = FILTERS[name]
    quoted = f"'{wanted}'" if wanted else ""
    command = TCPDUMP.format(snaplen=snaplen, filter=quoted) + " 2>/dev/null | base64 -w 76"
    text = FILE.replace("TCPDUMP", json.dumps(f'sh -c "{command}"'))
    text = text.replace("SNAPLEN", str(snaplen)).replace("FILTER", wanted)
    (place.cwd / "two.yaml").write_text(text)
    return place.run(file="two.yaml")


@pytest.mark.parametrize(("name", "snaplen"), [("all", 96), ("some", 1600), ("lossy", 70)])
def test_frames_and_times_are_tcpdumps(places: Callable[[str], Place], name: str, snaplen: int) -> None:
    done = ran(places(f"own-{name}"), name, snaplen)
    own = records((done.run_dir / "pcap/own.pcap").read_bytes())
    log = Path(done.run_dir / "raw/logs/broker.tcpdump.log").read_text()
    theirs = records(base64.b64decode("".join(log.split())))
    # the node's program starts and ends at other times than the capture
    first, last = max(own[0][0], theirs[0][0]), min(own[-1][0], theirs[-1][0])
    both = [[one for one in found if first <= one[0] <= last] for found in (own, theirs)]
    assert both[0] == both[1]
    assert len(both[0]) > 20
    counts = done.manifest["captures"]["own"]
    assert counts == {
        "packets": len(own), "received": len(own), "dropped_kernel": 0, "dropped_interface": 0,
    }  # fmt: skip
    assert not done.manifest["warnings"]
