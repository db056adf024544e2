"""Adapts FRR configurations from other tools: replaces interface names and addresses by those of the lab."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..foreign import Daemons, Foreign

_ADDRESS = re.compile(r"^\s*ip(?:v6)? address (\S+)")
_STANZA = re.compile(r"^interface (\S+)")
_LOOPBACK = "lo"


def _lines(config: str) -> Iterator[tuple[str, str]]:
    """Yields (stanza, line) of each line; the stanza is the interface that the line configures, or ""."""
    stanza = ""
    for line in config.splitlines():
        if found := _STANZA.match(line):
            stanza = found[1]
        elif line[:1] not in ("", " ", "\t"):  # a stanza continues as long as its lines are indented
            stanza = ""
        yield stanza, line


def _addresses(config: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for stanza, line in _lines(config):
        if stanza and stanza != _LOOPBACK and (address := _ADDRESS.match(line)):
            found.setdefault(stanza, []).append(address[1])
    return found


def _software(config: str, interfaces: Mapping[str, str], addresses: Mapping[str, str]) -> dict[str, Any]:
    """Returns the keys of the router with the configuration, in which interfaces and addresses have the names
    and values of the lab. Lines with addresses are dropped, because the topology sets them, but kept for
    `lo`.
    """
    kept = []
    for stanza, line in _lines(config):
        if stanza and stanza != _LOOPBACK and _ADDRESS.match(line):
            continue
        renamed = _words(line, interfaces) if _names_interfaces(line) else line
        kept.append(_words(renamed, addresses).rstrip())
    return {"frr": {"config": "\n".join(kept).strip("\n") + "\n"}}


def _names_interfaces(line: str) -> bool:
    return bool(re.search(r"\binterface\b|\bupdate-source\b|\bip route\b|\bipv6 route\b", line)) or bool(
        re.match(r"\s*neighbor [a-z]", line)
    )


def _words(line: str, renamed: Mapping[str, str]) -> str:
    """Returns the line with all words in `renamed` replaced at once."""
    if not renamed:
        return line
    pattern = "|".join(re.escape(word) for word in sorted(renamed, key=len, reverse=True))
    return re.sub(rf"(?<![\w.:/-])({pattern})(?![\w.:-])", lambda found: renamed[found[1]], line)


_START = re.compile(
    r"/etc/init\.d/(frr|quagga|zebra) (re)?start\b|service (frr|quagga|zebra)(\.service)? (re)?start\b"
    r"|systemctl (-\S+ )*((re)?start|(try-|reload-or-)restart|enable (.* )?--now)\b.* (frr|quagga|zebra)\b"
)
_LOG = re.compile(r"^\s*(log file|debug)\b.*\n?", re.MULTILINE)  # the lab records the daemons' output
_PROTOCOL = re.compile(r"^router ", re.MULTILINE)


def _joined(texts: Sequence[str]) -> str:
    """Joins the configurations of all daemons into one for FRR, without their `log file` and `debug` lines;
    "" if none of them configures a protocol.
    """
    kept = [_LOG.sub("", text).rstrip("\n") for text in texts]
    return "\n!\n".join(kept) + "\n" if any(_PROTOCOL.search(text) for text in kept) else ""


FOREIGN = Foreign(
    recognises=lambda name: bool(re.search(r"(^|[/_-])frr(outing)?([/:_-]|$)", name)),
    file="/etc/frr/frr.conf",
    addresses=_addresses,
    software=_software,
    daemons=Daemons(
        devices=("frr",),
        protocols={"OSPFv2": "ospf", "ospf": "ospf", "bgp": "bgp"},
        software=lambda protocols: {"frr": dict(protocols)},
        starts=lambda command: bool(_START.match(command)),
        folders={"etc/frr": "", "etc/quagga": "frr version 6.0\nfrr defaults traditional\n!\n"},
        config=_joined,
    ),
)
