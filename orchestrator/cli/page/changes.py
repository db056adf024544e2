"""What the page changes in a lab: by the operations that the command line uses, said to be by whom."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.control import ControlError, payload
from orchestrator.cli.errors import CliError
from orchestrator.cli.link import QUANTITIES, SIDES, completed
from orchestrator.cli.page.connection import Connection

Json = dict[str, Any]
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
    answer = payload(await connection.call("link", link=name, by=by(), **fields))
    return {**answer, "snippet": snippet(name, answer, wanted)}


async def _power(connection: Connection, wanted: Json) -> Json:
    """{action, nodes, software?}: the whole node without `software`."""
    action, nodes, software = wanted.get("action"), wanted.get("nodes"), wanted.get("software")
    if action not in ACTIONS or not isinstance(nodes, list) or not nodes:
        raise RefusedError(f"action: one of {', '.join(ACTIONS)}, and nodes: a list of names")
    op = {"op": "software", "software": software} if software else {"op": "node"}
    answer = payload(await connection.call(**op, action=action, nodes=nodes, by=by()))
    one = f"{action}: {', '.join(map(str, nodes))}" + (f", software: {software}" if software else "")
    return {**answer, "snippet": one}


CHANGES = {"link": _link, "power": _power}


def by() -> str:
    """Who changes: the account that serves the page."""
    return f"{getpass.getuser()} on the live page"


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
