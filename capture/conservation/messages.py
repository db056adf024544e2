"""Compares the records of messages with the counts of the agents' roles, the table of messages with the
records, and lost datagrams with dropped frames.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture import expected
from capture.conservation.check import Compared, Found, Rule
from capture.conservation.evidence import Evidence
from contract.plan import WAYS, Plan, Session, Software

MESSAGE_ROWS = Rule(
    "message-rows", "messages of the table", "the records of messages",
    "raw/messages.csv has lines that are in no figure: examine it",
)  # fmt: skip
MESSAGE_TOTALS = Rule(
    "message-totals", "records of messages", "the programs' own counts",
    "records were lost, or invented, on their way to raw/messages.csv: repeat the run",
)  # fmt: skip
MESSAGE_LOSSES = Rule(
    "message-losses", "messages lost", "the frames that links and stacks dropped or held at the end",
    "something between the nodes drops messages without a count: losses of this run may be the lab's own",
    "at most",
)  # fmt: skip
# The counters of a node's stack for packets that it discarded.
THROWN_AWAY = r"(Discards|Errors|NoRoutes|NoPorts|Fails|Drops?)$"
ENDING = ("stop", "kill", "restart")
DISRUPTING = ("link-down", "stop", "kill", "restart", "freeze", "disk-full", "limit", "run", "start")
# Keys in the plan of a sender whose rate is limited by other programs; the second key is of earlier versions.
_LIMITED = {"rate_limits_from", "obeys"}


def table_has_records(e: Evidence) -> Found:
    """Compares the numbers of messages, arrivals and replies in messages.parquet with the lines of
    raw/messages.csv; compares nothing if the reduction left out lines.
    """
    if e.recorded is None or e.messages is None:
        return Found(left_out=["the run has no records of messages"])
    if e.recorded.misfits:
        return Found(left_out=["records were left out; see the warning"])
    rows = e.messages
    return Found([
        Compared("messages scheduled", rows.n_unique(["flow", "seq"]), e.recorded.sent, "messages"),
        Compared("arrivals", int(rows["copies"].sum()), e.recorded.arrivals, "records"),
        Compared("replies", int(rows["replies"].sum()), e.recorded.replies, "records"),
    ])  # fmt: skip


def records_are_counted(e: Evidence) -> Found:
    """Compares the recorded messages and the sum of recorded arrivals and replies with the totals that the
    agents' roles counted. Leaves out scheduled messages if programs on the path limit senders.

    Compares nothing in a lab with several hosts, VM nodes or programs of the user, or with events that end
    programs.
    """
    totals = e.manifest.totals
    if totals is None:
        return Found(left_out=["the run has no counts of its programs"])
    if e.recorded is None:
        return Found(left_out=["the run has no records of messages"])
    if e.plan.hosts or any(n.kind != "light" for n in e.plan.nodes):
        return Found(left_out=["programs in machines or on other hosts may have ended with their counts"])
    if any(event.action in ENDING for event in e.plan.events):
        return Found(left_out=["the timeline ended programs, which lost their counts"])
    if _own_programs(e.plan):
        return Found(left_out=["programs of the user's own are counted by their records alone"])
    arrived = e.recorded.arrivals + e.recorded.replies
    compared = [Compared("messages received", arrived, int(totals["received"]), "messages")]
    if any(_LIMITED & software.spec.keys() for software, _ in agents(e.plan)):
        return Found(compared, ["senders with rate limits leave out messages that were due"])
    scheduled = Compared("messages scheduled", e.recorded.sent, int(totals["scheduled"]), "messages")
    return Found([scheduled, *compared])


def lost_were_dropped(e: Evidence) -> Found:
    """Checks that at most as many datagrams were lost as links and stacks dropped frames, or links still
    queued them at the last sample. Compares nothing if losses without a counted drop are possible.
    """
    if why := e.unsuitable or disrupted(e):
        return Found(left_out=[why])
    counted = e.links if e.plan.links else e.nodes  # in a lab without links, only the stacks can drop packets
    if e.messages is None or counted is None:
        return Found(left_out=["no messages, or no counters of links"])
    last_ns = int(counted["t_ns"].max())  # type: ignore[arg-type]
    lost = _lost(e, last_ns)
    if lost is None:
        return Found(left_out=["no datagram was sent from one node to another"])
    links = 0
    if e.links is not None:
        end = e.links.filter(pl.col("t_ns") == last_ns)
        links = int(end["dropped"].sum()) + int(end["backlog_packets"].sum())
    return Found([Compared("datagrams", lost, links + _thrown_away(e), "frames")])


def _lost(e: Evidence, last_ns: int) -> int | None:
    """Returns the number of lost datagram messages that were sent until `last_ns`; None if there are no
    datagram messages.

    A message that several receivers did not get counts once, since one dropped frame may be the cause.
    """
    rows = of_datagrams(e)
    if rows.is_empty():
        return None
    here = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()
    return rows.filter((pl.col("sent_ns") <= last_ns) & ~here).n_unique(["flow", "seq"])


def of_datagrams(e: Evidence) -> pl.DataFrame:
    """Returns the rows of sent messages between roles of the agent, except published ones, whose flow allows
    loss (datagrams).
    """
    assert e.messages is not None
    roles = [session.endpoint for _, session in agents(e.plan)]
    of = expected.deliveries(e.plan).filter(~pl.col("lossless"))["flow"].unique()
    return e.messages.filter(
        (pl.col("outcome") == "sent") & (pl.col("pattern") != "publish") & pl.col("flow").is_in(of.to_list())
        & pl.col("sender").is_in(roles) & pl.col("receiver").is_in(roles)
    )  # fmt: skip


def disrupted(e: Evidence) -> str:
    """Returns the first reason why messages may be lost without a counted drop, such as CPU limits, bit
    errors, disrupting events, VM nodes or a failed session; "" if every loss is counted.
    """
    nodes, links = e.plan.nodes, e.plan.links
    ways = [link.way(way).impairment for link in links for way in WAYS]
    software = [s for node in nodes for s in node.software]
    reasons = {
        "a node's CPU is limited: messages may wait unread in its sockets": any(
            node.cpu_limit_cores or node.cpu_limit_mhz for node in nodes
        ),
        "a link flips bits: frames get lost that no link has dropped": any(w.corrupt for w in ways),
        "links or nodes were taken down, which throws frames away uncounted": any(
            event.action in DISRUPTING for event in e.plan.events
        ),
        "a router's program may drop packets that are not counted": any(
            s.role == "router" and s.process for s in software
        ),
        "the stacks of virtual machines may drop frames uncounted": any(
            node.kind != "light" for node in nodes
        ),
        "a receiver said that it lost frames": e.overrun,
    }
    return next((reason for reason, so in reasons.items() if so), "")


def _thrown_away(e: Evidence) -> int:
    if e.stacks is None:
        return 0
    return int(e.stacks.filter(pl.col("counter").str.contains(THROWN_AWAY))["value"].sum())


def agents(plan: Plan) -> Iterator[tuple[Software, Session]]:
    """Yields software and session of each session that the agent itself runs; omits sessions of programs."""
    return ((software, session) for _, software, session in plan.sessions() if not software.process)


def _own_programs(plan: Plan) -> bool:
    return any(software.process for _, software, _ in plan.sessions())
