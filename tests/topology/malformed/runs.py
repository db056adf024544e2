"""Lists mistakes in captures, timeline, run and campaign."""

from __future__ import annotations

from .base import EVENT, RUN, Case

CASES = [
    # --- captures
    Case(
        "capture nowhere", "at: node broker", "at: node brokr", "captures.main.at", 'did you mean "broker"?'
    ),
    Case("capture of a kind", "at: node broker", "at: bridge office", "captures.main.at", "does not match"),
    Case(
        "capture of a link", "at: node broker", "at: link lan", "captures.main.at", "no link is called that"
    ),
    Case(
        "capture snaplen",
        "at: node broker",
        "at: node broker, snaplen: 10",
        "captures.main.snaplen",
        "must be at least 60",
    ),
    Case(
        "capture filter lines",
        "at: node broker",
        'at: node broker, filter: "tcp\\nudp"',
        "captures.main.filter",
        "does not match",
    ),
    # --- timeline
    Case("event without action", EVENT, "{at: hold}", "timeline[0]", "an event has exactly one action"),
    Case(
        "event with two actions",
        EVENT,
        "{at: hold, link-down: wan, stop: reader}",
        "timeline[0]",
        "exactly one action",
    ),
    Case("event without time", EVENT, "{link-down: wan}", "timeline[0].at", "is missing"),
    Case("event at no phase", EVENT, "{at: 5 s, link-down: wan}", "timeline[0].at", "a moment is a phase"),
    Case(
        "event at half a moment",
        EVENT,
        "{at: hold +, link-down: wan}",
        "timeline[0].at",
        "a moment is a phase",
    ),
    Case("event before", EVENT, "{at: hold + -5 s, link-down: wan}", "timeline[0].at", "cannot be negative"),
    Case(
        "event after its phase",
        EVENT,
        "{at: hold + 21 s, link-down: wan}",
        "timeline[0].at",
        "is after the end of hold, which lasts 20 s",
    ),
    Case(
        "event beyond the run",
        EVENT,
        "{at: hold + 19 s, link-down: wan, for: 7 s}",
        "timeline[0]",
        "ends 1 s after the run",
    ),
    Case(
        "event in a short ramp",
        EVENT,
        "{at: ramp + 1 s, link-down: wan}",
        "timeline[0].at",
        "is after the end of ramp, which lasts 400 ms",
    ),
    Case(
        "event on no link",
        EVENT,
        "{at: hold, link-down: wam}",
        "timeline[0].link-down",
        'did you mean "wan"?',
    ),
    Case(
        "event on no node",
        EVENT,
        "{at: hold, kill: client4}",
        "timeline[0].kill",
        "no node or group is called that",
    ),
    Case(
        "event on no software",
        EVENT,
        "{at: hold, stop: reader, software: pub}",
        "timeline[0].software",
        "no software of reader is called that",
    ),
    Case(
        "restart of a client alone",
        EVENT,
        "{at: hold, restart: reader, software: sub}",
        "timeline[0].software",
        "cannot be stopped alone",
    ),
    Case(
        "impair with nothing",
        EVENT,
        "{at: hold, impair: wan}",
        "timeline[0]",
        "impair needs the new impairment",
    ),
    Case(
        "impair wrongly",
        EVENT,
        "{at: hold, impair: wan, both: {reorder: 1 %}}",
        "timeline[0].both.reorder",
        "reorder without delay",
    ),
    Case("flap without down", EVENT, "{at: hold, flap: wan}", "timeline[0]", "flap needs how long"),
    Case(
        "flap too long",
        EVENT,
        "{at: hold, flap: wan, down: 5 s, up: 5 s, times: 4}",
        "timeline[0]",
        "after the run",
    ),
    Case(
        "partition for ever",
        EVENT,
        "{at: hold, partition: client}",
        "timeline[0]",
        "partition needs its length",
    ),
    Case(
        "partition of an island",
        EVENT,
        "{at: hold, partition: far, for: 1 s}",
        "timeline[0].partition",
        "no node or group is called that",
    ),
    Case(
        "limit of nothing", EVENT, "{at: hold, limit: reader}", "timeline[0]", "limit needs what is the most"
    ),
    Case(
        "limit of zero",
        EVENT,
        "{at: hold, limit: reader, cpu_limit: 0 cores}",
        "timeline[0].cpu_limit",
        "must be more than zero",
    ),
    Case(
        "most of what is not limited",
        EVENT,
        "{at: hold, stop: reader, cpu_limit: 1 cores}",
        "timeline[0].cpu_limit",
        "does not belong to stop",
    ),
    Case("run nowhere", EVENT, "{at: hold, run: date}", "timeline[0]", "run needs its nodes"),
    Case(
        "key of another action",
        EVENT,
        "{at: hold, link-up: wan, for: 1 s}",
        "timeline[0].for",
        "does not belong to link-up",
    ),
    Case(
        "underscore action",
        EVENT,
        "{at: hold, link_down: wan}",
        "timeline[0].link_down",
        'did you mean "link-down"?',
    ),
    # --- run and campaign
    Case(
        "ramp and interval",
        RUN,
        RUN.replace("drain: 5 s", "ramp: 9 s"),
        "run.ramp",
        "conflicts with connect_interval",
    ),
    Case(
        "failure policy",
        RUN,
        RUN.replace("drain: 5 s", "on_node_failure: ignore"),
        "run.on_node_failure",
        "is not one of the values",
    ),
    Case(
        "factor unknown",
        RUN,
        RUN + "\ncampaign: {factors: {qos: [0, 1]}}",
        "campaign.factors.qos",
        "no parameter is called that",
        36,
    ),
    Case(
        "factor without levels",
        RUN,
        RUN + "\ncampaign: {factors: {clients: []}}",
        "campaign.factors.clients",
        "must have at least 1 items",
        36,
    ),
    Case(
        "factor given too",
        RUN,
        RUN + "\ncampaign: {factors: {clients: [1]}, parameters: {clients: 2}}",
        "campaign.parameters.clients",
        "is a factor already",
        36,
    ),
    Case(
        "no repetitions",
        RUN,
        RUN + "\ncampaign: {repetitions: 0}",
        "campaign.repetitions",
        "must be at least 1",
        36,
    ),
    Case("tolerance without unit", RUN, RUN + "\nproof: {delay: 1}", "proof.delay", "is not a tolerance", 36),
    Case(
        "tolerance of nothing",
        RUN,
        RUN + "\nproof: {delay: 0 ms}",
        "proof.delay",
        "no measurement is exact",
        36,
    ),
    Case(
        "tolerance below zero",
        RUN,
        RUN + "\nproof: {jitter: -1 ms}",
        "proof.jitter",
        "cannot be negative",
        36,
    ),
    Case(
        "tolerance in two units", RUN, RUN + "\nproof: {delay: 1 ms or 2 kB}", "proof.delay", "not a unit", 36
    ),
    Case("rate's tolerance as a time", RUN, RUN + "\nproof: {rate: 1 ms}", "proof.rate", "unit", 36),
    Case(
        "rate's tolerance of nothing",
        RUN,
        RUN + "\nproof: {rate: 0 %}",
        "proof.rate",
        "no measurement is",
        36,
    ),
    Case("no such quantity", RUN, RUN + "\nproof: {loss: 1 %}", "proof.loss", "is not a key here", 36),
    Case("proof for ever", RUN, RUN + "\nproof: {time: 1 h}", "proof.time", "must be at most", 36),
]
