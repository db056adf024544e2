"""Invents the scenario of the fake driver: message records, counters and captures that agree with one
another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from contract.plan import Capture, Impairment, Slot
from orchestrator import queueing
from orchestrator.lab import operations, workload
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import DriverContext
from orchestrator.lab.drivers.fake_capture import HEADERS, FakeCapture
from orchestrator.lab.drivers.fake_frames import FakePath, FakeTrials
from orchestrator.lab.drivers.fake_traffic import Sent, Traffic
from orchestrator.lab.errors import LabError
from orchestrator.lab.expected import corrupted, counted_twice, duplicated, lost, overtaking
from orchestrator.lab.intervals import normal_quantile
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Operation, Outstanding, Probe, Probed, Totals
from orchestrator.lab.probes import directions
from orchestrator.plan.slots import Tables

CLASSES = "t_ns,link,direction,class,bytes,packets,dropped,overlimits,marked,backlog_bytes,backlog_packets"
CPU_NS = 10_000_003  # CPU time of a node in each second; not a multiple of a kernel's tick
# A copy has the delay of the frame that follows 1,154 later; the two delays differ by a fifth of the range.
OTHER = 1154
FRAMES = (operations.ListenForFrames, operations.SendFrames, operations.CollectFrames)


class FakeRun:
    """Answers operations on samples, proofs, workloads and trials as launchers would."""

    def __init__(self, context: DriverContext, qdiscs: Callable[[str], list[dict[str, Any]]]) -> None:
        self._at = context
        self._qdiscs = qdiscs
        self._sessions = 0
        self._messages: Path | None = None
        self._t0_ns = 0
        self._sample: operations.Sample | None = None
        self._captures: list[FakeCapture] = []
        self._impairments = {(link, side): d.impairment for link, side, d in directions(context.plan.links)}
        self._trials = FakeTrials(_path(self._impairments.values()))
        self._totals: Totals = {
            "scheduled": 0, "sent": 0, "settled": 0, "received": 0, "dropped": 0, "foreign": 0
        }  # fmt: skip

    def perform(self, request: Operation[Any]) -> Message:
        if isinstance(request, operations.Prove):
            return request.accept({"probes": [self._probe(p) for p in request.probes]})
        if isinstance(request, FRAMES):
            return self._trials.perform(request, self._at.loop.clock.now_ns())
        if isinstance(request, operations.Pending):
            return request.accept(self._outstanding())
        if isinstance(request, operations.Finish):
            self._finish()
            return request.accept(self._outstanding())
        if isinstance(request, operations.Stack):  # nodes of the fake driver have no kernel with counters
            return request.accept({"nodes": {}})
        if isinstance(request, operations.Counts):
            totals = self._totals["settled"], self._totals["received"]
            return request.accept({
                "connected": self._sessions, "clients": self._sessions,
                "totals": {"settled": totals[0], "received": totals[1]},
            })  # fmt: skip
        return self._begin(request)

    def _begin(self, request: Operation[Any]) -> Message:
        """Accepts a request and stores what later answers need; raises LabError for an unknown operation."""
        if isinstance(request, operations.Messages):
            self._messages = Path(request.path)
        elif isinstance(request, operations.Sample):
            self._sample = request
        elif isinstance(request, operations.Workload):
            self._sessions = workload.connecting(request.items)
        elif isinstance(request, operations.Go):
            self._t0_ns = request.t0_ns
        else:
            raise LabError(f"fake: {request.op}: it does not know this operation")
        return request.accept({})

    def _outstanding(self) -> Outstanding:
        sessions = self._sessions
        return {"pending": 0, "connected": sessions, "clients": sessions, "totals": self._totals}

    def capture(self, capture: Capture, file: Path) -> FakeCapture:
        found = FakeCapture(file)
        self._captures.append(found)
        return found

    def _probe(self, probe: Probe) -> Probed:
        i = self._impairments.get((probe["link"], probe["direction"])) or self._set_on(probe)
        count = probe["count"]
        kept = [n for n in range(count) if not _marked(n, lost(i))]
        tables = self._at.plan.tables
        arrivals = _through(i, [n * probe["interval_ns"] for n in kept], probe["size"], tables)
        delays = [a - n * probe["interval_ns"] for n, a in zip(kept, arrivals, strict=True)]
        if probe.get("counts_only"):
            delays, arrivals = [], []
        return {
            "link": probe["link"], "direction": probe["direction"], "sent": count,
            "received": len(kept) + round(counted_twice(i) * count),
            "duplicates": round(duplicated(i) * count), "reordered": 0,
            "corrupted": round(corrupted(i) * count),
            "delays_ns": delays, "arrivals_ns": arrivals,
        }  # fmt: skip

    def _set_on(self, probe: Probe) -> Impairment:
        """Returns the impairment of a link that is not in the plan (because its node was added later), from
        its qdiscs.
        """
        return queueing.found(self._qdiscs(probe["netns"]), probe["device"], Impairment())

    def _finish(self) -> None:
        now = max(self._at.loop.clock.now_ns(), self._t0_ns)
        delay_ns = sum(i.delay_ns for (_, side), i in self._impairments.items() if side == "forward")
        traffic = Traffic(self._at.plan, self._t0_ns, now - self._t0_ns, delay_ns)
        sent = traffic.messages()
        records = list(traffic.records(sent))
        self._totals["scheduled"] = self._totals["sent"] = len(sent)
        self._totals["settled"] = sum(line.endswith(",settled") for line in records)
        self._totals["received"] = sum(line.startswith("R,") for line in records)
        if self._messages:
            self._messages.write_text("".join(f"{line}\n" for line in records))
        if self._sample is not None:
            self._counters(self._sample, (now - self._t0_ns) // SECOND, sent)
        for capture in self._captures:
            capture.write(traffic, sent)

    def _counters(self, sample: operations.Sample, seconds: int, sent: list[Sent]) -> None:
        nodes = ["t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes"]
        links = ["t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets"]
        host = [
            "t_ns,user_ns,nice_ns,system_ns,idle_ns,iowait_ns,irq_ns,softirq_ns,steal_ns,load1,memory_available_bytes,cores"
        ]
        times = [s.at_ns for s in sent]
        totals = [0, *accumulate(s.flow.payload.bytes + HEADERS for s in sent)]
        for second in range(seconds + 1):
            at = self._t0_ns + second * SECOND
            done = bisect_right(times, second * SECOND)
            sums = f"{totals[done]},{done}"
            nodes += [f"{at},{n['node']},{second * CPU_NS},{sums},{sums},3000000"
                      for n in sample.nodes]  # fmt: skip
            links += [
                f"{at},{k['link']},{k['direction']},{totals[done]},{done},0,0,0,0" for k in sample.links
            ]
            used = second * 10**8
            host.append(f"{at},{used},0,{used},{second * 2 * SECOND - 2 * used},0,0,0,0,0.20,8000000000,2")
        classes = [CLASSES] if any(k["classes"] for k in sample.links) else []
        for second in range(seconds + 1 if classes else 0):
            at, done = self._t0_ns + second * SECOND, bisect_right(times, second * SECOND)
            classes += [
                f"{at},{k['link']},{k['direction']},{c['class']},{totals[done]},{done},0,0,0,0,0"
                for k in sample.links for c in k["classes"][-1:]
            ]  # fmt: skip
        files = (("nodes", nodes), ("links", links), ("host", host), ("classes", classes))
        for name, lines in (f for f in files if f[1]):
            (Path(sample.dir) / f"{name}.csv").write_text("".join(f"{line}\n" for line in lines))


def _path(impairments: Iterable[Impairment]) -> FakePath:
    """Returns one path that has all impairments of a lab: the lowest rate with its queue, and the sums of
    losses and delays.
    """
    known = list(impairments)
    shaped = min((i for i in known if i.rate_bps), key=lambda i: i.rate_bps, default=Impairment())
    return FakePath(
        rate_bps=shaped.rate_bps,
        queue=shaped.limit_packets or 1000,
        loss=min(1.0, sum(lost(i) for i in known)),
        delay_ns=sum(i.delay_ns for i in known),
    )


def _marked(number: int, share: float) -> bool:
    """Returns whether a number belongs to an evenly spread `share` of all numbers."""
    return int((number + 1) * share) > int(number * share)


def _through(i: Impairment, sent_ns: list[int], size: int, tables: Tables) -> list[int]:
    """Returns one arrival time (ns) for each frame of `size` bytes, in sending order. The delay comes first,
    then the rate sends frames one by one, then a slot.

    This approximates sch_netem.c without random numbers: evenly spread values replace them, and reordered
    frames wait for the rate, too.
    """
    transmission = size * 8 * SECOND // i.rate_bps if i.rate_bps else 0
    arrivals: list[int] = []
    for number, at in enumerate(sent_ns):
        due = at + _delay_ns(i, number, tables.get(i.distribution))
        if _marked(number, overtaking(i)):  # the earlier of two copies
            due = min(due, at + _delay_ns(i, number + OTHER, tables.get(i.distribution)))
        if transmission and arrivals:
            due = max(due, arrivals[-1])
        due += transmission
        arrivals.append(due if i.slot is None else at + _slotted_ns(i.slot, due - at, number, tables))
    return arrivals


def _slotted_ns(slot: Slot, due_ns: int, number: int, tables: Tables) -> int:
    """Returns the time (ns) at which a slot releases the frame (see plan/slots.py); the computation uses
    evenly spread numbers instead of random ones.
    """
    first, second = ((number * step + 0.5) % 1.0 for step in (0.754_877_666_246_693, 0.569_840_290_998_053))
    table = tables.get(slot.table or "")

    def at(share: float) -> int:
        if table is None:
            return slot.min_ns + round(share * (slot.max_ns - slot.min_ns))
        return slot.mean_ns + slot.jitter_ns * table[int(share * len(table))] // 8192

    return at(first) if at(first) >= due_ns else due_ns + at(second)


def _delay_ns(i: Impairment, number: int, table: Sequence[int] | None = None) -> int:
    """Returns the delay (ns) of a frame, one of the points of the requested distribution, which are evenly
    spread and in a fixed order; 0 for reordered frames.
    """
    if _marked(number, i.reorder):
        return 0
    share = (number * 0.618_033_988_749_895 + 0.5) % 1.0
    if table is not None:
        place = table[int(share * len(table))] / 8192
    else:
        place = share * 2 - 1 if i.distribution == "uniform" else normal_quantile(share)
    return max(0, i.delay_ns + round(place * i.jitter_ns))
