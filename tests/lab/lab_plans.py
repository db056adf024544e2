"""Small plans for the lab's tests, made by hand from the plan's own parts."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

from orchestrator.model import (
    Capture,
    Direction,
    Event,
    Impairment,
    Interface,
    Link,
    Mqtt,
    Node,
    Plan,
    Probe,
    Process,
    Publish,
    Schedule,
    Segment,
    Software,
    Subscribe,
    Vm,
)  # fmt: skip
from orchestrator.plan import vms
from orchestrator.plan.steps import impair_steps, network_steps

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "target" / "release" / "vnet-agent"
MS, SECOND = 10**6, 10**9


def own(name: str) -> str:
    """The name with this process's number: two runs of the suite on one machine do not meet."""
    return f"{name}-{os.getpid()}"


def node(lab: str, index: int, name: str, software: tuple[Software, ...] = (), **more: object) -> Node:
    card = Interface("eth0", name, "lan", f"10.9.0.{index + 1}", 24, f"02:00:0a:09:00:{index + 1:02x}", 1500)
    return Node(
        name, name.rstrip("0123456789"), "light", name, f"vnet-{lab}.{name}", f"vnet/{lab}/{name}", (card,),
        software, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def machine(of: Node, image: str = "builtin", memory_mib: int = 0) -> Node:
    """The node as a virtual machine."""
    memory_bytes = memory_mib << 20 or vms.memory(image)
    return dataclasses.replace(of, kind="vm", vm=Vm(image, memory_bytes, boot_deadline_ns=240 * SECOND))


def program(name: str, *argv: str, role: str = "utility", **more: object) -> Software:
    return Software(name, role, process=Process(argv, **more))  # type: ignore[arg-type]


def broker() -> Software:
    """A real mosquitto that listens on the node's address."""
    from orchestrator.model import File

    text = "listener 1883 0.0.0.0\nallow_anonymous true\nuser root\nlog_dest stdout\n"
    return program(
        "mosquitto", shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", "m.conf", role="broker",
        files=(File("m.conf", text),), ready=Probe(tcp_port=1883),
    )  # fmt: skip


def client(index: int, count: int, ramp_ns: int, hold_ns: int, qos: int = 1) -> Software:
    """Publishes to meter/N; the first also subscribes to all."""
    publish = Publish(
        f"meter/{index}",
        qos,
        "metering-xml",
        717,
        Schedule("own", 20.0, 7 + index, index, count),
        0,
        ramp_ns + hold_ns,
    )
    subscribe = (Subscribe("meter/#", qos),) if index == 0 else ()
    end = ramp_ns + hold_ns + 2 * SECOND
    mqtt = Mqtt(
        "10.9.0.1",
        1883,
        "3.1.1",
        f"client{index}",
        index * 20 * MS,
        end,
        30,
        True,
        publish,
        subscribe,
        SECOND,
    )
    return Software("meter", "client", mqtt=mqtt)


def access(lab: str, name: str, of: Node, forward: Impairment, reverse: Impairment) -> Link:
    card, core = of.interfaces[0], f"vnet-{lab}"
    return Link(
        name, of.name, "lan", "access",
        Direction(forward, of.netns, card.name, core, card.port),
        Direction(reverse, core, card.port, of.netns, card.name),
    )  # fmt: skip


def make_plan(
    lab: str, nodes: tuple[Node, ...], links: tuple[Link, ...] = (), events: tuple[Event, ...] = (),
    ramp_ns: int = 200 * MS, hold_ns: int = 500 * MS, capture: bool = False, **more: object,
) -> Plan:  # fmt: skip
    segment = Segment("lan", "br-lan", "10.9.0.0/24", 1500)
    cards = {n.name: n.interfaces for n in nodes}
    machines = {n.name for n in nodes if n.vm is not None}
    steps = network_steps(lab, [segment], cards, links, machines) + impair_steps(lab, links)
    captures = (Capture("point", "node", f"vnet-{lab}", nodes[0].name, 256, "", True),) if capture else ()
    plan = Plan(
        lab, f"vnet-{lab}", 1, "hand-made.yaml", {}, None, None, (segment,), nodes, links, captures, events,
        ramp_ns, hold_ns, 2 * SECOND, steps, (),
    )  # fmt: skip
    return dataclasses.replace(plan, **more)  # type: ignore[arg-type]


def mqtt_plan(lab: str, clients: int = 3, **more: object) -> Plan:
    """A broker and some clients."""
    ramp, hold = 200 * MS, int(str(more.pop("hold_ns", 1000 * MS)))
    nodes = [node(lab, 0, "broker", (broker(),))]
    nodes += [node(lab, i + 1, f"client{i}", (client(i, clients, ramp, hold),)) for i in range(clients)]
    return make_plan(lab, tuple(nodes), ramp_ns=ramp, hold_ns=hold, capture=True, **more)  # type: ignore[arg-type]
