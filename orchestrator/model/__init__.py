"""The plan as data: what a lab will be, before anything is made. Standard library only."""

from .flows import Delivery, Flow, Pattern, Payload, Promise, Rate
from .network import Capture, Direction, Impairment, Interface, Link, Route, Segment
from .plan import PHASES, PLAN_FORMAT, Event, Node, Phase, Plan, Prediction, Step, Vm
from .software import File, Frames, Mqtt, Probe, Process, Publish, Schedule, Session, Software, Subscribe

__all__ = [
    "PHASES",
    "PLAN_FORMAT",
    "Capture",
    "Delivery",
    "Direction",
    "Event",
    "File",
    "Flow",
    "Frames",
    "Impairment",
    "Interface",
    "Link",
    "Mqtt",
    "Node",
    "Pattern",
    "Payload",
    "Phase",
    "Plan",
    "Prediction",
    "Probe",
    "Process",
    "Promise",
    "Publish",
    "Rate",
    "Route",
    "Schedule",
    "Segment",
    "Session",
    "Software",
    "Step",
    "Subscribe",
    "Vm",
]
