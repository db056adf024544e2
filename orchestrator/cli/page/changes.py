"""Applies changes from the live page to a running lab, as the commands of `vnet` do; the lab's events name
the user and the page as their author.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from contract.rundir import UnreadableError
from orchestrator.cli.add import fields, new_nodes
from orchestrator.cli.control import ControlError, payload
from orchestrator.cli.errors import CliError
from orchestrator.cli.link import DISTRIBUTIONS, OF_A_CLASS, QUANTITIES, SIDES, completed
from orchestrator.cli.page.connection import Connection
from orchestrator.cli.page.snippets import left_out, snippet
from orchestrator.cli.quantities import CPU
from orchestrator.cli.running import by
from orchestrator.cli.set import HOST_NAME, changed

Json = dict[str, Any]
WHERE = "on the live page"
MOST_ADDED = 100
ACTIONS = ("start", "stop", "restart")
SETTINGS = {"mtu": click.IntRange(68, 65535), "cpu_limit": CPU, "cpu_reserve": CPU, "hostname": click.STRING}


class RefusedError(Exception):
    """Raised if the page or the lab refuses a change; the text gives the reason."""


async def change(control: Path, what: str, wanted: Json) -> Json:
    """Applies the change `what` (a key of CHANGES) to the lab with this control socket; returns its answer.

    `wanted` has the fields that the function of the change describes. Raises RefusedError if it is refused.
    """
    try:
        connection = await Connection.open(control)
        try:
            return await CHANGES[what](connection, wanted)
        finally:
            await connection.close()
    except (ControlError, CliError, click.BadParameter) as error:
        raise RefusedError(error.message if isinstance(error, click.BadParameter) else str(error)) from error


async def _link(connection: Connection, wanted: Json) -> Json:
    """Changes a link; returns the lab's answer with a snippet for the topology file.

    wanted: {link, sides?, changes?: {"delay": "20 ms", ...}, class?: {name, guaranteed?, ceiling?,
    class_limit?}, clear?, down?, up?}; without `sides`, both.
    """
    name, sides = str(wanted.get("link")), wanted.get("sides") or list(SIDES)
    given = wanted.get("changes") or {}
    if not isinstance(given, dict) or not set(sides) <= set(SIDES):
        raise RefusedError("link: give changes by name, and sides of forward, reverse")
    changes = _values(given) | _of_a_class(wanted.get("class"))
    fields: Json = {word: True for word in ("down", "up") if wanted.get(word)}
    if len(fields) == 2:
        raise RefusedError("link: down and up contradict each other; give one")
    clear = bool(wanted.get("clear"))
    if changes or clear:
        links = (await connection.call("inspect"))["links"]
        if name not in links:
            raise RefusedError(f"link {name}: the lab has none of that name")
        fields |= {side: completed(links[name][side]["requested"], changes, clear) for side in sides}
    if not fields:
        raise RefusedError("link: nothing to change; give a quantity, down or up")
    answer = payload(await connection.call("link", link=name, by=by(WHERE), **fields))
    return {**answer, "snippet": snippet(name, answer, wanted), "left_out": left_out(answer)}


async def _power(connection: Connection, wanted: Json) -> Json:
    """Starts, stops or restarts nodes, or one software on them. wanted: {action, nodes, software?}."""
    action, nodes, software = wanted.get("action"), wanted.get("nodes"), wanted.get("software")
    if action not in ACTIONS or not isinstance(nodes, list) or not nodes:
        raise RefusedError(f"action: one of {', '.join(ACTIONS)}, and nodes: a list of names")
    op = {"op": "software", "software": software} if software else {"op": "node"}
    answer = payload(await connection.call(**op, action=action, nodes=nodes, by=by(WHERE)))
    one = f"{action}: {', '.join(map(str, nodes))}" + (f", software: {software}" if software else "")
    return {**answer, "snippet": one}


async def _add(connection: Connection, wanted: Json) -> Json:
    """Adds clones of a group's nodes. wanted: {group, count? (1), idle?}."""
    group, count = wanted.get("group"), wanted.get("count", 1)
    if not isinstance(group, str) or not isinstance(count, int) or not 0 < count <= MOST_ADDED:
        raise RefusedError(f"add: give group, and count from 1 to {MOST_ADDED}")
    run_dir = Path((await connection.call("status"))["run_dir"])
    now = (await connection.call("inspect"))["nodes"]
    try:
        clones = await asyncio.to_thread(new_nodes, run_dir, now, group, count, idle=bool(wanted.get("idle")))
    except UnreadableError as error:
        raise RefusedError(f"add: {error}") from error
    added: list[str] = []
    for clone in clones:
        try:
            await connection.call("add", **fields(clone), by=by(WHERE))
        except ControlError as error:
            there = ", ".join(added) or "none"
            raise RefusedError(f"{clone.node.name}: {error} (added before it: {there})") from error
        added.append(clone.node.name)
    return {"added": added, "note": f"groups: {group}: count: {count} more"}


async def _remove(connection: Connection, wanted: Json) -> Json:
    """Removes nodes. wanted: {nodes}."""
    nodes = _names(wanted, "remove")
    answer = payload(await connection.call("remove", nodes=nodes, by=by(WHERE)))
    return {**answer, "note": f"without {', '.join(nodes)}"}


async def _set(connection: Connection, wanted: Json) -> Json:
    """Changes nodes. wanted: {nodes, mtu?, cpu_limit?, cpu_reserve?, hostname?}, as texts with units."""
    nodes = _names(wanted, "set")
    given = {key: str(wanted[key]).strip() for key in SETTINGS if str(wanted.get(key) or "").strip()}
    if not given:
        raise RefusedError(f"set: nothing to change; give one of {', '.join(SETTINGS)}")
    values = {key: _converted(key, SETTINGS[key], text) for key, text in given.items()}
    host_name = values.get("hostname")
    if host_name is not None and (len(nodes) > 1 or not HOST_NAME.fullmatch(host_name)):
        raise RefusedError("hostname: of one node; letters, digits and -, at most 64")
    fields = changed(values.get("mtu"), values.get("cpu_limit"), values.get("cpu_reserve"), host_name)
    answer = payload(await connection.call("set", nodes=nodes, by=by(WHERE), **fields))
    said = ", ".join(f"{key} {text}" for key, text in given.items())
    return {**answer, "note": f"{', '.join(nodes)}: {said}"}


async def _snapshot(connection: Connection, wanted: Json) -> Json:
    """Saves or restores virtual machines. wanted: {action: snapshot or revert, nodes, name? (snapshot)}."""
    action, nodes = wanted.get("action"), _names(wanted, "snapshot")
    if action not in ("snapshot", "revert"):
        raise RefusedError("action: snapshot or revert")
    name = wanted.get("name") or "snapshot"
    return payload(await connection.call(action, nodes=nodes, name=name, by=by(WHERE)))


async def _capture(connection: Connection, wanted: Json) -> Json:
    """Starts or stops a capture. wanted: {action: on, at, filter?} or {action: off, name}."""
    known = {key: wanted[key] for key in ("action", "at", "filter", "name") if wanted.get(key)}
    answer = payload(await connection.call("capture", **known, by=by(WHERE)))
    if known.get("action") != "on":
        return answer
    chosen = f", filter: {json.dumps(known['filter'])}" if known.get("filter") else ""
    return {**answer, "capture": f"{answer['name'].removeprefix('live-')}: {{at: {answer['at']}{chosen}}}"}


CHANGES = {
    "link": _link, "power": _power, "add": _add, "remove": _remove, "set": _set, "snapshot": _snapshot,
    "capture": _capture,
}  # fmt: skip


def _names(wanted: Json, what: str) -> list[str]:
    nodes = wanted.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise RefusedError(f"{what}: give nodes, a list of names")
    return [str(name) for name in nodes]


def _values(given: Json) -> Json:
    """Converts a link's quantities {name: text with unit} to {field: value}; RefusedError names a mistake."""
    known = {_word(option): (field, kind) for option, field, kind, _ in QUANTITIES}
    known["distribution"] = ("distribution", DISTRIBUTIONS)
    found = {}
    for name, text in given.items():
        if name not in known:
            raise RefusedError(f"{name}: no quantity of a link; there are: {', '.join(known)}")
        field, kind = known[name]
        found[field] = _converted(name, kind, str(text))
    return found


def _of_a_class(wanted: Any) -> Json:
    """Returns the changes of one class of the link's queue for `link.completed`; empty if `wanted`
    is None.
    """
    if wanted is None:
        return {}
    known = {_word(option): (field, kind) for option, field, kind, _ in OF_A_CLASS}
    if not isinstance(wanted, dict) or not wanted.get("name") or not set(wanted) - {"name"} or (
        set(wanted) - {"name", *known}
    ):  # fmt: skip
        raise RefusedError(f"class: give its name, and what changes: {', '.join(known)}")
    changes = {
        known[key][0].removeprefix("class_"): _converted(key, known[key][1], str(text))
        for key, text in wanted.items() if key != "name"
    }  # fmt: skip
    return {"queue": (str(wanted["name"]), changes)}


def _word(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _converted(name: str, kind: Any, text: str) -> Any:
    converter: Any = kind if isinstance(kind, click.ParamType) else click.INT
    try:
        return converter.convert(text, None, None)
    except click.BadParameter as error:
        raise RefusedError(f"{name}: {error.message}") from error
