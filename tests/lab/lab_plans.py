"""Makes small plans for the lab's tests directly from the plan's types."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

from contract.plan import (
    Capture,
    Delivery,
    Direction,
    Event,
    Flow,
    Guarantee,
    Host,
    Impairment,
    Interface,
    Link,
    Node,
    Payload,
    Plan,
    Probe,
    Process,
    Rate,
    Segment,
    Session,
    Software,
    Vm,
)  # fmt: skip
from contract.plan.flows import Schedule
from orchestrator.plan import vms
from orchestrator.plan.steps import impair_steps, network_steps

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "target" / "release" / "vnet-agent"
MS, SECOND = 10**6, 10**9


def own(name: str) -> str:
    """Returns the name with this process's number, so that two runs of the tests on one machine do not
    collide.
    """
    return f"{name}-{os.getpid()}"


def node(lab: str, index: int, name: str, software: tuple[Software, ...] = (), **more: object) -> Node:
    card = Interface("eth0", name, "lan", f"10.9.0.{index + 1}", 24, f"02:00:0a:09:00:{index + 1:02x}", 1500)
    return Node(
        name, name.rstrip("0123456789"), "light", name, f"vnet-{lab}.{name}", f"vnet/{lab}/{name}", (card,),
        software, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def machine(of: Node, image: str = "builtin", memory_mib: int = 0) -> Node:
    """Returns the node as a virtual machine."""
    memory_bytes = memory_mib << 20 or vms.memory(image)
    return dataclasses.replace(of, kind="vm", vm=Vm(image, memory_bytes, boot_deadline_ns=240 * SECOND))


def program(name: str, *argv: str, role: str = "utility", **more: object) -> Software:
    kind = "mosquitto" if role == "broker" else "command"
    return Software(name, role, kind, Process(argv, **more))  # type: ignore[arg-type]


def broker() -> Software:
    """Returns a real mosquitto that listens on all addresses of its node."""
    from contract.plan import File

    text = "listener 1883 0.0.0.0\nallow_anonymous true\nuser root\nlog_dest stdout\n"
    return program(
        "mosquitto", shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", "m.conf", role="broker",
        files=(File("m.conf", text),), ready=Probe(tcp_port=1883),
    )  # fmt: skip


GUARANTEE = Guarantee("QoS 1", "at least once, so no message is lost", lossless=True, while_session=True)


def client(index: int, ramp_ns: int, hold_ns: int, qos: int = 1) -> Software:
    """Returns a client that publishes to meter/INDEX; the first one also subscribes to all meters."""
    spec = {
        "broker": "10.9.0.1", "port": 1883, "version": "3.1.1", "keepalive_s": 30, "clean_session": True,
        "publish": {"topic": f"meter/{index}", "qos": qos, "inflight": 20, "queue": 1000},
        "subscribe": [{"topic": "meter/#", "qos": qos}] if index == 0 else [], "reconnect_ns": SECOND,
    }  # fmt: skip
    end_ns = ramp_ns + hold_ns + 2 * SECOND
    session = Session(f"client{index}", index * 20 * MS, end_ns, patience_ns=45 * SECOND)
    return Software("meter", "client", "mqtt", session=session, spec=spec, ports={"mqtt": (1883,)})


def meter(index: int, stop_ns: int) -> Flow:
    """Returns the flow of a client: 20 messages a second to the first client."""
    return Flow(
        f"client{index}.meter", "client.meter", "publish", f"client{index}", (Delivery("first", GUARANTEE),),
        Payload("metering-xml", 717), Schedule("own", (Rate(0, 20.0),), 7 + index), 0, stop_ns,
        topic=f"meter/{index}",
    )  # fmt: skip


def on_host(plan: Plan, host: str) -> Plan:
    """Returns the plan with all its nodes on a single host."""

    def there(way: Direction) -> Direction:
        return dataclasses.replace(way, host=host, far_host=host)

    ways = ((li, there(li.forward), there(li.reverse)) for li in plan.links)
    return dataclasses.replace(
        plan, hosts=(Host(host),), nodes=tuple(dataclasses.replace(n, host=host) for n in plan.nodes),
        links=tuple(dataclasses.replace(li, forward=there, reverse=back) for li, there, back in ways),
        steps=tuple(dataclasses.replace(step, host=host) for step in plan.steps),
        captures=tuple(dataclasses.replace(point, host=host) for point in plan.captures),
    )  # fmt: skip


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
    """Returns a plan of a broker and some clients."""
    ramp, hold = 200 * MS, int(str(more.pop("hold_ns", 1000 * MS)))
    nodes = [node(lab, 0, "broker", (broker(),))]
    nodes += [node(lab, i + 1, f"client{i}", (client(i, ramp, hold),)) for i in range(clients)]
    flows = tuple(meter(i, ramp + hold) for i in range(clients))
    owed: dict[str, object] = {"flows": flows, "receivers": {"first": ("client0",)}}
    lengths: dict[str, object] = {"ramp_ns": ramp, "hold_ns": hold}
    return make_plan(lab, tuple(nodes), capture=True, **lengths, **owed, **more)  # type: ignore[arg-type]
