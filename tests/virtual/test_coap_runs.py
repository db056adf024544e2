"""Tests CoAP: its plan and mistakes, a run in virtual time whose captures tshark reads in the same way, and
datagrams of bytes that were changed at random.
"""

from __future__ import annotations

import random
import re
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from virtual_place import PROJECT, Place, Ran

from capture.pcap import reduce_pcap
from contract.plan import Payload, Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.coap import KIND
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

ASK = "coap: {to: server, request: {size: 100 B, reply: 4 kB, rate: 10 /s, rate_of: client}}"
FILE = f"""\
name: coap
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}}}
nodes:
  server: {{segment: far, software: {{in: {{coap: {{listen: 5683, notify: {{size: 100 B, rate: 1 /s}}}}}}}}}}
  mute: {{segment: far, software: {{in: {{coap: {{listen: 5683}}}}}}}}
groups:
  client: {{count: 2, segment: near, software: {{ask: {{{ASK}}}}}}}
  watcher: {{count: 2, segment: near, software: {{look: {{coap: {{to: server, observe: true}}}}}}}}
links: {{way: {{between: [near, far], both: {{delay: 10 ms}}}}}}
run: {{hold: 10 s}}
"""
# Long notifications over a link that loses a fifth of all packets: their rest is fetched in blocks.
LOSSY = """\
name: lossy
segments: {near: {subnet: 10.1.0.0/24}, far: {subnet: 10.1.0.0/24}}
nodes:
  server:
    segment: far
    software:
      in: {coap: {listen: 5683, block: 64 B, ack_timeout: 100 ms, notify: {size: 300 B, rate: 1 /s}}}
  ask:
    segment: near
    software:
      ask:
        coap:
          to: server
          block: 256 B
          ack_timeout: 100 ms
          max_retransmit: 8
          path: a/b
          push: {size: 1 kB, rate: 2 /s}
  look:
    segment: near
    software: {look: {coap: {to: server, observe: true, block: 32 B, ack_timeout: 100 ms, max_retransmit: 8}}}
links: {way: {between: [near, far], both: {delay: 5 ms, loss: 20 %}}}
captures: {all: {at: node server}}
run: {hold: 20 s, drain: 60 s}
"""
KINDS = ("CON", "NON", "ACK", "RST")
METHODS = ("GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH")
Seen = tuple[str, int, int]  # type and code, Message ID, bytes before the payload


def planned(old: str = ASK, new: str = ASK) -> Plan:
    return make_plan(parse("coap.yaml", FILE.replace(old, new).encode()))


def test_requests_pushes_and_notifications_are_flows_of_their_senders() -> None:
    plan = planned()
    of = {flow.name: flow for flow in plan.flows}
    assert of.keys() == {"client1.ask", "client2.ask", "server.in"}
    ask, notify = of["client1.ask"], of["server.in"]
    assert (ask.payload, ask.reply) == (Payload("bytes", 100), Payload("bytes", 4000))
    (to,), (observers,) = ask.deliveries, notify.deliveries
    assert plan.receivers[to.receivers] == ("server",)
    assert plan.receivers[observers.receivers] == ("watcher1", "watcher2")
    assert to.guarantee.single and not to.guarantee.lossless and to.guarantee.name == "CoAP confirmable"
    server = next(node for node in plan.nodes if node.name == "server").software[0]
    assert (server.spec["observers"], server.ports) == (2, {"coap": (5683,)})
    assert KIND.words(server, [notify]) == "CoAP, listens on port 5683; notifies 2 of 100 B, 1 /s"


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        (ASK[:-1] + ", block: 100 B}", "block", "is not 16 B"),
        (ASK[:-1] + ", notify: {size: 50 B, rate: 1 /s}}", "notify", "belongs to the side that listens"),
        (ASK.replace("10 /s", "67 /s"), "request.rate[0].rate", "more than 265 CoAP messages a second"),
        ("coap: {to: mute, observe: true}", "observe", "has nothing to observe"),
        ("coap: {to: server, confirmable: false, push: {size: 2 kB, rate: 1 /s}}", "push", "no blocks"),
        ("coap: {to: server}", "", "not what it sends"),
        ("coap: {listen: 5683, nstart: 2}", "nstart", "does not belong to the side that listens"),
    ],
)
def test_mistakes_are_named(new: str, place: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        planned(new=new)
    lines = [str(one) for one in caught.value.problems]
    start = f"groups.client.software.ask.coap{'.' if place else ''}{place}: "
    assert any(start in line and rule in line for line in lines), lines


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Runs the shipped example, smaller."""
    place = Place(tmp_path_factory.mktemp("coap"))
    file = str(PROJECT / "topologies" / "coap.yaml")
    return place.run(
        "-p", "clients=2", "-p", "hold=12s", "-p", "ack_timeout=300ms", "-p", "loss=10%", file=file
    )


def messages(run: Ran) -> dict[str, pl.DataFrame]:
    table = pl.read_parquet(run.run_dir / "messages.parquet")
    return {str(name[0]): group for name, group in table.group_by("class")}


def test_every_message_is_accounted_for(ran: Ran) -> None:
    of = messages(ran)
    assert all(of[name].height > 20 for name in ("confirmable", "non-confirmable", "notification"))
    careful, quick = of["confirmable"], of["non-confirmable"]
    assert set(careful["outcome"]) == {"settled"} and careful["replied_ns"].null_count() == 0
    assert careful["attempts"].max() > 1, "a lossy link, so something was sent again"  # type: ignore[operator]
    assert set(quick["attempts"]) == {1} and set(quick["outcome"]) <= {"settled", "unsettled"}
    assert 0 < of["notification"]["received_ns"].null_count() < 23, "NON is not sent again"
    assert ran.manifest["foreign"] == 0


def test_notifications_and_pushes_in_blocks_arrive_in_spite_of_losses(place: Place) -> None:
    (place.cwd / "lossy.yaml").write_text(LOSSY)
    run = place.run("--lab", "lossy", file="lossy.yaml")
    of = messages(run)
    push, notified = of["ask.ask"], of["server.in"]
    assert push.height > 35 and push["received_ns"].null_count() == 0 and push["attempts"].max() > 3  # type: ignore[operator]
    assert push["copies"].max() == notified["copies"].max() == 1, "what came twice is passed on once"
    assert notified["received_ns"].null_count() < notified.height / 2, "a newer state may replace an older"
    packets = pl.read_parquet(run.run_dir / "packets" / "all.parquet")
    kinds = Counter(packets["app_types"].drop_nulls().explode().to_list())
    assert kinds["ACK 2.31"] > 3 * 35 and kinds["CON POST"] > 4 * 35 and kinds["CON GET"] > 40
    assert seen(run.run_dir / "pcap" / "all.pcap") == table(packets)


@pytest.mark.parametrize("point", ["server", "sensor"])
def test_a_run_is_what_tshark_reads(ran: Ran, point: str) -> None:
    packets = pl.read_parquet(ran.run_dir / "packets" / f"{point}.parquet")
    theirs = seen(ran.run_dir / "pcap" / f"{point}.pcap")
    assert theirs == table(packets) and len([one for one in theirs if one]) >= 50


def test_changed_datagrams_are_what_tshark_reads(ran: Ran, tmp_path: Path) -> None:
    """Shows that types, codes and numbers of changed datagrams are tshark's. tshark reads any version and
    token length; what the standard says to ignore has no `app` here.
    """
    pcap = changed(ran.run_dir / "pcap" / "server.pcap", tmp_path / "changed.pcap", random.Random(4))
    reduce_pcap(pcap, tmp_path / "a.parquet")
    ours = table(pl.read_parquet(tmp_path / "a.parquet"))
    compared = 0
    for one, other, payload in zip(ours, seen(pcap), (frame[42:] for frame in frames(pcap)), strict=True):
        empty = len(payload) > 1 and payload[0] >> 4 == 0b0101 and payload[1] == 0
        if len(payload) < 4 or payload[0] >> 6 != 1 or payload[0] & 15 > 8 or empty:
            assert one is None, payload.hex()
        elif other is not None:
            assert one is not None and one[:2] == other[:2], (payload.hex(), one, other)
            compared += 1
    assert compared > 400


def table(packets: pl.DataFrame) -> list[Seen | None]:
    """Returns the CoAP message of each packet of the table; None for other packets."""
    rows = packets.select("app", "app_types", "app_ids", "app_bytes").iter_rows()
    return [(types[0], ids[0], size) if app == "coap" else None for app, types, ids, size in rows]


def seen(pcap: Path) -> list[Seen | None]:
    """Returns the CoAP message of each packet as tshark reads it; None for other packets."""
    argv = ["tshark", "-n", "-r", str(pcap), "-T", "pdml"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [_message(packet) for packet in ElementTree.fromstring(said).iter("packet")]


def _message(packet: ElementTree.Element) -> Seen | None:
    coap = packet.find("proto[@name='coap']")
    fields = {} if coap is None else {str(one.get("name")): one for one in coap.iter("field")}
    if coap is None or packet.find("proto[@name='icmp']") is not None or "coap.mid" not in fields:
        return None
    kind, code, number = (int(str(fields[f"coap.{n}"].get("show")), 0) for n in ("type", "code", "mid"))
    named = METHODS[code - 1] if 1 <= code <= 7 else f"{code >> 5}.{code & 31:02}"
    marker = fields.get("coap.opt.end_marker")
    udp = packet.find("proto[@name='udp']")
    assert udp is not None
    begins = int(str(coap.get("pos")))
    ends = begins + int(str(udp.find("field[@name='udp.length']").get("show"))) - 8  # type: ignore[union-attr]
    header = (ends if marker is None else int(str(marker.get("pos"))) + 1) - begins
    return f"{KINDS[kind]} {named}" if code else KINDS[kind], number, header


def frames(pcap: Path) -> Iterator[bytes]:
    """Yields the frames of a capture."""
    data, at = pcap.read_bytes(), 24
    order = "<" if data[:2] in (b"\xd4\xc3", b"\x4d\x3c") else ">"
    while at < len(data):
        size = struct.unpack(f"{order}I", data[at + 8 : at + 12])[0]
        yield data[at + 16 : at + 16 + size]
        at += 16 + size


def changed(source: Path, target: Path, rng: random.Random) -> Path:
    """Writes 600 datagrams of a capture with some bytes changed or cut off."""
    found = [frame for frame in frames(source) if re.match(rb".{23}\x11.{10}(..)?\x16\x33", frame, re.DOTALL)]
    with target.open("wb") as sink:
        sink.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        for second in range(600):
            frame = bytearray(rng.choice(found))
            for _ in range(rng.randrange(4)):
                frame[rng.randrange(42, min(len(frame), 72))] = rng.choice(
                    (13, 14, 15, 255, rng.randrange(256))
                )
            del frame[rng.choice((len(frame), rng.randrange(43, len(frame)))) :]
            struct.pack_into("!H", frame, 16, len(frame) - 14)
            struct.pack_into("!HH", frame, 38, len(frame) - 34, 0)
            sink.write(struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame)
    return target
