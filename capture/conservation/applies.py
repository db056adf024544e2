"""Finds in a run's plan the conservation checks that do not apply, because the run has no subject for them.

The plan decides, not the tables: if the plan has the subject, and its table is missing or empty, the check
cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from capture import trials
from capture.conservation import datagrams, drops, losses, payload, queues, transfers
from capture.conservation.check import Found
from capture.conservation.counters import light_nodes
from capture.conservation.messages import agents
from capture.conservation.ports import ports
from contract.plan import Flow, Plan

Absent = Callable[[Plan], str]  # Function: the plan -> what it lacks; "" if the check applies


def of_check(name: str, plan: Plan, found: Found) -> Found:
    """Returns the result of the check `name`. If it compared nothing and the plan has no subject for it, the
    result has the reason why the check does not apply.
    """
    if found.compared or not (why := absent(name, plan)):
        return found
    return replace(found, absent=why)


def absent(name: str, plan: Plan) -> str:
    """Returns what the plan lacks so that the check `name` does not apply; "" if the check applies."""
    return next((why for lacks in ABSENT.get(name, ()) if (why := lacks(plan))), "")


def _receivers(plan: Plan, flow: Flow) -> Iterator[str]:
    for delivery in flow.deliveries:
        yield from plan.receivers[delivery.receivers]


def _no_messages(plan: Plan) -> str:
    return "" if any(flow.pattern != "stream" for flow in plan.flows) else "no program sends messages"


def _no_flows(plan: Plan) -> str:
    return "" if plan.flows else "no program sends messages"


def _no_agents(plan: Plan) -> str:
    of = {session.endpoint for _, session in agents(plan)}
    there = any(not of.isdisjoint((flow.sender, *_receivers(plan, flow))) for flow in plan.flows)
    return "" if there else "no role of the agent sends or receives messages"


def _no_datagrams(plan: Plan) -> str:
    of, homes = {session.endpoint for _, session in agents(plan)}, plan.homes()
    for flow in plan.flows:
        ends = [
            end
            for one in flow.deliveries
            if not one.guarantee.lossless
            for end in plan.receivers[one.receivers]
        ]
        away = any(end in of and homes[end] != homes.get(flow.sender) for end in ends)
        if away and flow.pattern in ("request", "push") and flow.sender in of:
            return ""
    return "no role of the agent sends datagrams to another node"


def _no_udp_receivers(plan: Plan) -> str:
    of = datagrams.roles(plan)
    for flow in plan.flows:
        if (flow.pattern == "request" and flow.sender in of) or not of.keys().isdisjoint(
            _receivers(plan, flow)
        ):
            return ""
    return "no UDP role of the agent receives"


def _no_udp_senders(plan: Plan) -> str:
    of = datagrams.roles(plan)
    for flow in plan.flows:
        replies = flow.pattern == "request" and not of.keys().isdisjoint(_receivers(plan, flow))
        if flow.sender in of or replies:
            return ""
    return "no UDP role of the agent sends"


def _no_payload(plan: Plan) -> str:
    homes, between = payload.homes(plan), payload.go_betweens(plan)
    for flow in plan.flows:
        start = homes.get(flow.sender)
        for end in {homes.get(receiver) for receiver in _receivers(plan, flow)} - {start}:
            if start and end and not (flow.pattern == "publish" and {start, end} & set(between)):
                return ""
    return "no message goes from one node directly to another"


def _no_segments(plan: Plan) -> str:
    return "" if plan.segments else "the lab has no segments"


def _no_links(plan: Plan) -> str:
    return "" if plan.links else "the lab has no links with counters"


def _no_impairments(plan: Plan) -> str:
    there = any(one.present for _, _, one in plan.impairments()) or plan.traces
    return "" if there else "no link is impaired"


def _no_delays(plan: Plan) -> str:
    there = any(one.delay_ns for _, _, one in plan.impairments()) or plan.traces
    return "" if there else "no link has a delay"


def _no_losses(plan: Plan) -> str:
    there = any(one.loss and not losses.correlated(one) for _, _, one in plan.impairments())
    return "" if there else "no link has independent loss"


def _no_rates(plan: Plan) -> str:
    there = any(one.rate_bps and not one.loss for _, _, one in queues.asked(plan))
    return "" if there else "no link has a rate without loss"


def _no_ends(plan: Plan) -> str:
    return "" if any(drops.to_nodes(plan)) else "no link leads to a node that forwards nothing"


def _no_ways_out(plan: Plan) -> str:
    return "" if ports(plan).rows.filter(way="tx").height else "no link begins at a light node"


def _none_on_links(plan: Plan) -> str:
    return "" if any(_on_links(plan, whole=True)) else "no node has a link at each of its interfaces"


def _none_on_some_links(plan: Plan) -> str:
    there = any(_on_links(plan, whole=False))
    return "" if there else "no node has interfaces with a link and others without"


def _on_links(plan: Plan, *, whole: bool) -> Iterator[bool]:
    known = ports(plan)
    for node, devices in known.devices.items():
        covered = known.covered(node)
        yield bool(covered) and (set(devices) <= covered) == whole


def _no_pairs(plan: Plan) -> str:
    return "" if any(_with_ports(plan, two=True)) else "no link begins in a segment of two ports"


def _no_larger(plan: Plan) -> str:
    return "" if any(_with_ports(plan, two=False)) else "no link begins in a segment of more than two ports"


def _with_ports(plan: Plan, *, two: bool) -> Iterator[bool]:
    known = ports(plan)
    for segment in plan.segments:
        here = [node for node, devices in known.devices.items() if segment.name in devices.values()]
        joins = [li for li in plan.links if any(segment.name in pair for pair in li.joins)]
        linked = joins or any(known.way_into(node, segment.name) for node in here)
        yield bool(linked) and (len(here) + len(joins) == 2) == two


def _no_routers(plan: Plan) -> str:
    return "" if any(node.forward for node in plan.nodes) else "no node forwards packets"


def _no_light_nodes(plan: Plan) -> str:
    return "" if light_nodes(plan) else "the lab has no light nodes"


def _no_programs(plan: Plan) -> str:
    return "" if any(node.software for node in light_nodes(plan)) else "no light node runs a program"


def _no_captures(plan: Plan) -> str:
    return "" if plan.captures else "the run has no capture point"


def _no_whole_captures(plan: Plan) -> str:
    return "" if any(not one.filter for one in plan.captures) else "every capture has a filter"


def _no_filters(plan: Plan) -> str:
    return "" if any(one.filter for one in plan.captures) else "no capture has a filter"


def _no_figures(plan: Plan) -> str:
    return _no_messages(plan) and _no_captures(plan) and "the run has neither messages nor captures"


def _no_transfers(plan: Plan) -> str:
    return "" if any(flow.pattern == "stream" for flow in plan.flows) else "no bulk transfers"


def _no_senders_alone(plan: Plan) -> str:
    there = any(transfers.alone(node) for node in light_nodes(plan))
    return "" if there else "no node has senders of transfers alone"


def _trials(plan: Plan) -> str:
    return "trials make the hold as long as they need" if trials.planned(plan) else ""


ABSENT: dict[str, tuple[Absent, ...]] = {
    "message-totals": (_no_agents,),
    "message-rows": (_no_messages,),
    "message-losses": (_no_datagrams,),
    "node-links": (_none_on_links,),
    "node-some-links": (_none_on_some_links,),
    "link-frames": (_no_pairs,),
    "link-most-frames": (_no_larger,),
    "link-messages": (_no_datagrams, _no_ways_out),
    "link-forwarded": (_no_routers, _no_ways_out),
    "segment-frames": (_no_segments,),
    "node-payload": (_no_payload,),
    "capture-frames": (_no_captures, _no_whole_captures),
    "capture-filtered": (_no_captures, _no_filters),
    "capture-matches": (_no_captures, _no_filters),
    "capture-received": (_no_captures,),
    "capture-rows": (_no_captures,),
    "capture-bytes": (_no_captures,),
    "capture-times": (_no_captures, _no_messages),
    "node-cpu": (_no_light_nodes,),
    "node-cpu-processes": (_no_programs,),
    "datagrams-received": (_no_udp_receivers,),
    "datagrams-sent": (_no_udp_senders,),
    "message-delay": (_no_messages, _no_delays),
    "cpu-sampled": (_no_programs,),
    "memory-sampled": (_no_light_nodes,),
    "sample-times": (_no_light_nodes,),
    "counters-grow": (_no_light_nodes,),
    "node-memory": (_no_light_nodes,),
    "link-drops": (_no_ends, _no_messages),
    "link-loss": (_no_losses,),
    "link-backlog": (_no_links, _no_impairments),
    "link-full": (_no_rates,),
    "stack-bytes": (_no_light_nodes,),
    "link-stack": (_no_ways_out,),
    "transfer-ends": (_no_transfers,),
    "transfer-nodes": (_no_transfers, _no_senders_alone),
    "transfer-times": (_no_transfers,),
    "phases-planned": (_trials,),
    "proof-planned": (_no_links, _no_impairments),
    "proof-words": (_no_links, _no_impairments),
    "flow-names": (_no_flows,),
    "summary-counts": (_no_figures,),
    "summary-goodput": (_no_transfers,),
    "link-goodput": (_no_links, _no_captures),
}
