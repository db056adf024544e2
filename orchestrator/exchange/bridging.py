"""Turns bridges that imported machines contain into LANs of the network; a machine that is only a bridge
becomes that LAN.
"""

from __future__ import annotations

from .network import Bridge, End, Lan, Machine, Network, Wire, name_of


def bridged(network: Network) -> None:
    """Turns each bridge that has a port on a network into a LAN, which takes the places of these ports.
    Removes a machine that is only that bridge; else the machine becomes a member of the LAN. Reports as left
    out the bridge ports that are on no network, and the addresses of the others.
    """
    for machine in list(network.machines.values()):
        for name, bridge in machine.bridges.items():
            ports = [port for port in bridge.ports if _used(network, (machine.name, port))]
            unused = [port for port in bridge.ports if port not in ports]
            network.left += [
                f"{machine.name}: {port} of {name} is on no network of the lab" for port in unused
            ]
            if ports:
                _segment(network, machine, name, bridge, ports)


def _used(network: Network, end: End) -> bool:
    return any(end in wire.ends for wire in network.wires) or any(
        end in lan.members for lan in network.lans.values()
    )


def _segment(network: Network, machine: Machine, name: str, bridge: Bridge, ports: list[str]) -> None:
    alone = _only_bridge(network, machine, name, ports)
    taken = {*network.machines, *network.lans}
    lan_name = machine.name if alone else name_of(f"{machine.name}-{name}", taken)
    if alone:
        del network.machines[machine.name]
        network.changed.append(f"{machine.name} is nothing but a bridge ({name}): a segment here")
    else:
        network.changed.append(f"{name} of {machine.name} is the segment {lan_name} here")
    if bridge.state == "new":
        network.changed.append(f"{machine.name}: {name} is never set up in the file: it forwards here")
    elif bridge.state == "down":
        network.changed.append(f"{machine.name}: {name} is off: the links of its ports are down here")
    lan = network.lans[lan_name] = Lan(lan_name, stp=bridge.stp, origin=machine.origin)
    for port in ports:
        for address in machine.addresses.pop(port, []):
            network.left.append(f"{machine.name}: the address {address} of {port}, a port of {name}")
        _plug(network, (machine.name, port), lan)
    if bridge.state == "down":
        _off(network, lan)
    if not alone:
        lan.members.append((machine.name, name))


def _off(network: Network, lan: Lan) -> None:
    """Takes down the link of each member of the LAN, and each link to another LAN; adds a link for a member
    that has none.
    """
    for end in lan.members:
        if not any(end in line.ends for line in network.lines):
            network.lines.append(Wire((end, (lan.name, "")), origin=lan.origin))
    for line in network.lines:
        line.down = line.down or any(node == lan.name for node, _ in line.ends)


def _only_bridge(network: Network, machine: Machine, name: str, ports: list[str]) -> bool:
    """Returns whether the machine is only this bridge: the bridge has no address, the machine has no kind,
    software or keys, and none of its interfaces but `ports` is on a wire or LAN.
    """
    if machine.addresses.get(name) or machine.kind or machine.software or machine.keys:
        return False
    ends = [end for wire in network.wires for end in wire.ends]
    ends += [end for lan in network.lans.values() for end in lan.members]
    return all(port in ports for node, port in ends if node == machine.name)


def _plug(network: Network, end: End, lan: Lan) -> None:
    """Joins the LAN to every wire and LAN that the port `end` was on, in place of the port. Lowers the LAN's
    MTU to that of such a wire.
    """
    for wire in [one for one in network.wires if end in one.ends]:
        network.wires.remove(wire)
        ends = tuple((lan.name, "") if one == end else one for one in wire.ends)
        if wire.mtu:
            lan.mtu = min(wire.mtu, lan.mtu or wire.mtu)
        network.join(Wire((ends[0], ends[1]), None, wire.impairments, wire.down, origin=wire.origin))
    for other in network.lans.values():
        if end in other.members:
            other.members.remove(end)
            line = next((one for one in network.lines if end in one.ends), None)
            if line is None:
                line = Wire((end, (other.name, "")), origin=other.origin)
                network.lines.append(line)
            ends = tuple((lan.name, "") if one == end else one for one in line.ends)
            line.ends = (ends[0], ends[1])
