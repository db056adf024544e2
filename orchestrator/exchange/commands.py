"""Commands of `ip` and `sysctl` by which other tools' files give nodes addresses, routes and forwarding."""

from __future__ import annotations

import ipaddress
import itertools
import shlex
from collections.abc import Iterator
from typing import Any

from .network import Machine, Route

FORWARDING = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")


def commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a shell's line; a line that is none is one word."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        words = [line]
    for ends, command in itertools.groupby(words, lambda word: word in (";", "&&")):
        if not ends:
            yield list(command)


def understood(machine: Machine, words: list[str]) -> bool:
    """Whether a command is one of those whose effect the plan has; the machine then has it."""
    words = [word for word in words if word not in ("sudo", "-4", "-6")]
    match words:
        case ["ip", "link" | "l", "set", *rest] if "up" in rest:
            return True
        case ["ip", "addr" | "address" | "a", "add", address, "dev", port] if _is(
            ipaddress.ip_interface, address
        ):
            machine.addresses.setdefault(port, []).append(address)
            return True
        case ["ip", "route" | "r", "add" | "replace", to, "via", via, *rest] if _is(
            ipaddress.ip_address, via
        ):
            if rest[:1] not in ([], ["dev"]) or not (to == "default" or _is(ipaddress.ip_network, to)):
                return False
            machine.routes.append(Route("default" if to in ("0.0.0.0/0", "::/0") else to, via))
            return True
        case ["sysctl", *rest] if any(word in FORWARDING for word in rest):
            machine.forward = True
            return True
        case ["ip", "route" | "r", "del" | "delete", "default", *_]:
            return True  # of the management network, which is not here
    return False


def _is(kind: Any, text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True
