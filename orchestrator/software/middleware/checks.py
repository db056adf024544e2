"""Checks that both sides of a middleware exchange fit: known libraries, a side that listens, one task, a
light node with IPv4 and enough memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...language.source import Path
from ...language.units import text_ns
from ..checking import Checks, Here, joined, light
from ..scene import LOAD_END
from ..sending import check_sending
from . import known
from .file import PORTS, Give, Middleware, MiddlewareOptions

_LISTENS = ("use", "serialiser", "publish")
_CONNECTS = ("request", "push", "subscribe", "call_back", "warm_up")
_LEAST_HEAP = 64 << 20  # bytes; with less, the larger libraries do not start


def check(report: Checks, here: Here, model: Middleware) -> None:
    """Reports a side without exactly one of listen and to, keys of the other side, unknown libraries, a
    missing or unreachable partner, mistakes in flows and greedy phases, too little memory, VM nodes, and
    IPv6.
    """
    options, path = model.middleware, (*here.path, "middleware")
    if (options.listen is None) == (options.to is None):
        rule = "has exactly one of the keys listen and to"
        remedy = "write `listen: PORT` where it answers, `to: NODE` where it asks, pushes or subscribes"
        report.add(path, None, rule, remedy)
    elif options.listen is not None:
        _belong(report, options, path, _CONNECTS, "the side that listens", "write it where `to` is")
        _check_listening(report, here, options, path)
    else:
        _belong(report, options, path, _LISTENS, "the side that connects", "write it where `listen` is")
        _check_connecting(report, here, options, path)
    _check_machine(report, here, options, path)


def _belong(
    report: Checks, options: MiddlewareOptions, path: Path, keys: Sequence[str], side: str, remedy: str
) -> None:
    for key in keys:
        if key in options.model_fields_set:
            report.add((*path, key), None, f"does not belong to {side}", remedy)


def _check_listening(report: Checks, here: Here, options: MiddlewareOptions, path: Path) -> None:
    for key, names in (("use", known.middleware()), ("serialiser", known.serialisers())):
        said = getattr(options, key)
        if said is None:
            report.add((*path, key), None, "is missing", f"write for example {next(iter(names))}")
        elif said not in names:
            what = {"use": "middleware", "serialiser": "serialiser"}[key]
            report.add((*path, key), said, f"is no {what} that is known", known.nearest(said, names))
    if options.listen is not None and options.listen > 65536 - PORTS:
        rule = f"is the first of {PORTS} ports, of which the last is {options.listen + PORTS - 1}"
        report.add((*path, "listen"), options.listen, rule, f"write at most {65536 - PORTS}")
    if options.publish is not None:
        _check_flow(report, here, options, "publish", path)
        if not _subscribed(report, here):
            rule = "publishes, and nothing subscribes"
            remedy = "write `middleware: {to: NODE, subscribe: true}` somewhere, or leave it out"
            report.add((*path, "publish"), None, rule, remedy)


def _subscribed(report: Checks, here: Here) -> bool:
    sides = (one for node in report.everyone for one in _sides(report, node))
    return any(one.subscribe and one.to in here.nodes for one in sides)


def _check_connecting(report: Checks, here: Here, options: MiddlewareOptions, path: Path) -> None:
    said = [key for key in ("request", "push") if getattr(options, key) is not None]
    said += ["subscribe"] if options.subscribe else []
    if len(said) != 1:
        rule = f"does {'nothing' if not said else ' and '.join(said)}, and one thing is what it can do"
        report.add(path, None, rule, "write one of `request:`, `push:` and `subscribe: true`")
    for key in (key for key in said if key != "subscribe"):
        _check_flow(report, here, options, key, path)
    name = str(options.to)
    if not report.node((*path, "to"), name):
        return
    found = [one for one in _sides(report, name) if one.listen is not None]
    if len(found) != 1:
        rule = f"{'no' if not found else 'more than one'} middleware of node {name} listens"
        remedy = "write `middleware: {listen: 7000, use: NAME, serialiser: NAME}` there, once"
        report.add((*path, "to"), name, rule, remedy)
        return
    if joined(report, here, (*path, "to"), name, name) and options.subscribe and found[0].publish is None:
        rule = f"subscribes, and the middleware of node {name} publishes nothing"
        report.add((*path, "subscribe"), None, rule, "write `publish: {rate: 10 /s}` there")


def _check_flow(report: Checks, here: Here, options: MiddlewareOptions, key: str, path: Path) -> None:
    wanted: Give = getattr(options, key)
    if wanted.give_up == 0:
        report.add((*path, key, "give_up"), "0 s", "is not above zero", 'write for example "500 ms"')
    check_sending(report, here, wanted, (*path, key), "leave it out where nothing is sent")
    _check_greedy(report, wanted, (*path, key, "greedy"))


def _check_greedy(report: Checks, wanted: Give, path: Path) -> None:
    greedy = wanted.greedy
    if greedy is None:
        return
    if greedy.duration == 0:
        report.add((*path, "for"), "0 s", "is not above zero", 'write for example "4 s"')
    start, over = report.since_start_ns(greedy.start), report.since_start_ns(LOAD_END)
    last = wanted.rate[-1]
    silent = report.since_start_ns(last.since)
    if start is None or over is None or silent is None:
        return
    if last.rate > 0 or silent > start:
        rule = f"begins {text_ns(start)} after the start, when `rate` has not reached 0 /s"
        report.add((*path, "start"), None, rule, "end the rate with `{from: MOMENT, rate: 0 /s}` before it")
    if start + greedy.duration > over:
        rule = f"ends after the load, which ends with the hold, {text_ns(over)} after the start"
        report.add((*path, "for"), text_ns(greedy.duration), rule, "shorten it, or lengthen the hold")


def _check_machine(report: Checks, here: Here, options: MiddlewareOptions, path: Path) -> None:
    if options.memory < _LEAST_HEAP:
        rule = f"is less than {_LEAST_HEAP >> 20} MiB, in which the libraries do not start"
        report.add((*path, "memory"), f"{options.memory} B", rule, 'write for example "128 MiB"')
    light(report, here, path, "whose image has neither Java nor the program")
    for node in here.nodes:
        if "IPv6" in report.families(node):
            rule = f"several of the libraries know IPv4 alone, and {node} has addresses of IPv6"
            report.add(path, None, rule, "give its segment a subnet of IPv4")
            return


def _sides(report: Checks, node: str) -> list[MiddlewareOptions]:
    return [model.middleware for model in report.programs(node).values() if isinstance(model, Middleware)]
