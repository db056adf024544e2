"""Moves the settings of machines' interfaces to the links: queues, frame sizes, interfaces that are down."""

from __future__ import annotations

from typing import Any

from .network import End, Lan, Machine, Network, Wire


def settle(network: Network) -> None:
    """Moves queues, MTUs and "down" states of machines' interfaces to their links, and clears them on the
    machines. Reports in `network.left` those of interfaces on no network, and MTUs on a LAN; those of
    bridges too; ignores those of `lo`, and states of bridges.
    """
    for machine in network.machines.values():
        for port, queue in machine.queues.items():
            _queue(network, machine, port, queue)
        for port, mtu in machine.mtus.items():
            _mtu(network, machine, port, mtu)
        for port in sorted(machine.down):
            _down(network, machine, port)
        machine.queues, machine.mtus, machine.down = {}, {}, set()


def unplaced(network: Network) -> None:
    """Removes addresses of interfaces that are on no network, and reports in `network.left` each of them and
    each interface on no network that a machine makes itself.
    """
    for machine in network.machines.values():
        for port in [port for port in machine.addresses if not _is_used(network, (machine.name, port))]:
            what = f"{port} ({machine.made[port]})" if port in machine.made else port
            for address in machine.addresses.pop(port):
                network.left.append(
                    f"{machine.name}: the address {address} of {what}, which is on no network of the lab"
                )
        for port, what in machine.made.items():
            if not _is_used(network, (machine.name, port)):
                network.left.append(f"{machine.name}: {port}, {what}")


def _is_used(network: Network, end: End) -> bool:
    return _wire(network, end) is not None or _lan(network, end) is not None


def _wire(network: Network, end: End) -> Wire | None:
    return next((wire for wire in network.wires if end in wire.ends), None)


def _lan(network: Network, end: End) -> Lan | None:
    return next((lan for lan in network.lans.values() if end in lan.members), None)


def _line(network: Network, end: End, lan: Lan) -> Wire:
    """Returns the link in `network.lines` from a machine's interface to a LAN; adds one if there is none."""
    for line in network.lines:
        if end in line.ends and any(node == lan.name for node, _ in line.ends):
            return line
    made = Wire((end, (lan.name, "")), origin=lan.origin)
    network.lines.append(made)
    return made


def _place(network: Network, end: End) -> Wire | None:
    """Returns the wire of an interface, or its own link to a LAN, which it adds if there is none; None if the
    interface is on no network.
    """
    if (wire := _wire(network, end)) is not None:
        return wire
    lan = _lan(network, end)
    return None if lan is None else _line(network, end, lan)


def _queue(network: Network, machine: Machine, port: str, queue: dict[str, Any]) -> None:
    end = (machine.name, port)
    if (wire := _place(network, end)) is None:
        network.left.append(f"{machine.name}: what `tc` does at {port}, which is on no network of the lab")
        return
    both = wire.impairments.pop("both", None)
    if both:
        wire.impairments |= {"forward": dict(both), "reverse": dict(both)}
    side = "forward" if wire.ends[0] == end else "reverse"
    wire.impairments[side] = {**wire.impairments.get(side, {}), **queue}
    if wire.impairments.get("forward") == wire.impairments.get("reverse"):
        wire.impairments = {"both": wire.impairments["forward"]}


def _mtu(network: Network, machine: Machine, port: str, mtu: int) -> None:
    end = (machine.name, port)
    if (wire := _wire(network, end)) is not None:
        other = next((one for one in wire.ends if one != end), end)
        far = network.machines[other[0]].mtus.get(other[1]) if other[0] in network.machines else None
        wire.mtu = min(mtu, wire.mtu or mtu)
        if far != mtu:
            network.changed.append(
                f"{machine.name}: the MTU {mtu} of {port} is of both ends of its link here"
            )
    elif (lan := _lan(network, end)) is not None:
        network.left.append(f"{machine.name}: the MTU {mtu} of {port} on {lan.name}")
    elif port in machine.bridges:
        said = "the bridge's own, which applies to its own frames only"
        network.left.append(f"{machine.name}: the MTU {mtu} of {port}, {said}")
    elif port != "lo":
        network.left.append(f"{machine.name}: the MTU {mtu} of {port}, which is on no network of the lab")


def _down(network: Network, machine: Machine, port: str) -> None:
    if port in machine.bridges or port == "lo":
        return
    if (wire := _place(network, (machine.name, port))) is not None:
        wire.down = True
    else:
        network.left.append(f"{machine.name}: {port} is off, and on no network of the lab")
