"""Checks that ZeroMQ sockets fit their partners, their transport and their segments."""

from __future__ import annotations

import ipaddress

from ...language.source import Path
from ..checking import Checks, Here, joined
from ..messages import PATTERNS, check_messages
from .file import GROUP, PARTNERS, Zeromq, ZeromqOptions, socket_of

LARGEST_BYTES = 1 << 20


def check(report: Checks, here: Here, model: Zeromq) -> None:
    """Reports a socket that does not have exactly one of the keys router, dealer, pub and sub.

    Reports of a sender (router, pub): missing or wrong flows, and settings that do not fit its transport.
    Reports of a receiver (dealer, sub): keys that only a sender has, and a partner that is missing, ambiguous
    or unreachable, or with multicast has no segment in common with it.
    """
    options, path = model.zeromq, (*here.path, "zeromq")
    socket = socket_of(options)
    if not socket:
        rule = "has exactly one of the keys router, dealer, pub and sub"
        report.add(path, None, rule, "write `router: PORT` where it sends, `dealer: NODE` where it receives")
    elif socket in PARTNERS:
        _check_sender(report, here, options, path)
    else:
        _check_receiver(report, here, options, path, socket)


def _check_sender(report: Checks, here: Here, options: ZeromqOptions, path: Path) -> None:
    said = [key for key in PATTERNS if getattr(options, key) is not None]
    if not said:
        report.add(
            path, None, "binds, but does not say what it sends", "write `request:`, `push:` or `stream:`"
        )
    for key in said:
        check_messages(report, here, getattr(options, key), (*path, key), LARGEST_BYTES)
        if options.pub is not None and getattr(options, key).spread != "all":
            rule = "a PUB sends every message to all"
            report.add((*path, key, "spread"), "round-robin", rule, "leave it out, or write `router:`")
    if options.answers is not None and options.answers in (options.router, options.pub):
        rule = "is the port that the socket itself listens on"
        report.add((*path, "answers"), options.answers, rule, "choose another port")
    multicast = options.transport == "epgm"
    if multicast and options.pub is None:
        report.add((*path, "transport"), "epgm", "goes with `pub` alone", "write `transport: tcp`")
    for setting in ("group", "rate_limit", "recovery", "tpdu"):
        if setting in options.model_fields_set and not multicast:
            remedy = "write `transport: epgm`, or leave it out"
            report.add((*path, setting), None, "belongs to multicast", remedy)
    for node in here.nodes if multicast else ():
        if "IPv6" in report.families(node):
            rule = f"multicast here is of IPv4, and {node} has addresses of IPv6"
            report.add((*path, "transport"), "epgm", rule, "write `transport: tcp`, or IPv4 subnets")
            break
    if not ipaddress.IPv4Address(options.group).is_multicast:
        rule = "is no multicast address (224.0.0.0 to 239.255.255.255)"
        report.add((*path, "group"), options.group, rule, f"write for example {GROUP}")
    if options.pub is not None and options.request is not None and options.answers is None:
        rule = "asks, but a SUB cannot answer by its own socket"
        report.add((*path, "request"), None, rule, "write `answers: PORT`, or `push:`")
    if multicast and options.tpdu is not None:
        _check_tpdu(report, here, options.tpdu, (*path, "tpdu"))


def _check_tpdu(report: Checks, here: Here, tpdu_bytes: int, path: Path) -> None:
    for segment in here.segments:
        mtu = report.mtu(segment)
        if mtu is not None and tpdu_bytes > mtu:
            rule = f"is more than the MTU of {segment}, {mtu} bytes"
            report.add(path, f"{tpdu_bytes} B", rule, f'write at most "{mtu} B"')


def _check_receiver(report: Checks, here: Here, options: ZeromqOptions, path: Path, socket: str) -> None:
    for key in sorted(options.model_fields_set - {socket, "receive_queue"}):
        report.add((*path, key), None, f"does not belong to a {socket}", "write it at the socket that binds")
    wanted = next(binds for binds, connects in PARTNERS.items() if connects == socket)
    name = str(getattr(options, socket))
    if not report.node((*path, socket), name):
        return
    found = [one for one in _of(report, name) if getattr(one, wanted) is not None]
    if len(found) != 1:
        rule = f"{'no' if not found else 'more than one'} {wanted.upper()} runs on node {name}"
        report.add((*path, socket), name, rule, f"write `zeromq: {{{wanted}: 5555, ...}}` there, once")
    elif not joined(report, here, (*path, socket), name, name):
        return
    elif found[0].transport == "epgm" and report.common(here.segments, name) == set():
        rule = f"multicast is not forwarded by routers, and no segment is {name}'s too"
        report.add((*path, socket), name, rule, "put both on one segment, or write `transport: tcp`")


def _of(report: Checks, node: str) -> list[ZeromqOptions]:
    return [model.zeromq for model in report.programs(node).values() if isinstance(model, Zeromq)]
