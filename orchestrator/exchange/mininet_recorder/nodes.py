"""Replaces Mininet's hosts, switches, interfaces and links; records each change with its line of the
script.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from .said import call_text, change, here, later, leave, pause
from .stubs import Recorded, answered, quiet, silent
from .unknown import unknown
from .waiting import passed

IMPAIRMENTS = ("bw", "delay", "jitter", "loss", "max_queue_size")  # parameters of TCIntf that are imported
# Keys of a Mininet host that the import converts, or may drop without a report: names of programs and places.
HOST_KEYS = frozenset(["ip", "mac", "defaultRoute", "cpu", "cls", "inNamespace"])
WITHOUT_EFFECT = frozenset(["inNamespace", "isSwitch", "isController", "xterm", "hostname"])
SWITCH_QUIET = frozenset((
    "dpid", "listenPort", "protocols", "failMode", "datapath", "inband", "reconnectms", "opts", "verbose",
    "batch", "ip",
))  # fmt: skip


# Commands that change the network, unless they have a word of SHOWN.
PLUMBING = frozenset(["ip", "ifconfig", "route", "tc", "brctl", "ovs-vsctl"])
# Commands during which time passes.
LASTING = frozenset(
    ["sleep", "ping", "ping6", "iperf", "iperf3", "netperf", "wget", "curl", "traceroute", "wait"]
)
_SLEEP = re.compile(r"sleep (\d+(?:\.\d+)?)s?")
_ORDER = itertools.count()
SHOWN = frozenset(["show", "list", "get", "-a", "-n", "-s", "ls"])


class Intf(Recorded):
    """One end of a link, with the methods of Mininet's class Intf; bandwidth, delay and loss have no effect
    on it.
    """

    def __init__(
        self, name: Any = "", node: Any = None, port: Any = None, link: Any = None, **params: Any
    ) -> None:
        self.name, self.node, self.port, self.link, self.params = str(name), node, port, link, params
        self.up = True
        if link is None and node is not None and here():
            leave(f"Intf({self.name!r}): an interface of the machine, which is outside of the lab")

    def __str__(self) -> str:
        return self.name

    def config(self, **params: Any) -> dict[str, Any]:
        """Sets the impairments in place of the former ones, on a TCIntf; keeps these if none but `jitter` is
        given. Reports that a plain Intf ignores them. Applies `ip` and `up=False`; reports other parameters.
        Returns an empty mapping.
        """
        if not isinstance(self, TCIntf) and any(params.get(key) for key in IMPAIRMENTS):
            leave(
                f"{self.name}.config: bandwidth, delay and the like are without effect on an Intf (no TCIntf)"
            )
        elif any(params.get(key) for key in IMPAIRMENTS if key != "jitter"):  # Mininet's TCIntf.config
            later(f"{self.name}.config")
            self.shape(
                {key: params[key] for key in IMPAIRMENTS if params.get(key) and self.takes(params, key)}
            )
        if params.get("ip"):
            self.setIP(params["ip"])
        for key in sorted(params.keys() - {*IMPAIRMENTS, "ip", "up"}):
            if params[key]:
                leave(f"{self.name}: {key}={params[key]!s:.40} has no counterpart")
        if params.get("up") is False:
            self.ifconfig("down")
        return {}

    def takes(self, params: dict[str, Any], key: str) -> bool:
        """Returns whether Mininet applies a parameter of `config`: it ignores a bandwidth outside of 0 to
        `bwParamMax` Mbit/s, which is reported.
        """
        most = getattr(type(self), "bwParamMax", None)
        ignored = key == "bw" and most is not None and not 0 <= params[key] <= most
        if ignored:
            change(f"{self.name}: Mininet ignores bw={params[key]}, outside of 0 to {most}: no rate here too")
        return not ignored

    def shape(self, side: dict[str, Any]) -> None:
        """Records impairments that replace all former ones of the interface, among the commands of its node,
        since `tc` may change them later.
        """
        self.node.record({"port": self.name, "side": side})

    def setIP(self, ipstr: str, prefixLen: Any = None) -> str:
        """Gives the interface an address, with the prefix length 8 if neither `ipstr` nor `prefixLen` has
        one; returns "".
        """
        self.node.setIP(ipstr, prefixLen or 8, self)
        return ""

    def setMAC(self, mac: str) -> None:
        """Reports that the MAC is not kept: the plan sets MACs."""
        leave(f"{self.name}: the MAC {mac} is the plan's here")

    def ifconfig(self, *words: Any) -> str:
        """Records the command `ifconfig` of this interface at its node, and whether the interface is up from
        then on. Returns "".
        """
        if "down" in words or "up" in words:
            self.up = "up" in words
        return str(self.node.cmd("ifconfig", self.name, *words))

    def cmd(self, *words: Any, **keys: Any) -> str:
        """Records a command at the interface's node; returns ""."""
        return str(self.node.cmd(*words, **keys))

    def IP(self) -> str:
        """Returns the interface's address without prefix length; "" if none is known."""
        return str(self.node.IP(self))

    ip = property(IP)

    def MAC(self) -> str:
        """Returns a MAC of zeros, since none is known before a plan."""
        return "00:00:00:00:00:00"

    mac = property(MAC)

    def isUp(self, setUp: bool = False) -> bool:
        """Returns whether the interface is up, which it is unless the script set it down. With `setUp`, first
        sets it up.
        """
        if setUp and not self.up:
            self.ifconfig("up")
        return self.up

    def delete(self) -> None:
        """Removes the interface's link from the network, if it has one."""
        if self.link is not None:
            self.link.delete()

    rename = silent("rename")
    updateIP = IP
    updateMAC = MAC
    status = answered("status", "OK")

    def updateAddr(self) -> tuple[str, str]:
        """Returns the interface's address and its MAC, as IP and MAC do."""
        return self.IP(), self.MAC()


class TCIntf(Intf):
    """An interface whose bandwidth, delay, jitter, loss and queue limit have effect."""

    bwParamMax = 1000  # Mbit/s; scripts may set it


class Link(Recorded):
    """A link between two interfaces, with the methods of Mininet's class Link. line: of the script."""

    def __init__(self, intf1: Intf, intf2: Intf, line: int, net: Any) -> None:
        self.intf1, self.intf2, self.line, self.net = intf1, intf2, line, net
        self.down = False

    def __str__(self) -> str:
        return f"{self.intf1}<->{self.intf2}"

    def delete(self) -> None:
        """Removes the link from the network and its interfaces from the nodes."""
        self.net.drop(self)

    stop = delete
    status = answered("status", "(OK OK)")


class Node(Recorded):
    """A host or switch: its parameters, its interfaces, and the commands that the script runs on it."""

    KEPT = frozenset({"waiting", "shell", "pollOut", "readbuf", "execed", "lastCmd", "cpu_"})
    portBase = 0

    def __init__(self, name: str, inNamespace: bool = True, **params: Any) -> None:
        self.name, self.params, self.line = name, params, here()
        self.inNamespace = inNamespace
        if not inNamespace and not isinstance(self, Switch):
            leave(f"{name}: inNamespace=False is the machine itself there, and a node of its own here")
        if params.get("privateDirs"):
            leave(f"{name}: privateDirs={params['privateDirs']!s:.40} has no counterpart")
        self.interfaces: list[Intf] = []
        self.addresses: dict[str, str] = {}
        # Place in the order of all commands, line, and a shell text, or a dictionary with the impairments
        # that an interface gets.
        self.commands: list[tuple[int, int, str | dict[str, Any]]] = []
        self.waiting = False

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __lt__(self, other: Any) -> bool:
        return self.name < str(other)

    def config(self, **params: Any) -> dict[str, Any]:
        """Records a default route (`defaultRoute`) and an address (`ip`) other than the node's own; reports
        other parameters that the node was not made with. Subclasses in scripts call it with their own
        parameters.
        """
        if params.get("defaultRoute"):
            self.setDefaultRoute(params["defaultRoute"])
        if params.get("ip") and params["ip"] != self.params.get("ip"):
            self.setIP(params["ip"])
        for key in sorted(params.keys() - HOST_KEYS - WITHOUT_EFFECT - {"lo"}):
            if params[key] is not None and key not in self.params:
                leave(f"{self.name}: {key}={params[key]!s:.40} has no counterpart")
        return {}

    def cmd(self, *words: Any, **_keys: Any) -> str:
        """Records a command, words or one list, with the script's line; returns empty output."""
        given = words[0] if len(words) == 1 and isinstance(words[0], list | tuple) else words
        text = " ".join(map(str, given))
        if text.split(maxsplit=1)[:1] and text.split()[0] in PLUMBING and not SHOWN & {*text.split()}:
            later(f"{self.name}: `{text:.60}`")
        self.record(text)
        if text.split(maxsplit=1)[:1] and text.split()[0] in LASTING and not text.rstrip().endswith("&"):
            pause()
            passed(float(found[1]) if (found := _SLEEP.fullmatch(text)) else 0)
        return self._output(text)

    def record(self, what: str | dict[str, Any]) -> None:
        """Records a command, or what an interface gets, after all that was recorded before at any node."""
        self.commands.append((next(_ORDER), here(), what))

    def _output(self, text: str) -> str:
        output: str = unknown("", f"the output of `{text:.60}`")
        return output

    cmdPrint = sendCmd = cmd  # Mininet's names

    def pexec(self, *words: Any, **keys: Any) -> tuple[str, str, int]:
        """Records a command; returns empty output, empty errors and status 0, which are Unknown."""
        output = self.cmd(*words, **keys)
        return output, output, unknown(0, f"the status of a command on {self.name}")

    def popen(self, *words: Any, **keys: Any) -> Any:
        """Records a command; returns an object like a process that has ended with status 0."""
        from .machine import ended

        self.cmd(*words, **keys)
        return ended(words[0] if len(words) == 1 else words, {**keys, "piped": True})

    def setIP(self, ip: str, prefixLen: Any = 8, intf: Any = None) -> str:
        """Records a new address of an interface, by default of the first one, as an `ifconfig` command;
        returns "". `prefixLen` counts only if `ip` has no length.
        """
        port = str(intf) if intf else self._first()
        self.record(f"ifconfig {port} {ip if '/' in str(ip) else f'{ip}/{prefixLen}'}")
        self.addresses[port] = str(ip)
        return ""

    def setDefaultRoute(self, intf: Any = None) -> None:
        """Records the default route as a command: `intf` is an interface, or the words of `ip route`, as in
        `via IP`.
        """
        given = str(intf)
        self.record(f"ip route replace default {given if ' ' in given else f'dev {given}'}")

    def setHostRoute(self, ip: str, intf: Any) -> None:
        """Records a route to the host `ip` by an interface, as a `route` command."""
        self.record(f"route add -host {ip} dev {intf}")

    def setMAC(self, mac: str, intf: Any = None) -> None:
        """Reports that the MAC is not kept: the plan sets MACs."""
        leave(f"{self.name}: the MAC {mac} is the plan's here")

    def IP(self, intf: Any = None) -> str:
        """Returns an interface's address without prefix length, by default the first interface's; "" if none
        is known.
        """
        first = self._first()
        port = str(intf) if intf else first
        given = self.addresses.get(port) or (self.params.get("ip") if port == first else "") or ""
        return str(given).partition("/")[0]

    def MAC(self, _intf: Any = None) -> str:
        """Returns the MAC in the node's parameters, else one of zeros, for every interface."""
        return str(self.params.get("mac") or "00:00:00:00:00:00")

    def _first(self) -> str:
        return self.defaults[0].name if self.interfaces else f"{self.name}-eth{self.portBase}"

    @property
    def defaults(self) -> list[Intf]:
        """The interface with the lowest port, which has the node's address; empty if there is none."""
        return sorted(self.interfaces, key=lambda one: int(one.port))[:1]

    def plug(self, wanted: str | None, number: Any, kind: type[Intf], params: dict[str, Any]) -> Intf:
        """Adds an interface of class `kind` and returns it. It has the port `number`, or the next free one,
        and the name `wanted`, or NODE-ethPORT.
        """
        taken = [intf.port for intf in self.interfaces]
        port = number if number is not None else max([self.portBase - 1, *taken]) + 1
        intf = kind(wanted or f"{self.name}-eth{port}", self, port, True, **params)
        self.interfaces.append(intf)
        return intf

    def intf(self, intf: Any = None) -> Any:
        """Returns an interface by its name, also one whose link was removed; KeyError for an unknown name.
        Without a name, the first one, or None.
        """
        if isinstance(intf, Intf):
            return intf
        found = [one for one in self.known if one.name == str(intf)] if intf else self.defaults
        if intf and not found:
            raise KeyError(str(intf))
        return found[0] if found else None

    @property
    def known(self) -> list[Intf]:
        """The node's interfaces, and those whose link was removed."""
        return [*self.interfaces, *self.__dict__.get("gone", [])]

    defaultIntf = intf

    def intfList(self) -> list[Intf]:
        """Returns the interfaces in the order in which they were added."""
        return list(self.interfaces)

    def intfNames(self) -> list[str]:
        """Returns the names of the interfaces."""
        return [one.name for one in self.interfaces]

    @property
    def intfs(self) -> dict[int, Intf]:
        """The interfaces by port number."""
        return {one.port: one for one in self.interfaces}

    @property
    def ports(self) -> dict[Intf, int]:
        """The port numbers by interface."""
        return {one: one.port for one in self.interfaces}

    @property
    def nameToIntf(self) -> dict[str, Intf]:
        """The interfaces by name."""
        return {one.name: one for one in self.interfaces}

    def connectionsTo(self, node: Any) -> list[tuple[Intf, Intf]]:
        """Returns pairs of interfaces (own, other) of the links to a node."""
        found = []
        for intf in self.interfaces:
            link = intf.link
            far = link.intf2 if link.intf1 is intf else link.intf1
            if far.node is node:
                found.append((intf, far))
        return found

    def linkTo(self, node: Any, **params: Any) -> Any:
        """Reports that a link that is made without a Mininet object is left out."""
        leave(f"{call_text(f'{self}.linkTo', (node,), params)} is not done")

    setARP = silent("setARP", "")
    addIntf = silent("addIntf")
    setParam = silent("setParam")
    moveIntf = silent("moveIntf")
    deleteIntfs = silent("deleteIntfs")
    configDefault = quiet()
    terminate = cleanup = start = stop = sendInt = quiet("")
    monitor, waitReadable = answered("monitor", ""), answered("waitReadable", [])
    read = readline = answered("read", "")
    pid = 1

    def waitOutput(self, *_words: Any, **_keys: Any) -> str:
        """Lets time pass, and returns the output of the last command, which is not known."""
        pause()
        return self._output(str(self.commands[-1][2]) if self.commands else "a command")

    def intfIsUp(self, intf: Any = None) -> bool:
        """Returns whether an interface is up, by default the first."""
        found = self.intf(intf)
        return found is not None and bool(found.up)


class CPULimitedHost(Node):
    """A host with a share of the CPU, with the methods of Mininet's class CPULimitedHost."""

    def __init__(self, name: str, sched: str = "cfs", **params: Any) -> None:
        super().__init__(name, **params)
        self.share: float | None = None

    def config(self, cpu: Any = -1, cores: Any = None, **params: Any) -> dict[str, Any]:
        """Sets the host's share of CPU unless it is -1, reports `cores` as left out, and applies the other
        parameters.
        """
        if cpu is not None and cpu != -1:
            self.setCPUFrac(cpu)
        if cores:
            self.setCPUs(cores)
        return super().config(**params)

    def setCPUFrac(self, f: Any, sched: Any = None) -> None:
        """Sets the host's share of all CPUs, from 0 to 1; removes it if `f` is 0 or less."""
        self.share = float(f) if f and float(f) > 0 else None

    setCPUs = silent("setCPUs")


class Switch(Node):
    """A switch, with the methods of Mininet's class Switch; its ports count from 1."""

    portBase = 1
    dpid = "1"
    setup = classmethod(lambda _cls, *_words: None)

    plumbing = "ovs"  # what its ports are on: a bridge of Open vSwitch (ovs), of Linux (linux), or neither

    def vsctl(self, *words: Any, **_keys: Any) -> str:
        """Records a command of ovs-vsctl."""
        return self.cmd("ovs-vsctl", *words)

    def attach(self, intf: Any) -> None:
        """Records that an interface becomes a port of the switch."""
        later(f"{self}.attach({intf!s:.40})")
        self.record(f"{self._port('add')} {intf}")

    def detach(self, intf: Any) -> None:
        """Records that an interface is a port of the switch no more."""
        later(f"{self}.detach({intf!s:.40})")
        self.record(f"{self._port('del')} {intf}")

    def _port(self, verb: str) -> str:
        return f"brctl {verb}if {self}" if self.plumbing == "linux" else f"ovs-vsctl {verb}-port {self}"

    def dpctl(self, *words: Any) -> str:
        """Reports a command to the switch's flows as left out."""
        leave(f"{call_text(f'{self}.dpctl', words, {})} is not done")
        return self._output(f"dpctl {' '.join(map(str, words))}")

    connected = answered("connected", True)


class UserSwitch(Switch):
    """A switch that is a program, on whose ports neither brctl nor ovs-vsctl acts."""

    plumbing = ""


class Stp(Switch):
    """A switch class whose parameter `stp` has effect."""


class Bridge(Stp):
    """A switch class that learns without a controller."""


class LinuxBridge(Bridge):
    """A bridge of Linux."""

    plumbing = "linux"
