"""Defines the plan: data that describe a lab before it is made. Imports the standard library only."""

from .expectations import DELIVERED, Bounds, Expectation
from .flows import Delivery, Flow, Guarantee, Pattern, Payload, Rate, Schedule, Sizes, Spread
from .hosts import Host, Tunnel
from .network import (
    WAYS,
    Capture,
    Direction,
    Impairment,
    Interface,
    Link,
    Neighbour,
    Route,
    Segment,
    Slot,
    Vrf,
)
from .plan import CLOCK_NS, NO_PLAN, PHASES, PLAN_FORMAT, Event, Node, Note, Phase, Plan, Prediction, Step, Vm
from .queues import Band, Discipline
from .software import REFLECT_DSCP, File, Probe, Process, Program, Session, Software
from .traces import State, Trace

__all__ = [
    "CLOCK_NS",
    "DELIVERED",
    "NO_PLAN",
    "PHASES",
    "PLAN_FORMAT",
    "REFLECT_DSCP",
    "WAYS",
    "Band",
    "Bounds",
    "Capture",
    "Delivery",
    "Direction",
    "Discipline",
    "Event",
    "Expectation",
    "File",
    "Flow",
    "Guarantee",
    "Host",
    "Impairment",
    "Interface",
    "Link",
    "Neighbour",
    "Node",
    "Note",
    "Pattern",
    "Payload",
    "Phase",
    "Plan",
    "Prediction",
    "Probe",
    "Process",
    "Program",
    "Rate",
    "Route",
    "Schedule",
    "Segment",
    "Session",
    "Sizes",
    "Slot",
    "Software",
    "Spread",
    "State",
    "Step",
    "Trace",
    "Tunnel",
    "Vm",
    "Vrf",
]
