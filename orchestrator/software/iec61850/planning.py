"""Plans IEC 61850 publishers and subscribers: their interfaces, and the settings of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract.plan import Delivery, Flow, Guarantee, Interface, Session, Software

from ..kind import Ledger, Planned, SoftwareError
from ..scene import Placed, Scene
from .file import Published, options_of


@dataclass(frozen=True, slots=True)
class Form:
    """The functions of one protocol that build streams, settings and flows from the options of `publish`."""

    guarantee: Guarantee
    stream: Callable[[Scene, Placed, Any], dict[str, Any]]  # the settings that both sides need
    # all settings of the stream's publisher
    publish: Callable[[Scene, Placed, Any, Interface], dict[str, Any]]
    heard: Callable[[Placed, Flow], dict[str, Any]]  # the settings that only subscribers need
    flow: Callable[[Scene, Placed, Any, tuple[Delivery, ...]], Flow]


def plan(scene: Scene, all_of_it: Sequence[Placed], form: Form) -> Iterator[Planned]:
    """Plans all software of one protocol; raises SoftwareError if a frame does not fit."""
    heard = _receivers(scene, all_of_it)
    for placed in all_of_it:
        options = options_of(placed.model, placed.kind)
        if (wanted := options.publish) is None:
            streams = [_heard(scene, placed, one, form) for one in _publishers(scene, placed)]
            yield Planned(_software(scene, placed, {"publish": None, "subscribe": streams}))
            continue
        publish = form.publish(scene, placed, wanted, _interface(scene, placed, wanted))
        to = heard.get((placed.node, placed.name), ())
        receivers = {f"subscribers of {placed.endpoint}": to} if to else {}
        flow = form.flow(scene, placed, wanted, tuple(Delivery(one, form.guarantee) for one in receivers))
        spec = {"publish": publish, "subscribe": []}
        yield Planned(_software(scene, placed, spec), (flow,), receivers)


def _heard(scene: Scene, placed: Placed, other: Placed, form: Form) -> dict[str, Any]:
    """Returns the settings of a subscribed stream; `flow` holds the flow's name until flows have numbers."""
    wanted = options_of(other.model, other.kind).publish
    flow = form.flow(scene, other, wanted, ())
    return {
        **form.stream(scene, other, wanted),
        "flow": flow.name,
        **form.heard(other, flow),
        "interface": _receiving(scene, placed.node, _interface(scene, other, wanted), wanted),
    }


def numbered(software: Software, ledger: Ledger) -> Software:
    """Returns the software with the numbers of the flows that it subscribes to in place of their names."""
    streams = [{**stream, "flow": ledger.numbers[stream["flow"]]} for stream in software.spec["subscribe"]]
    return replace(software, spec={**software.spec, "subscribe": streams})


def _software(scene: Scene, placed: Placed, spec: dict[str, Any]) -> Software:
    """Returns the software with its session: a publisher's begins at its turn in the ramp, a subscriber's
    at the start.
    """
    if spec["publish"] is None:
        session = Session(placed.endpoint, 0, scene.end_ns, listens=True)
        return Software(placed.name, "server", placed.kind, session=session, spec=spec)
    session = Session(placed.endpoint, placed.connect_ns, scene.end_ns)
    return Software(placed.name, "client", placed.kind, session=session, spec=spec)


def _interface(scene: Scene, placed: Placed, wanted: Published) -> Interface:
    """Returns the interface through which a publisher sends: the one on its segment, or its first one."""
    cards = scene.interfaces[placed.node]
    return next(card for card in cards if wanted.segment in (None, card.segment))


def check_mtu(card: Interface, node: str, length: int) -> None:
    """Raises SoftwareError if the frame exceeds the interface's own MTU."""
    if length > card.mtu:
        rule = f"frames of {length} bytes above Ethernet do not fit the MTU of {card.name}, {card.mtu} bytes"
        raise SoftwareError(node, rule, "write a larger `mtu:`, or less in a frame")


def _receiving(scene: Scene, node: str, sent_on: Interface, wanted: Published) -> str:
    """Returns the name of the interface through which a node receives a publisher; it is the VLAN device if
    the frames have its tag.
    """
    subnet = scene.subnets[sent_on.segment]
    card = next(one for one in scene.interfaces[node] if scene.subnets[one.segment] == subnet)
    tagged = wanted.vlan and card.name == f"{card.device}.{wanted.vlan}"
    return card.name if tagged else card.device


def _publishers(scene: Scene, placed: Placed) -> Iterator[Placed]:
    """Yields the publishers to which `placed` subscribes, each once; yields nothing if `placed` is a
    publisher.
    """
    names = options_of(placed.model, placed.kind).subscribe or ()
    for node in dict.fromkeys(node for name in names for node in scene.machines(name)):
        for other in scene.at(node, placed.kind):
            if options_of(other.model, placed.kind).publish is not None:
                yield other


def _receivers(scene: Scene, all_of_it: Sequence[Placed]) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Returns the endpoints of the subscribers of each publisher, by its node and software name."""
    found: dict[tuple[str, str], list[str]] = {}
    for placed in all_of_it:
        for other in _publishers(scene, placed):
            found.setdefault((other.node, other.name), []).append(placed.endpoint)
    return {key: tuple(names) for key, names in found.items()}


def destination(wanted: Published) -> dict[str, Any]:
    """Returns the destination of a publisher's frames in the agent's settings: group address, APPID and VLAN
    tag, which is None without `vlan` and has priority 4 without `pcp`.
    """
    group = [int(part, 16) for part in wanted.destination.split("-")]
    tag = None if wanted.vlan is None else [wanted.vlan, 4 if wanted.pcp is None else wanted.pcp]
    return {"group": group, "appid": wanted.appid, "tag": tag}
