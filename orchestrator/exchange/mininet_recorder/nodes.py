"""Replaces Mininet's hosts; records each change with its line of the script."""

from __future__ import annotations

import itertools
import re
from typing import Any

from .interfaces import Intf
from .said import call_text, here, later, leave, pause
from .stubs import Recorded, answered, quiet, silent
from .unknown import unknown
from .waiting import passed

# Keys of a Mininet host that the import converts, or may drop without a report: names of programs and places.
HOST_KEYS = frozenset(["ip", "mac", "defaultRoute", "cpu", "cls", "inNamespace"])
WITHOUT_EFFECT = frozenset(["inNamespace", "isSwitch", "isController", "xterm", "hostname"])


# Commands that change the network, unless they have a word of SHOWN.
PLUMBING = frozenset(["ip", "ifconfig", "route", "tc", "brctl", "ovs-vsctl"])
# Commands during which time passes.
LASTING = frozenset(
    ["sleep", "ping", "ping6", "iperf", "iperf3", "netperf", "wget", "curl", "traceroute", "wait"]
)
_SLEEP = re.compile(r"sleep (\d+(?:\.\d+)?)s?")
_ORDER = itertools.count()
SHOWN = frozenset(["show", "list", "get", "-a", "-n", "-s", "ls"])


class Node(Recorded):
    """A host or switch: its parameters, its interfaces, and the commands that the script runs on it."""

    KEPT = frozenset({"waiting", "shell", "pollOut", "readbuf", "execed", "lastCmd", "cpu_"})
    portBase = 0
    is_switch = False

    def __init__(self, name: str, inNamespace: bool = True, **params: Any) -> None:
        self.name, self.params, self.line = name, params, here()
        self.inNamespace = inNamespace
        if not inNamespace and not self.is_switch:
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
        if params.get("lo", "up") != "up":
            leave(f"{self.name}: lo={params['lo']!s:.40} is not done")
        for key in sorted(params.keys() - HOST_KEYS - WITHOUT_EFFECT - {"lo"}):
            if params[key] is not None and key not in self.params:
                leave(f"{self.name}: {key}={params[key]!s:.40} has no counterpart")
        return {}

    def cmd(self, *given: Any, **_keys: Any) -> str:
        """Records a command, words or one list, with the script's line; returns empty output."""
        listed = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
        text = " ".join(map(str, listed))
        words = text.split()
        if len(words) > 2 and words[0] in PLUMBING and not SHOWN & {*words}:  # with two words they only list
            later(f"{self.name}: `{text:.60}`")
        self.record(text)
        if words[:1] and words[0] in LASTING and not text.rstrip().endswith("&"):
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
        """Reports that the MAC is not kept: the plan sets MACs. Sets the interface down and up, as
        Mininet.
        """
        leave(f"{self.name}: the MAC {mac} is the plan's here")
        if (port := str(intf) if intf else self._first()) in self.intfNames():
            self.record(f"ifconfig {port} down; ifconfig {port} up")

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
        self.sched = sched
        if sched != "cfs":
            leave(f"{name}: the scheduler {sched} has no counterpart")

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
        limits = (sched or self.sched) in ("cfs", "rt")  # others have no limit there, either
        self.share = float(f) if f and float(f) > 0 and limits else None

    setCPUs = silent("setCPUs")
