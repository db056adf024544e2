"""Compares the bytes at both ends of bulk transfers, the times of their records, and the bytes of the
senders' nodes.
"""

from __future__ import annotations

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import light_nodes, node_steps
from capture.conservation.evidence import Evidence
from contract.manifest import COMPLETE
from contract.plan import Node, Plan, Software

TRANSFER_ENDS = Rule(
    "transfer-ends", "bytes that receivers of transfers read", "those that senders wrote", WRONG
)
TRANSFER_NODES = Rule(
    "transfer-nodes", "bytes that nodes of transfers alone sent, without headers and repetitions",
    "those that their transfers wrote", WRONG, "at most",
)  # fmt: skip
TRANSFER_TIMES = Rule(
    "transfer-times", "the time between records of a transfer", "one second",
    "rates of transfers refer to another time: repeat the run", "equal", singular=True,
)  # fmt: skip
SECOND = 1_000_000_000
OVER_NS = 3 * SECOND // 2  # a transfer without a record for this time has ended
APART_NS = SECOND // 5
FEWEST = 4  # least number of records for a median
HEADERS = (
    # bytes of a frame's headers at most: Ethernet with a tag 18, IPv6 40, TCP with all its options 60, and a
    # reserve
    138
)
SEGMENT = 1514
KIND = "bulk"
# Actions of events that may end a connection.
BREAKING = ("link-down", "stop", "kill", "restart", "freeze", "disk-full")


def ends_agree(e: Evidence) -> Found:
    """Checks that no receiver has more bytes than its sender. Over TCP, both must have the same if the
    transfer's last record is at least 1.5 s before the scenario's end; this part does not apply to runs that
    did not complete, in which a session failed, or whose events break connections.

    Transfers with several receivers are left out.
    """
    if e.transfers is None:
        return Found(left_out=["no records of bulk transfers"])
    last = e.transfers.group_by("name", "leg", "endpoint").agg(pl.col("bytes", "t_ns").max())
    gave = last.filter(leg=0).group_by("name").agg(pl.col("bytes").sum())
    took = last.filter(leg=1).group_by("name").agg(pl.col("bytes", "t_ns").max(), ends=pl.len())
    both = took.filter(ends=1).join(gave, on="name", suffix="_sent").drop_nulls().sort("name")
    broken = (
        e.overrun or e.manifest.state != COMPLETE or any(event.action in BREAKING for event in e.plan.events)
    )
    end_ns = 0 if broken or e.scenario is None else e.scenario[1] - OVER_NS
    tcp = {name for name, role in _senders(e.plan).items() if role.spec.get("protocol", "tcp") == "tcp"}
    compared = []
    for name, there, at_ns, here in both.select("name", "bytes", "t_ns", "bytes_sent").iter_rows():
        whole = name in tcp and at_ns < end_ns
        compared.append(Compared(name, there if whole else max(there, here), here, "bytes"))
    return Found(compared, [] if compared else ["no transfer was counted at both ends"])


def nodes_sent_them(e: Evidence) -> Found:
    """Checks each light node that runs only senders of transfers: it sent at most the bytes that its
    transfers gave, plus headers. The check subtracts 138 bytes for each frame and 1514 for each TCP
    retransmission.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    steps = node_steps(e)
    if steps is None or e.transfers is None or e.stacks is None:
        return Found(left_out=["no records of bulk transfers, or no counters of nodes and stacks"])
    again = dict(e.stacks.filter(counter="TcpRetransSegs").select("node", "value").iter_rows())
    gave = e.transfers.filter(leg=0).group_by("sender", "name").agg(pl.col("bytes").max())
    of = dict(gave.group_by("sender").agg(pl.col("bytes").sum()).iter_rows())
    compared = []
    for node in light_nodes(e.plan):
        if not alone(node):
            continue
        sent = steps.filter(pl.col("whole") & (pl.col("node") == node.name))
        size, frames = (int(sent[column].sum()) for column in ("tx_bytes", "tx_packets"))
        payload = max(0, size - HEADERS * frames - SEGMENT * again.get(node.name, 0))
        given = sum(of.get(role.session.endpoint, 0) for role in node.software if role.session)
        compared.append(Compared(node.name, payload, given, "bytes"))
    return Found(compared, [] if compared else ["no node has senders of transfers alone"])


def alone(node: Node) -> bool:
    """Returns True if the node runs senders of transfers and nothing else."""
    return bool(node.software) and all(role.kind == KIND and role.spec.get("to") for role in node.software)


def records_are_a_second_apart(e: Evidence) -> Found:
    """Checks that the median time between records of each transfer at each end is 1 s within 0.2 s. Left out
    are ends with fewer than four such times, and transfers that pause longer than 0.2 s between two
    payloads, since a receiver without new bytes writes no record.
    """
    if e.transfers is None:
        return Found(left_out=["no records of bulk transfers"])
    over = ("flow", "endpoint", "leg")
    steps = e.transfers.sort("t_ns").with_columns(step=pl.col("t_ns").diff().over(over)).drop_nulls("step")
    middle = steps.group_by("name", "endpoint").agg(pl.col("step").median().cast(pl.Int64), n=pl.len())
    slow = _slow(e.plan)
    compared = [
        Compared(f"{name} at {endpoint}", step, SECOND, "ns", APART_NS)
        for name, endpoint, step, n in middle.sort("name", "endpoint").iter_rows()
        if n >= FEWEST and name not in slow
    ]
    return Found(compared, [] if compared else ["no transfer has enough records"])


def _slow(plan: Plan) -> set[str]:
    """Returns the flows that pause longer than `APART_NS` between two of their payloads."""
    size = {flow.name: flow.payload.bytes for flow in plan.flows}
    paced = {name: role.spec.get("rate_bps") for name, role in _senders(plan).items()}
    return {name for name, bps in paced.items() if bps and 8 * size[name] / bps * SECOND > APART_NS}


def _senders(plan: Plan) -> dict[str, Software]:
    """Maps the name of each flow whose sender is a role of kind `bulk` to this role."""
    roles = {session.endpoint: role for _, role, session in plan.sessions() if role.kind == KIND}
    return {f.name: roles[f.sender] for f in plan.flows if f.sender in roles}
