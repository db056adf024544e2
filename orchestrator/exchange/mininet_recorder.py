"""Runs a script of Mininet with a recorder in Mininet's place, and prints the network that it builds as JSON.

Started by its path, in a process of its own: it imports nothing of ours. Nothing of the network is made, no
command is run, on nodes or on the machine; a script that wants an answer of one gets an empty text.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import ipaddress
import json
import os
import runpy
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

LEFT: list[str] = []
NETS: list[Net] = []


class Loose(type):
    """Of classes that scripts also use as they stand: `lg.setLogLevel()`."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()


class Stub(metaclass=Loose):
    """Whatever is asked of Mininet beyond the network: takes everything, gives nothing."""

    def __init__(self, *_args: Any, **_keys: Any) -> None:
        pass

    def __call__(self, *_args: Any, **_keys: Any) -> Stub:
        return Stub()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()

    def __iter__(self) -> Any:
        return iter(())

    def __str__(self) -> str:
        return ""

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_error: Any) -> None:
        pass


class Node(Stub):
    """A host or switch: its parameters, its ports, and the commands that it was given."""

    def __init__(self, name: str, **params: Any) -> None:
        self.name, self.params = name, params
        self.ports: list[str] = []
        self.addresses: dict[str, str] = {}
        self.commands: list[str] = []
        self.first_port = 0

    def __str__(self) -> str:
        return self.name

    def config(self, **_params: Any) -> None:
        """Of subclasses that call it."""

    def terminate(self) -> None:
        """Of subclasses that call it."""

    def cmd(self, *words: Any, **_keys: Any) -> str:
        """Record a command; its output is empty."""
        self.commands.append(
            " ".join(map(str, words[0] if len(words) == 1 and isinstance(words[0], list) else words))
        )
        return ""

    cmdPrint = sendCmd = popen = pexec = cmd  # noqa: N815  # Mininet's names

    def setIP(self, ip: str, prefixLen: int = 8, intf: Any = None) -> None:  # noqa: N802, N803
        """Give an interface an address; without a name the first."""
        port = str(intf) if intf else (self.ports or [f"{self.name}-eth0"])[0]
        self.addresses[port] = ip if "/" in ip else f"{ip}/{prefixLen}"

    def setDefaultRoute(self, intf: Any = None) -> None:  # noqa: N802
        """Record the route."""
        self.commands.append(f"ip route add default {intf}")

    def IP(self, *_args: Any) -> str:  # noqa: N802
        """The first interface's address."""
        given = self.addresses.get((self.ports or [""])[0]) or self.params.get("ip") or ""
        return str(given).partition("/")[0]

    def port(self, wanted: str | None, number: Any) -> str:
        """The next interface's name."""
        own = f"{self.name}-eth{self.first_port + len(self.ports) if number is None else number}"
        self.ports.append(wanted or own)
        return self.ports[-1]


class Switch(Node):
    """A switch."""


class Topo:
    """A topology as scripts subclass it: what `build` adds, in order."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.hopts: dict[str, Any] = params.pop("hopts", None) or {}
        self.sopts: dict[str, Any] = params.pop("sopts", None) or {}
        self.lopts: dict[str, Any] = params.pop("lopts", None) or {}
        self.build(*args, **params)

    def build(self, *_args: Any, **_params: Any) -> None:
        """For subclasses."""

    def addHost(self, name: str, **params: Any) -> str:  # noqa: N802
        """As Mininet's."""
        self.steps.append(("addHost", (name,), {**self.hopts, **params}))
        return name

    def addSwitch(self, name: str, **params: Any) -> str:  # noqa: N802
        """As Mininet's."""
        self.steps.append(("addSwitch", (name,), {**self.sopts, **params}))
        return name

    addNode = addHost  # noqa: N815

    def addLink(self, a: str, b: str, port1: Any = None, port2: Any = None, **params: Any) -> None:  # noqa: N802
        """As Mininet's."""
        self.steps.append(("addLink", (a, b), {**self.lopts, "port1": port1, "port2": port2, **params}))

    def hosts(self, sort: bool = True) -> list[str]:
        """Names of the hosts so far."""
        return [args[0] for step, args, _ in self.steps if step == "addHost"]

    def switches(self, sort: bool = True) -> list[str]:
        """Names of the switches so far."""
        return [args[0] for step, args, _ in self.steps if step == "addSwitch"]


class SingleSwitchTopo(Topo):
    """k hosts on a switch."""

    def build(self, k: int = 2, **_params: Any) -> None:
        self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), "s1")


class LinearTopo(Topo):
    """k switches in a row, each with n hosts."""

    def build(self, k: int = 2, n: int = 1, **_params: Any) -> None:
        for i in range(1, k + 1):
            self.addSwitch(f"s{i}")
            for j in range(1, n + 1):
                self.addLink(self.addHost(f"h{i}" if n == 1 else f"h{j}s{i}"), f"s{i}")
            if i > 1:
                self.addLink(f"s{i}", f"s{i - 1}")


class TreeTopo(Topo):
    """A tree of switches with hosts as leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        self.numbers = {"s": 0, "h": 0}
        self._branch(depth, fanout)

    def _branch(self, depth: int, fanout: int) -> str:
        kind = "s" if depth else "h"
        self.numbers[kind] += 1
        node = (self.addSwitch if depth else self.addHost)(f"{kind}{self.numbers[kind]}")
        for _ in range(fanout if depth else 0):
            self.addLink(node, self._branch(depth - 1, fanout))
        return node


class Net(Stub):
    """Mininet itself."""

    def __init__(self, topo: Any = None, ipBase: str = "10.0.0.0/8", link: Any = None, **keys: Any) -> None:  # noqa: N803
        self.nodes: dict[str, Node] = {}
        self.wires: list[dict[str, Any]] = []
        self.hosts: list[Node] = []
        self.switches: list[Node] = []
        self.base = ipaddress.ip_network(ipBase, strict=False)
        self.host_class, self.link_defaults = keys.get("host"), _keywords(link)
        self.started = False
        NETS.append(self)
        for step, args, params in getattr(topo, "steps", []):
            getattr(self, step)(*args, **params)

    def addHost(self, name: str, cls: Any = None, **params: Any) -> Node:  # noqa: N802
        """Add a host, on the next address."""
        params.setdefault("ip", f"{self.base[len(self.hosts) + 1]}/{self.base.prefixlen}")
        made = cls or self.host_class or Node
        made = made.func if isinstance(made, functools.partial) else made
        node: Node = (
            made(name, **params)
            if isinstance(made, type) and issubclass(made, Node)
            else Node(name, **params)
        )
        self.nodes[name] = node
        self.hosts.append(node)
        return node

    def addSwitch(self, name: str, **_params: Any) -> Node:  # noqa: N802
        """Add a switch."""
        node = Switch(name)
        node.first_port = 1
        self.nodes[name] = node
        self.switches.append(node)
        return node

    def addController(self, name: Any = "c0", *_args: Any, **_params: Any) -> Stub:  # noqa: N802
        """Bridges here learn by themselves."""
        LEFT.append(f"controller {name}")
        return Stub()

    def addNAT(self, name: str = "nat0", **_params: Any) -> Stub:  # noqa: N802
        """The lab has no way out."""
        LEFT.append(f"NAT {name}: a lab is joined to no other network")
        return Stub()

    def addLink(self, node1: Any, node2: Any, port1: Any = None, port2: Any = None, **params: Any) -> Stub:  # noqa: N802
        """Join two nodes."""
        ends = [self.nodes[str(node)] for node in (node1, node2)]
        params = {**self.link_defaults, **params}
        names = [
            end.port(params.get(f"intfName{i}"), p)
            for i, (end, p) in enumerate(zip(ends, (port1, port2), strict=True), 1)
        ]
        sides = []
        for number, (end, port) in enumerate(zip(ends, names, strict=True), 1):
            own = {**params, **(params.get(f"params{number}") or {})}
            if isinstance(own.get("ip"), str):
                end.addresses[port] = own["ip"]
            sides.append(
                {key: own[key] for key in ("bw", "delay", "jitter", "loss", "max_queue_size") if own.get(key)}
            )
        self.wires.append(
            {"ends": [[end.name, port] for end, port in zip(ends, names, strict=True)], "sides": sides}
        )
        return Stub()

    def getNodeByName(self, *names: str) -> Any:  # noqa: N802
        """One node, or several."""
        return self.nodes[names[0]] if len(names) == 1 else [self.nodes[name] for name in names]

    get = getNodeByName

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def __iter__(self) -> Any:
        return iter(self.nodes)

    def build(self) -> None:
        """Configure the hosts, as their classes do."""
        if not self.started:
            self.started = True
            for host in self.hosts:
                host.config(**host.params)

    start = build

    def recorded(self) -> dict[str, Any]:
        """As JSON has it."""
        hosts = []
        for host in self.hosts:
            addresses = dict(host.addresses)
            ip = host.params.get("ip")
            if ip and host.ports:
                addresses.setdefault(host.ports[0], ip if "/" in ip else f"{ip}/8")
            route = host.params.get("defaultRoute")
            commands = [*host.commands, *([f"ip route add default {route}"] if route else [])]
            hosts.append({"name": host.name, "addresses": addresses, "commands": commands})
        return {"hosts": hosts, "switches": [s.name for s in self.switches], "links": self.wires}


KNOWN: dict[str, Any] = {
    "Mininet": Net, "MininetWithControlNet": Net, "Topo": Topo, "SingleSwitchTopo": SingleSwitchTopo,
    "MinimalTopo": SingleSwitchTopo, "LinearTopo": LinearTopo, "TreeTopo": TreeTopo,
    "TreeNet": lambda depth=1, fanout=2, **keys: Net(topo=TreeTopo(depth, fanout), **keys),
    "Node": Node, "Host": Node, "CPULimitedHost": Node, "Switch": Switch,
    "OVSSwitch": Switch, "OVSKernelSwitch": Switch,
    "LinuxBridge": Switch, "UserSwitch": Switch, "OVSBridge": Switch, "irange": lambda a, b: range(a, b + 1),
    "quietRun": lambda *_words, **_keys: "",
}  # fmt: skip


def _keywords(link: Any) -> dict[str, Any]:
    """What a link's class was given with `functools.partial`."""
    return dict(link.keywords) if isinstance(link, functools.partial) else {}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives every module of Mininet's name."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname.partition(".")[0] != "mininet":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: types.ModuleType) -> None:
        def known(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return KNOWN.get(name) or Loose(name, (Stub,), {})

        module.__getattr__ = known  # type: ignore[method-assign]


def _nothing_is_run() -> None:
    def refused(command: Any = "", *_args: Any, **_keys: Any) -> Any:
        LEFT.append(f"`{command}` is not run on this machine")
        return types.SimpleNamespace(
            returncode=0, stdout="", stderr="", pid=0, wait=lambda: 0, communicate=lambda: ("", "")
        )

    for name in ("run", "Popen"):
        setattr(subprocess, name, refused)
    subprocess.call = subprocess.check_call = os.system = lambda *args, **_keys: refused(*args).returncode  # type: ignore[assignment]
    subprocess.check_output = lambda *args, **_keys: refused(*args).stdout
    time.sleep = lambda _seconds: None


def main(file: str) -> None:
    """Run the script and print what it built."""
    out, sys.stdout = sys.stdout, sys.stderr
    sys.argv = [file]
    sys.path.insert(0, str(Path(file).resolve().parent))
    sys.meta_path.insert(0, Finder())
    _nothing_is_run()
    error = None
    scope: dict[str, Any] = {}
    try:
        scope = runpy.run_path(file, run_name="__main__")
    except SystemExit:
        pass
    except BaseException as failure:  # whatever the script does, it is said
        lines = [frame.tb_lineno for frame in _frames(failure) if frame.tb_frame.f_code.co_filename == file]
        error = {"line": lines[-1] if lines else 0, "text": f"{type(failure).__name__}: {failure}"}
    topos = scope.get("topos")
    if not NETS and isinstance(topos, dict) and topos:
        Net(topo=next(iter(topos.values()))()).build()
    nets = [net.recorded() for net in NETS if net.nodes]
    json.dump({"nets": nets, "left": LEFT, "error": error}, out)


def _frames(failure: BaseException) -> Any:
    trace = failure.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


if __name__ == "__main__":
    main(sys.argv[1])
