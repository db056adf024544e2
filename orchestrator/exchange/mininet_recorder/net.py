"""Replaces Mininet's class Mininet: records the nodes and links that the script adds, changes and deletes."""

from __future__ import annotations

import copy
import functools
import ipaddress
from typing import Any

from .cli import CLI
from .functions import natural
from .interfaces import IMPAIRMENTS, Intf, Link, TCIntf, TCLink
from .named import Named
from .nodes import CPULimitedHost, Node
from .said import CHANGED, LEFT, STOPPED, call_text, change, here, later, leave, pause
from .stubs import LEARNING, Stub, controller_name, quiet, silent, tested
from .switches import SWITCH_QUIET, Bridge, Stp, Switch
from .topologies import Topo
from .unknown import unknown

NETS: list[Net] = []
STOP_AT_START = [False]
# Keywords of the constructor that have no effect on a network of vNET.
QUIET_KEYS = frozenset((
    "switch", "controller", "host", "link", "intf", "build", "xterms", "cleanup", "listenPort",
    "waitConnected",
))  # fmt: skip


class BuiltError(BaseException):
    """Ends the script when its network has started, with --stop-at-start; scripts that catch Exception do not
    catch it.
    """


class Net(Named):
    """Records the network of a script, with the methods of Mininet's class Mininet. Methods without effect on
    the network do nothing; tests such as ping and iperf are reported as left out.
    """

    KEPT = frozenset({"terms"})

    def __init__(self, topo: Any = None, switch: Any = None, host: Any = None, controller: Any = ...,
                 link: Any = None, intf: Any = None, build: bool = True, ipBase: str = "10.0.0.0/8",
                 **keys: Any) -> None:  # fmt: skip
        self.nameToNode = {}
        self.wires: list[Link] = []
        self.hosts: list[Node] = []
        self.switches: list[Node] = []
        self.controllers: list[Any] = []
        self.terms: list[Any] = []
        self.topo = topo
        # done as in Mininet's netParse
        start = ipaddress.ip_interface(ipBase if "/" in ipBase else f"{ipBase}/24")
        self.base = start.network
        self.next = int(start.ip) - int(start.network.network_address) or 1
        # Mininet adds its controller only to the nodes of a Topo.
        self.controlled = topo is not None and bool(controller)
        if self.controlled and (name := controller_name(controller)) not in LEARNING:
            leave(f"controller {name}")
        self.classes = {"host": host, "switch": switch, "link": link, "intf": intf}
        self.custom = False  # `mn --custom` builds the network itself
        self.built = False
        for key in sorted(key for key in keys.keys() - QUIET_KEYS if keys[key] not in (False, None)):
            leave(f"Mininet({key}={keys[key]!s:.40}) has no counterpart")
        NETS.append(self)
        if topo is not None and build:
            self.build()

    def __str__(self) -> str:
        return "net"

    def buildFromTopo(self, topo: Any = None) -> None:
        """Adds the hosts of the topology (a Topo or its class), sorted by name, then its switches and links
        in the order of the script.
        """
        if isinstance(topo, type) and issubclass(topo, Topo):
            topo = topo()
        steps = list(getattr(topo, "steps", []))
        for kind in ("addHost", "addSwitch", "addLink"):
            some = [one for one in steps if one[0] == kind]
            # Mininet adds hosts in natural order of their names, which determines their addresses.
            for step, args, params, line in (
                sorted(some, key=lambda one: natural(one[1][0])) if kind == "addHost" else some
            ):
                made = getattr(self, step)(*args, **params)
                made.__dict__["line"] = line

    def addHost(self, name: str, cls: Any = None, **params: Any) -> Node:
        """Adds a host, with the next address of the network's range unless `params` has `ip`; returns it.
        Reports a `cpu` share on a host that is no CPULimitedHost.
        """
        params.setdefault("ip", f"{self.base[self.next]}/{self.base.prefixlen}")
        self.next += 1
        node = self._node(name, cls or self.classes["host"], Node, params)
        if not isinstance(node, CPULimitedHost) and params.get("cpu"):
            leave(f"{name}: cpu={params['cpu']} is without effect on a host that is no CPULimitedHost")
        self.hosts.append(node)
        return node

    def addSwitch(self, name: str, cls: Any = None, **params: Any) -> Node:
        """Adds a switch and returns it; reports parameters without a counterpart."""
        node = self._node(name, cls or self.classes["switch"], Switch, params)
        for key in sorted(params.keys() - SWITCH_QUIET - {"stp"}):
            leave(f"{name}: {key}={params[key]!s:.40} has no counterpart")
        self.switches.append(node)
        return node

    def addNode(self, name: str, **params: Any) -> Node:
        """Adds a host, as Mininet's addNode does."""
        return self.addHost(name, **params)

    def _node(self, name: str, cls: Any, default: type[Node], params: dict[str, Any]) -> Node:
        given = dict(cls.keywords) if isinstance(cls, functools.partial) else {}
        made = cls.func if isinstance(cls, functools.partial) else cls
        while isinstance(made, functools.partial):
            given, made = {**made.keywords, **given}, made.func
        if isinstance(made, type) and issubclass(made, Node):
            node = made(name, **{**given, **params})
        else:
            if made is not None:
                shown = getattr(made, "__name__", str(made) or "a class")
                leave(f"{name}: its class {shown} is not known: a plain {default.__name__.lower()}")
            node = default(name, **{**given, **params})
        node.__dict__["params"] = {**given, **node.params, **params}
        self.nameToNode[name] = node
        return node

    def addController(self, name: Any = "c0", *_args: Any, **_params: Any) -> Stub:
        """Reports a controller as left out, since the lab's bridges learn by themselves; returns a stub."""
        self.__dict__["controlled"] = True
        leave(f"controller {name if isinstance(name, str) else getattr(name, '__name__', 'c0')}")
        return Stub("controller", True)

    def addNAT(self, name: str = "nat0", connect: Any = True, **_params: Any) -> Stub:
        """Reports a NAT as left out; it takes an address, as in Mininet. Returns a stub."""
        self.next += 1
        leave(f"NAT {name}: a lab is joined to no other network")
        return Stub("NAT", True)

    def addLink(self, node1: Any, node2: Any, port1: Any = None, port2: Any = None, cls: Any = None,
                **params: Any) -> Link:  # fmt: skip
        """Adds a link between two nodes, given by object or name, with one new interface at each, and returns
        it. Bandwidth, delay and loss have effect only if the link or the interface class has traffic control.
        """
        ends = [node if isinstance(node, Node) else self.nameToNode[str(node)] for node in (node1, node2)]
        kind = cls or self.classes["link"]
        while isinstance(kind, functools.partial):
            params, kind = {**kind.keywords, **params}, kind.func
        both = {
            key: value for key, value in params.items() if not key.startswith(("intfName", "params", "cls"))
        }
        counts = isinstance(kind, type) and issubclass(kind, TCLink)
        interfaces = []
        for number, (end, port) in enumerate(zip(ends, (port1, port2), strict=True), 1):
            own = {**(params.get(f"params{number}") or {}), **both}  # those of both ends count, as there
            port = own.pop("port", None) if port is None else port
            given = params.get(f"cls{number}") or own.pop("intf", None) or self.classes["intf"]
            while isinstance(given, functools.partial):
                own, given = {**given.keywords, **own}, given.func
            tc = counts or (isinstance(given, type) and issubclass(given, TCIntf)) or self._as_mn(own)
            plain: type[Intf] = TCIntf if tc else Intf
            kept = given if isinstance(given, type) and issubclass(given, plain) else plain
            intf = end.plug(params.get(f"intfName{number}"), port, kept, own)
            interfaces.append(intf)
            intf.shape({})  # the impairments of an earlier interface with this name are gone
            intf.config(**own)
        if isinstance(kind, type) and kind.__name__ not in (
            "TCLink",
            "Link",
            "OVSLink",
            "TCULink",
            "PlainLink",
        ):
            leave(f"the link's class {kind.__name__} is taken as its base, with what it is given")
        link = Link(interfaces[0], interfaces[1], here(), self)
        for intf in interfaces:
            intf.__dict__["link"] = link
        self.wires.append(link)
        return link

    def _as_mn(self, own: dict[str, Any]) -> bool:
        """Returns whether this link has impairments as with `mn --link tc`, and reports it: the script offers
        its topology to `mn --custom`, and the link's parameters `own` state an impairment.
        """
        wanted = self.custom and any(own.get(key) for key in IMPAIRMENTS)
        if wanted:
            change("bandwidth, delay and the like count, as with `mn --link tc`")
        return wanted

    def drop(self, link: Link) -> None:
        """Removes a link from the network and its interfaces from the nodes, which keep them in `known`. Does
        nothing for a link that is not in the network.
        """
        if link in self.wires:
            later(f"{link} is taken away")
            self.wires.remove(link)
            for intf in (link.intf1, link.intf2):
                if intf in intf.node.interfaces:
                    intf.node.interfaces.remove(intf)
                    intf.node.__dict__.setdefault("gone", []).append(intf)

    def delLink(self, link: Link) -> None:
        """Removes a link from the network and its interfaces from the nodes."""
        self.drop(link)

    def delLinkBetween(self, node1: Any, node2: Any, index: Any = 0, allLinks: bool = False) -> Any:
        """Removes the link number `index` between two nodes and returns it, or removes all of them and
        returns the list; IndexError if there is none at `index`.
        """
        found = self.linksBetween(node1, node2)
        gone = found if allLinks else [found[index]]
        for link in gone:
            self.drop(link)
        return gone if allLinks else gone[0]

    def linksBetween(self, node1: Any, node2: Any) -> list[Link]:
        """Returns the links between two nodes, given by object or name in either order."""
        wanted = {str(node1), str(node2)}
        return [link for link in self.wires if {link.intf1.node.name, link.intf2.node.name} == wanted]

    def delNode(self, node: Any, nodes: Any = None) -> bool:
        """Removes a node, given by object or name, with its links; returns False if there is no such node."""
        name = str(node)
        if self.nameToNode.pop(name, None) is None:
            return False
        for link in [one for one in self.wires if name in (one.intf1.node.name, one.intf2.node.name)]:
            self.drop(link)
        self.hosts[:] = [one for one in self.hosts if one.name != name]
        self.switches[:] = [one for one in self.switches if one.name != name]
        return True

    delHost = delSwitch = delNode
    delController = quiet(True)

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Records the links between two nodes as down if `status` is `down`, else as up; reports a missing
        link.
        """
        found = self.linksBetween(src, dst)
        if not found:
            leave(f"{call_text('configLinkStatus', (src, dst, status), {})}: there is no such link")
            return
        later(call_text("configLinkStatus", (src, dst, status), {}))
        for link in found:
            link.__dict__["down"] = status == "down"

    @property
    def links(self) -> list[Link]:
        """The links of the network."""
        return list(self.wires)

    def build(self) -> None:
        """Adds the nodes and links of the topology, if one was given, and calls `config` of each host; does
        nothing the second time. Reports a host's MAC, which the plan sets.
        """
        if self.built:
            return
        self.built = True
        if self.topo is not None:
            self.buildFromTopo(self.topo)
        for host in self.hosts:
            host.__dict__["configured"] = [intf.name for intf in host.defaults]
            host.config(**host.params)
            if host.params.get("mac"):
                leave(f"{host.name}: the MAC {host.params['mac']} is the plan's here")

    def start(self) -> None:
        """Builds the network, and starts its switches by their `start`, which scripts replace. With
        --stop-at-start, then ends the script by BuiltError, if the script itself called.
        """
        self.build()
        self.__dict__["final"] = None
        STOPPED[0] = False
        for switch in self.switches:
            switch.start(self.controllers)
        if STOP_AT_START[0] and here():
            leave("the script is stopped here (--stop-at-start): what comes after is not taken over")
            raise BuiltError

    def run(self, test: Any, *args: Any, **keys: Any) -> Any:
        """Starts the network, calls the function `test` with the other arguments and returns its result."""
        self.start()
        return test(*args, **keys)

    def stop(self) -> None:
        """Keeps the network as it is now, until it starts again: what follows has no effect."""
        self.__dict__["final"] = copy.deepcopy(self.recorded())
        STOPPED[0] = True

    def interact(self) -> Any:
        """Starts the network, follows Mininet's command line, and stops the network."""
        self.start()
        made = CLI(self)
        self.stop()
        return made

    def waitConnected(self, *_words: Any, **_keys: Any) -> Any:
        """Lets time pass; whether the switches are connected is not known: true."""
        pause()
        return unknown(True, "waitConnected")

    init = staticmethod(lambda: None)
    stopXterms = startTerms = configHosts = configureControlNetwork = quiet()
    staticArp = silent("staticArp")
    pingAll = tested("pingAll", 0.0)
    ping = tested("ping", 0.0)
    pingPair = tested("pingPair", 0.0)
    pingFull = tested("pingFull", [])
    pingAllFull = tested("pingAllFull", [])
    pingPairFull = tested("pingPairFull", [])
    iperf = tested("iperf", ["0 bits/sec", "0 bits/sec"])
    runCpuLimitTest = tested("runCpuLimitTest", [])
    monitor = tested("monitor", [])
    randMac = quiet("00:00:00:00:00:01")

    def recorded(self) -> dict[str, Any]:
        """Returns hosts, switches and links as data for JSON; omits and reports links to nodes outside of the
        network. After `stop`, those of that moment.
        """
        if self.__dict__.get("final") is not None:
            done: dict[str, Any] = self.__dict__["final"]
            return done
        self._uncontrolled()
        # Nodes that the script takes out of these lists run on in Mininet.
        listed = {one.name for one in (*self.hosts, *self.switches)}
        others = [one for one in self.nameToNode.values() if one.name not in listed]
        self.hosts += [one for one in others if not isinstance(one, Switch)]
        self.switches += [one for one in others if isinstance(one, Switch)]
        return {
            "hosts": [self._host(host) for host in self.hosts],
            "switches": [
                {
                    "name": one.name, "commands": one.commands, "line": one.line, "plumbing": one.plumbing,
                    "stp": bool(one.params.get("stp")) and isinstance(one, Stp),
                }
                for one in self.switches
            ],
            "links": [self._link(link) for link in self.wires if self._inside(link)],
        }  # fmt: skip

    def _uncontrolled(self) -> None:
        """Reports switches that in Mininet forward only by installed flows, since they have no controller:
        all but bridges and those with failMode='standalone'.
        """
        names = [
            one.name
            for one in self.switches
            if not isinstance(one, Bridge) and one.params.get("failMode") != "standalone"
        ]
        if names and not self.controlled and not self.custom:
            said = "without a controller Mininet's switch forwards only what its flows say; it learns here"
            CHANGED.append(f"{', '.join(names):.100}: {said}")

    def _inside(self, link: Link) -> bool:
        """Returns whether both ends of a link are nodes of the network; reports a link that is left out."""
        outside = [end.node.name for end in (link.intf1, link.intf2) if end.node.name not in self.nameToNode]
        if outside:
            LEFT.append(f"line {link.line}: a link to {outside[0]}, which is outside of the network")
        return not outside

    def _host(self, host: Node) -> dict[str, Any]:
        ip = host.params.get("ip")
        first = [intf.name for intf in host.defaults]
        if self.built:  # Mininet gives addresses to the interfaces that exist when it builds the network
            first = host.__dict__.get("configured", [])
            if ip and not first and host.interfaces:
                CHANGED.append(f"{host.name}: joined after the network was built: no address, as there")
        addresses = dict.fromkeys(first, ip if "/" in ip else f"{ip}/8") if ip else {}
        share = getattr(host, "share", None) if isinstance(host, CPULimitedHost) else None
        return {
            "name": host.name, "addresses": addresses, "commands": host.commands, "line": host.line,
            "cpu": share,
        }  # fmt: skip

    @staticmethod
    def _link(link: Link) -> dict[str, Any]:
        ends = (link.intf1, link.intf2)
        return {
            "ends": [[end.node.name, end.name] for end in ends], "down": link.down, "line": link.line,
        }  # fmt: skip
