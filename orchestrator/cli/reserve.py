"""Implements `vnet reserve`, which reserves cores, memory and NICs of this machine for an account until a
stated time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import DONE, REFUSED, USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, table
from orchestrator.cli.quantities import AGE, DATE, SIZE

if TYPE_CHECKING:
    from orchestrator.reservations.model import Reservation


@click.group("reserve")
def reserve_command() -> None:
    """Reserve cores, memory and NICs of this machine; list and end reservations.

    All accounts of the machine see all reservations. `vnet up` and `vnet run` refuse a lab that needs what
    another account has reserved at that moment.
    """


@reserve_command.command("add")
@click.option("--cores", type=click.FloatRange(min=0, min_open=True), default=None, help="Number of cores.")
@click.option("--memory", type=SIZE, metavar="SIZE", help="Memory: 16 GB.")
@click.option("--nic", "nics", multiple=True, metavar="NIC", help="Interface or PCI address (repeat it).")
@click.option("--for", "length", type=AGE, metavar="TIME", required=True, help="Duration: 2 h, 3 d.")
@click.option("--from", "start", type=DATE, metavar="DATE", help="Start in UTC: 2026-11-28T09:00; else now.")
@click.option("--note", "why", default="", help="Shown to the others.")
@click.option("--queue", is_flag=True, help="If it does not fit then, take the first time at which it does.")
@json_option
def add_command(
    cores: float | None,
    memory: int | None,
    nics: tuple[str, ...],
    length: int,
    start: int | None,
    why: str,
    queue: bool,
    as_json: bool,
) -> int:
    """Reserve cores, memory and NICs for this account; behind sudo, for the account that called it.

    \b
    Example:  vnet reserve add --cores 1 --memory "1 GB" --for "2 h" --queue
    """
    from orchestrator.reservations import quotas, store
    from orchestrator.reservations.model import Amount, Reservation, ReservationError

    now = time.time_ns()
    first = now if start is None else start
    if not (cores or memory or nics):
        raise CliError("reserve: nothing is named: give --cores, --memory or --nic", USAGE)
    if length <= 0 or first + length <= now:
        raise CliError("reserve: ends before it begins, or has ended; give a later --from or --for", USAGE)
    if not why.isprintable() or len(why) > 100:
        raise CliError("reserve: --note: at most 100 printable characters", USAGE)
    amount = Amount(cores or 0.0, memory or 0, tuple(dict.fromkeys(_key(nic) for nic in nics)))
    uid = store.account()
    new = Reservation("", uid, store.name_of(uid), amount, first, first + length, why)
    try:
        made = store.add(store.directory(), new, store.machine(), queue, quotas.of(uid, new.account))
    except ReservationError as error:
        raise CliError(str(error), REFUSED) from None
    if as_json:
        print_json(_facts(made, now))
    else:
        note(f"reserved: {made}; `vnet reserve end {made.name}` ends it")
    return DONE


@reserve_command.command("ls")
@json_option
def ls_command(as_json: bool) -> None:
    """List the reservations of all accounts that have not ended, by their start.

    \b
    Example:  vnet reserve ls
    """
    from orchestrator.reservations import store
    from orchestrator.reservations.model import ReservationError

    now = time.time_ns()
    try:
        every, wrong = store.read(store.directory())
    except ReservationError as error:
        raise CliError(str(error)) from None
    for text in wrong:
        note(f"warning: {text}")
    found = [_facts(one, now) for one in every if one.end_ns > now]
    if as_json:
        print_json(found)
    elif not found:
        note("nothing is reserved")
    else:
        heads = ("name", "account", "state", "amount", "from", "until", "note")
        console().print(table(heads, [[str(one[head]) for head in heads] for one in found]))


@reserve_command.command("end")
@click.argument("name")
def end_command(name: str) -> None:
    """End an own reservation, before its time if need be.

    \b
    Example:  vnet reserve end r1a2b3c
    """
    from orchestrator.reservations import store
    from orchestrator.reservations.model import ReservationError

    try:
        ended = store.end(store.directory(), name, store.account())
    except ReservationError as error:
        raise CliError(str(error), REFUSED) from None
    note(f"ended: {ended}")


def _key(asked: str) -> str:
    """Returns the key of the one NIC that `asked` names; CliError if it names none, or several."""
    from orchestrator.nics import facts
    from orchestrator.nics.resolve import candidates, listed

    seen = facts.look()
    found = candidates(asked, seen)
    if len(found) == 1:
        return found[0].key
    rule = "no such NIC is in this machine" if not found else f"names {len(found)} NICs"
    raise CliError(f'reserve: --nic "{asked}": {rule}; it has {listed(seen)}', REFUSED)


def _facts(one: Reservation, now: int) -> dict[str, Any]:
    from orchestrator.language.dates import date_text

    return {
        "name": one.name, "account": one.account, "state": "now" if one.at(now) else "later",
        "amount": str(one.amount), "cores": one.amount.cores, "memory_bytes": one.amount.memory_bytes,
        "nics": list(one.amount.nics), "from": date_text(one.start_ns), "until": date_text(one.end_ns),
        "note": one.note,
    }  # fmt: skip
