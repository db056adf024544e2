"""What the page changes in a lab: by the operations that the command line uses, said to be by whom."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.add import fields, new_nodes
from orchestrator.cli.control import ControlError, payload
from orchestrator.cli.errors import CliError
from orchestrator.cli.link import QUANTITIES, SIDES, completed
from orchestrator.cli.page.connection import Connection
from orchestrator.cli.running import by

Json = dict[str, Any]
WHERE = "on the live page"
MOST_ADDED = 100
ACTIONS = ("start", "stop", "restart")


class RefusedError(Exception):
    """A change that cannot be made; the text says why."""


async def change(control: Path, what: str, wanted: Json) -> Json:
    """Carry one change out on the lab behind `control`; RefusedError with the lab's or the value's text."""
    try:
        connection = await Connection.open(control)
        try:
            return await CHANGES[what](connection, wanted)
        finally:
            await connection.close()
    except (ControlError, CliError, click.BadParameter) as error:
        raise RefusedError(error.message if isinstance(error, click.BadParameter) else str(error)) from error


async def _link(connection: Connection, wanted: Json) -> Json:
    """{link, sides?, changes?: {"delay": "20 ms", ...}, clear?, down?, up?}."""
    name, sides = str(wanted.get("link")), wanted.get("sides") or list(SIDES)
    given = wanted.get("changes") or {}
    if not isinstance(given, dict) or not set(sides) <= set(SIDES):
        raise RefusedError("link: give changes by name, and sides of forward, reverse")
    changes = _values(given)
    fields: Json = {word: True for word in ("down", "up") if wanted.get(word)}
    if len(fields) == 2:
        raise RefusedError("link: down and up contradict each other; give one")
    clear = bool(wanted.get("clear"))
    if changes or clear:
        links = (await connection.call("inspect"))["links"]
        if name not in links:
            raise RefusedError(f"link {name}: the lab has none of that name")
        fields |= {side: completed(links[name][side]["asked"], changes, clear) for side in sides}
    if not fields:
        raise RefusedError("link: nothing to change; give a quantity, down or up")
    answer = payload(await connection.call("link", link=name, by=by(WHERE), **fields))
    return {**answer, "snippet": snippet(name, answer, wanted)}


async def _power(connection: Connection, wanted: Json) -> Json:
    """{action, nodes, software?}: the whole node without `software`."""
    action, nodes, software = wanted.get("action"), wanted.get("nodes"), wanted.get("software")
    if action not in ACTIONS or not isinstance(nodes, list) or not nodes:
        raise RefusedError(f"action: one of {', '.join(ACTIONS)}, and nodes: a list of names")
    op = {"op": "software", "software": software} if software else {"op": "node"}
    answer = payload(await connection.call(**op, action=action, nodes=nodes, by=by(WHERE)))
    one = f"{action}: {', '.join(map(str, nodes))}" + (f", software: {software}" if software else "")
    return {**answer, "snippet": one}


async def _add(connection: Connection, wanted: Json) -> Json:
    """{group, count?, idle?}: clones of a group's nodes."""
    group, count = wanted.get("group"), wanted.get("count", 1)
    if not isinstance(group, str) or not isinstance(count, int) or not 0 < count <= MOST_ADDED:
        raise RefusedError(f"add: give group, and count from 1 to {MOST_ADDED}")
    run_dir = Path((await connection.call("status"))["run_dir"])
    now = (await connection.call("inspect"))["nodes"]
    try:
        clones = await asyncio.to_thread(new_nodes, run_dir, now, group, count, idle=bool(wanted.get("idle")))
    except (OSError, ValueError, KeyError) as error:
        raise RefusedError(f"add: {run_dir}/plan.json: cannot be read: {error}") from error
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
    """{nodes}."""
    nodes = _names(wanted, "remove")
    answer = payload(await connection.call("remove", nodes=nodes, by=by(WHERE)))
    return {**answer, "note": f"without {', '.join(nodes)}"}


async def _capture(connection: Connection, wanted: Json) -> Json:
    """{action: on, at, filter?} or {action: off, name}."""
    known = {key: wanted[key] for key in ("action", "at", "filter", "name") if wanted.get(key)}
    answer = payload(await connection.call("capture", **known, by=by(WHERE)))
    if known.get("action") != "on":
        return answer
    chosen = f", filter: {json.dumps(known['filter'])}" if known.get("filter") else ""
    return {**answer, "capture": f"{answer['name'].removeprefix('live-')}: {{at: {answer['at']}{chosen}}}"}


CHANGES = {"link": _link, "power": _power, "add": _add, "remove": _remove, "capture": _capture}


def _names(wanted: Json, what: str) -> list[str]:
    nodes = wanted.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise RefusedError(f"{what}: give nodes, a list of names")
    return [str(name) for name in nodes]


def _values(given: Json) -> Json:
    """{field: number} of quantities as people write them; click.BadParameter names what is wrong."""
    known = {option.lstrip("-").replace("-", "_"): (field, kind) for option, field, kind, _ in QUANTITIES}
    found = {}
    for name, text in given.items():
        if name not in known:
            raise RefusedError(f"{name}: no quantity of a link; there are: {', '.join(known)}")
        field, kind = known[name]
        try:
            found[field] = _convert(kind, str(text))
        except click.BadParameter as error:
            raise RefusedError(f"{name}: {error.message}") from error
    return found


def _convert(kind: Any, text: str) -> Any:
    converter: Any = kind if isinstance(kind, click.ParamType) else click.INT
    return converter.convert(text, None, None)


def snippet(link: str, answer: Json, wanted: Json) -> str:
    """The change as the rest of a timeline event, without its moment."""
    for word in ("down", "up"):
        if wanted.get(word):
            return f"link-{word}: {link}"
    shown = {side: _written(answer[side]) for side in SIDES if answer.get(side)}
    if len(shown) == 2 and shown["forward"] == shown["reverse"]:
        return f"impair: {link}, both: {{{shown['forward']}}}"
    return f"impair: {link}, " + ", ".join(f"{side}: {{{text}}}" for side, text in shown.items())


def _written(impairment: Json) -> str:
    from orchestrator.language.units import text_bps, text_ns, text_share

    parts = {
        "delay": text_ns, "jitter": text_ns, "loss": text_share, "duplicate": text_share,
        "corrupt": text_share, "reorder": text_share, "rate": text_bps,
    }  # fmt: skip
    fields = {name: f"{name}_ns" if name in ("delay", "jitter") else name for name in parts} | {
        "rate": "rate_bps"
    }
    return ", ".join(f"{n}: {parts[n](impairment[f])}" for n, f in fields.items() if impairment.get(f))
