"""Replaces Mininet's interfaces and links; records each change at the interface's node."""

from __future__ import annotations

from typing import Any

from .said import change, here, later, leave
from .stubs import Recorded, answered, silent

IMPAIRMENTS = ("bw", "delay", "jitter", "loss", "max_queue_size")  # parameters of TCIntf that are imported


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
        """Reports that the MAC is not kept: the plan sets MACs. Sets the interface down and up, as
        Mininet.
        """
        leave(f"{self.name}: the MAC {mac} is the plan's here")
        self.node.record(f"ifconfig {self.name} down; ifconfig {self.name} up")

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


class PlainLink:
    """The link class without traffic control: bandwidth, delay and loss have no effect on it."""


class TCLink(PlainLink):
    """The link class with TCIntf at both ends, so that bandwidth, delay and loss have effect."""
