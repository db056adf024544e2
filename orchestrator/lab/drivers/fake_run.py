"""The invented scenario of the fake driver: message records, counters and captures that hang together."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import queueing
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.driver import Surroundings
from orchestrator.lab.drivers.fake_frames import FakePath, FakeTrials
from orchestrator.lab.expected import corrupted, duplicated, lost
from orchestrator.lab.intervals import normal_quantile
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.probes import directions
from orchestrator.model import Capture, Impairment, Mqtt, Software
from orchestrator.model.codec import build

TRANSIT_NS = MILLISECOND
MOST_MESSAGES = 20_000  # a fake hour at a high rate would not take milliseconds
HEADERS = 14 + 20 + 20


@dataclass(frozen=True, slots=True)
class Sent:
    publisher: str
    seq: int
    topic: str
    qos: int
    bytes: int
    at_ns: int  # offset from t0
    address: str
    broker: str


class FakeRun:
    """Answers what launchers answer about samples, proofs and workloads."""

    def __init__(self, surroundings: Surroundings, qdiscs: Callable[[str], list[dict[str, Any]]]) -> None:
        self._at = surroundings
        self._qdiscs = qdiscs
        self._clients: list[tuple[str, Mqtt]] = []
        self._messages: Path | None = None
        self._sent: list[Sent] = []
        self._t0_ns = 0
        self._samples: dict[str, Any] = {}
        self._captures: list[FakeCapture] = []
        self._impairments = {
            (link, side): d.impairment for link, side, d in directions(surroundings.plan.links)
        }
        self._trials = FakeTrials(_path(self._impairments.values()))
        self._totals = {"scheduled": 0, "sent": 0, "acked": 0, "received": 0}

    def perform(self, op: str, fields: dict[str, Any]) -> Message:
        if op == "messages":
            self._messages = Path(fields["path"])
        elif op == "sample":
            self._samples = fields
        elif op == "workload":
            built = [(i["node"], build(Software, i["software"])) for i in fields["items"]]
            self._clients = [(node, s.mqtt) for node, s in built if s.mqtt]
        elif op == "go":
            self._t0_ns = fields["t0_ns"]
        elif op == "prove":
            return {"probes": [self._probe(p) for p in fields["probes"]]}
        elif op == "frames":
            return self._trials.perform(fields, self._at.loop.clock.now_ns())
        elif op == "pending":
            return {"pending": 0, "connected": len(self._clients), "totals": self._totals}
        elif op == "counts":
            totals = {"settled": self._totals["acked"], "received": self._totals["received"]}
            return {"connected": len(self._clients), "clients": len(self._clients), "totals": totals}
        elif op == "finish":
            self._finish()
            return {"totals": self._totals}
        return {}

    def capture(self, capture: Capture, file: Path) -> FakeCapture:
        found = FakeCapture(file)
        self._captures.append(found)
        return found

    def _probe(self, probe: dict[str, Any]) -> Message:
        i = self._impairments.get((probe["link"], probe["direction"])) or self._set_on(probe)
        count = probe["count"]
        kept = [n for n in range(count) if not _marked(n, lost(i))]
        arrivals = _through(i, [n * probe["interval_ns"] for n in kept], probe["size"])
        delays = [a - n * probe["interval_ns"] for n, a in zip(kept, arrivals, strict=True)]
        return {
            "link": probe["link"], "direction": probe["direction"], "sent": count, "received": len(kept),
            "duplicates": round(duplicated(i) * count), "reordered": 0,
            "corrupted": round(corrupted(i) * count),
            "delays_ns": delays, "arrivals_ns": arrivals,
        }  # fmt: skip

    def _set_on(self, probe: dict[str, Any]) -> Impairment:
        """Of a link that came later."""
        return queueing.found(self._qdiscs(probe["netns"]), probe["device"], Impairment())

    def _finish(self) -> None:
        now = max(self._at.loop.clock.now_ns(), self._t0_ns)
        self._sent = self._schedule(now - self._t0_ns)
        if self._messages:
            self._messages.write_text("".join(f"{line}\n" for line in self._records()))
        if self._samples:
            self._counters(Path(self._samples["dir"]), (now - self._t0_ns) // SECOND)
        for capture in self._captures:
            capture.write(self._t0_ns, self._sent)

    def _schedule(self, end_ns: int) -> list[Sent]:
        found: list[Sent] = []
        addresses = {n.name: n.interfaces[0].address for n in self._at.plan.nodes if n.interfaces}
        for node, client in self._clients:
            publish = client.publish
            if publish is None:
                continue
            schedule, seq, step = publish.schedule, 0, SECOND / publish.schedule.rate_per_s
            end = min(publish.stop_ns, end_ns)
            begin = max(publish.start_ns, client.connect_ns)
            for tick in range(int(begin / step) + 1, min(int(end / step), MOST_MESSAGES)):
                owner = (
                    (tick * 2_654_435_761 + schedule.seed) % schedule.count
                    if schedule.kind == "shared"
                    else None
                )
                if owner is None or owner == schedule.index:
                    found.append(Sent(client.client_id, seq, publish.topic, publish.qos,
                                      publish.payload_bytes, int(tick * step), addresses[node],
                                      client.broker))  # fmt: skip
                    seq += 1
        return sorted(found, key=lambda s: (s.at_ns, s.publisher))

    def _records(self) -> list[str]:
        lines = [
            f"C,{c.client_id},{what},{self._t0_ns + c.connect_ns + TRANSIT_NS * n},"
            for _, c in self._clients for n, what in enumerate(("connecting", "connected"))
        ]  # fmt: skip
        subscriptions = [(c.client_id, s) for _, c in self._clients for s in c.subscribe]
        for s in self._sent:
            at = self._t0_ns + s.at_ns
            acked = at + 2 * TRANSIT_NS if s.qos else 0
            outcome = "acked" if s.qos else "sent"
            lines.append(f"S,{s.publisher},{s.seq},{s.topic},{s.qos},{at},{at},{acked},1,{outcome}")
            for subscriber, wanted in subscriptions:
                if matches(wanted.topic, s.topic):
                    qos = min(s.qos, wanted.qos)
                    lines.append(f"R,{subscriber},{s.publisher},{s.seq},{qos},0,{at + self._latency(s)}")
                    self._totals["received"] += 1
        self._totals |= {"scheduled": len(self._sent), "sent": len(self._sent)}
        self._totals["acked"] = sum(s.qos > 0 for s in self._sent)
        return lines

    def _latency(self, sent: Sent) -> int:
        delays = sum(i.delay_ns for (_, side), i in self._impairments.items() if side == "forward")
        return 2 * TRANSIT_NS + delays + (sent.seq * 7919) % TRANSIT_NS

    def _counters(self, directory: Path, seconds: int) -> None:
        nodes = ["t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes"]
        links = ["t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets"]
        host = [
            "t_ns,user_ns,nice_ns,system_ns,idle_ns,iowait_ns,irq_ns,softirq_ns,steal_ns,load1,memory_available_bytes,cores"
        ]
        for second in range(seconds + 1):
            at = self._t0_ns + second * SECOND
            done = [s for s in self._sent if s.at_ns <= second * SECOND]
            total = sum(s.bytes + HEADERS for s in done)
            nodes += [f"{at},{n['node']},{second * 10**7},{total},{len(done)},{total},{len(done)},3000000"
                      for n in self._samples["nodes"]]  # fmt: skip
            links += [
                f"{at},{k['link']},{k['direction']},{total},{len(done)},0,0,0,0"
                for k in self._samples["links"]
            ]
            used = second * 10**8
            host.append(f"{at},{used},0,{used},{second * 2 * SECOND - 2 * used},0,0,0,0,0.20,8000000000,2")
        for name, lines in (("nodes", nodes), ("links", links), ("host", host)):
            (directory / f"{name}.csv").write_text("".join(f"{line}\n" for line in lines))


def _path(impairments: Iterable[Impairment]) -> FakePath:
    """All impairments of a lab in one path: the lowest rate and its queue, the sum of losses and delays."""
    known = list(impairments)
    shaped = min((i for i in known if i.rate_bps), key=lambda i: i.rate_bps, default=Impairment())
    return FakePath(
        rate_bps=shaped.rate_bps,
        queue=shaped.limit_packets or 1000,
        loss=min(1.0, sum(lost(i) for i in known)),
        delay_ns=sum(i.delay_ns for i in known),
    )


class FakeCapture:
    """A pcap of one frame a message: Ethernet, IPv4, TCP, an MQTT PUBLISH of the right length."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._packets = 0

    def write(self, t0_ns: int, sent: list[Sent]) -> None:
        with self._file.open("wb") as out:
            out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
            next_seq: dict[str, int] = {}
            for message in sent:
                frame = _frame(message, next_seq)
                seconds, ns = divmod(t0_ns + message.at_ns + TRANSIT_NS, SECOND)
                out.write(struct.pack("<IIII", seconds, ns, len(frame), len(frame)) + frame)
        self._packets = len(sent)

    def stop(self) -> dict[str, int]:
        return {"packets": self._packets, "dropped_kernel": 0, "dropped_interface": 0}


def _frame(message: Sent, next_seq: dict[str, int]) -> bytes:
    topic = message.topic.encode()
    body = struct.pack(">H", len(topic)) + topic + (b"\0\1" if message.qos else b"") + bytes(message.bytes)
    publish = bytes([0x30 | message.qos << 1, *_length(len(body))]) + body
    seq = next_seq.get(message.publisher, 1)
    next_seq[message.publisher] = seq + len(publish)
    tcp = struct.pack(">HHIIBBHHH", 40000, 1883, seq, 1, 5 << 4, 0x18, 64240, 0, 0) + publish
    source, target = (bytes(int(p) for p in a.split(".")) for a in (message.address, message.broker))
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, source, target)
    return b"\2\0" + target + b"\2\0" + source + b"\x08\0" + ip + tcp


def _length(value: int) -> list[int]:
    """MQTT's variable byte integer."""
    digits = []
    while True:
        value, digit = divmod(value, 128)
        digits.append(digit | (0x80 if value else 0))
        if not value:
            return digits


def matches(pattern: str, topic: str) -> bool:
    """MQTT's topic filters: + for one level, # for the rest."""
    wanted, given = pattern.split("/"), topic.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(given) or level not in ("+", given[index]):
            return False
    return len(wanted) == len(given)


def _marked(number: int, share: float) -> bool:
    """Evenly spread numbers, `share` of all."""
    return int((number + 1) * share) > int(number * share)


def _through(i: Impairment, sent_ns: list[int], size: int) -> list[int]:
    """When frames arrive: delayed, then sent one after the other at the rate, as sch_netem.c does."""
    transmission = size * 8 * SECOND // i.rate_bps if i.rate_bps else 0
    arrivals: list[int] = []
    for number, at in enumerate(sent_ns):
        due = at + _delay_ns(i, number)
        if transmission and arrivals:
            due = max(due, arrivals[-1])
        arrivals.append(due + transmission)
    return arrivals


def _delay_ns(i: Impairment, number: int) -> int:
    """Delays with the mean and spread asked for: the points of an even distribution in a fixed order."""
    if _marked(number, i.reorder):
        return 0
    share = (number * 0.618_033_988_749_895 + 0.5) % 1.0
    place = share * 2 - 1 if i.distribution == "uniform" else normal_quantile(share)
    return max(0, i.delay_ns + round(place * i.jitter_ns))
