"""Replaces Mininet's switches."""

from __future__ import annotations

from typing import Any

from .nodes import Node
from .said import call_text, later, leave
from .stubs import answered

# Keywords of a switch without effect on how it forwards.
SWITCH_QUIET = frozenset((
    "dpid", "listenPort", "protocols", "failMode", "datapath", "inband", "reconnectms", "opts", "verbose",
    "batch",
))  # fmt: skip


class Switch(Node):
    """A switch, with the methods of Mininet's class Switch; its ports count from 1."""

    portBase = 1
    is_switch = True
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
