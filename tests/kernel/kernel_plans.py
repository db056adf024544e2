"""Provides plans, machine facts and guest payloads for the tests of lab kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contract.plan import Direction, Impairment, Link, Node, Plan
from orchestrator.kernel.facts import HostFacts

PLAIN = Impairment()
DELAYED = Impairment(delay_ns=20_000_000, limit_packets=1000)
ALL_KINDS = {"netem": None, "veth": None, "bridge": None}


def plan(**changes: Any) -> Plan:
    """Returns an empty plan whose fields are changed by `changes`."""
    empty: dict[str, Any] = {
        "lab": "pair", "core_netns": "vnet-pair", "seed": 1, "topology": "pair.yaml", "parameters": {},
        "reference": None, "scenario": None, "segments": (), "nodes": (), "links": (), "captures": (),
        "events": (), "ramp_ns": 0, "hold_ns": 0, "drain_ns": 0, "steps": (), "predictions": (),
    }  # fmt: skip
    return Plan(**{**empty, **changes})


def link(impairment: Impairment) -> Link:
    way = Direction(impairment, "vnet-pair", "wan.a", "vnet-pair", "wan.b")
    back = Direction(PLAIN, "vnet-pair", "wan.b", "vnet-pair", "wan.a")
    return Link("wan", "lan", "far", "segments", way, back)


def node(name: str = "a", **limits: Any) -> Node:
    return Node(name, name, "light", name, f"vnet-pair.{name}", f"vnet/pair/{name}", (), (), **limits)


def facts(**changes: Any) -> HostFacts:
    """Returns the facts of a machine that has all features, changed by `changes`."""
    able: dict[str, Any] = {
        "kernel": "6.12.0", "root": True, "namespaces": None, "kinds": ALL_KINDS,
        "controllers": frozenset({"cpu", "cpuacct", "memory"}), "cgroup_version": 2,
        "tools": {"ip": "/sbin/ip", "tc": "/sbin/tc", "tcpdump": "/usr/bin/tcpdump"},
    }  # fmt: skip
    return HostFacts(**{**able, **changes})


# This program runs in a guest in place of the lab process; it uses the standard library only, and ends on
# SIGINT with status 7.
PAYLOAD = Path(__file__).with_name("guest_payload.py")
