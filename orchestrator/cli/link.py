"""Implements `vnet link`, which changes a link's impairment, or takes it down and up, in a running lab."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orchestrator.cli import completing
from orchestrator.cli.control import Control, payload
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.quantities import DURATION, RATE, SHARE
from orchestrator.cli.running import asked, by, connect

if TYPE_CHECKING:
    from contract.plan import Impairment

F = TypeVar("F", bound=Callable[..., Any])
SIDES = ("forward", "reverse")

# For each option: its name, the field of the impairment, the type, the help text.
QUANTITIES: tuple[tuple[str, str, click.ParamType[Any] | type, str], ...] = (
    ("--delay", "delay_ns", DURATION, 'One-way delay: "20 ms".'),
    ("--jitter", "jitter_ns", DURATION, 'Spread of the delay: "2 ms".'),
    (
        "--delay-correlation",
        "delay_correlation",
        SHARE,
        'Correlation of each delay with the previous one: "25 %".',
    ),
    ("--loss", "loss", SHARE, 'Uniform loss: "1 %"; replaces a Gilbert-Elliott model.'),
    ("--loss-correlation", "loss_correlation", SHARE, "Correlation of each loss with the previous one."),
    ("--duplicate", "duplicate", SHARE, "Packets sent twice."),
    ("--corrupt", "corrupt", SHARE, "Packets with one flipped bit."),
    ("--reorder", "reorder", SHARE, "Packets sent immediately, ahead of delayed ones."),
    ("--rate", "rate_bps", RATE, 'Rate of the link: "250 kbit/s"; "0 bit/s" removes the limit.'),
    ("--limit", "limit_packets", int, "Queue in packets; sized from rate and delay if not given."),
)
DISTRIBUTIONS = click.Choice(["uniform", "normal", "pareto", "paretonormal"])


# The same table for the options of one class or band of the link's queue.
OF_A_CLASS: tuple[tuple[str, str, click.ParamType[Any] | type, str], ...] = (
    ("--guaranteed", "class_rate_bps", RATE, "Guaranteed rate of a class."),
    ("--ceiling", "class_ceil_bps", RATE, "Maximum rate of a class, with borrowing."),
    ("--class-limit", "class_limit_packets", int, "Queue length of the class in packets."),
)


def _quantities(command: F) -> F:
    for option, field, kind, text in reversed((*QUANTITIES, *OF_A_CLASS)):
        command = click.option(option, field, type=kind, help=text)(command)
    return command


@click.command("link")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("link", shell_complete=completing.links)
@click.option("--forward", is_flag=True, help="Only from the link's first end to its second.")
@click.option("--reverse", is_flag=True, help="Only from its second end to its first.")
@_quantities
@click.option("--class", "queue_class", metavar="NAME", help="Change this class or band of the link's queue.")
@click.option("--distribution", type=DISTRIBUTIONS, help="Distribution of the jitter.")
@click.option("--clear", is_flag=True, help="Remove all impairments first.")
@click.option("--down", is_flag=True, help="Take the link down.")
@click.option("--up", is_flag=True, help="Put it up again.")
@json_option
def link_command(
    lab: str,
    link: str,
    forward: bool,
    reverse: bool,
    clear: bool,
    down: bool,
    up: bool,
    as_json: bool,
    queue_class: str | None,
    **given: Any,
) -> None:
    """Change LINK of a running lab, in both directions unless one is given. The new values are read back.

    \b
    Example:  vnet link pair left-access --delay "50 ms" --loss "1 %"
              vnet link pair left-access --down
              vnet link pair wan --class voice --guaranteed "2 Mbit/s"
    """
    changes = {name: value for name, value in given.items() if value is not None}
    of_class = {f.removeprefix("class_"): changes.pop(f) for _, f, *_ in OF_A_CLASS if f in changes}
    if (queue_class is None) != (not of_class):
        listed = ", ".join(option for option, *_ in OF_A_CLASS)
        raise CliError(f"link: --class names a class, and one of {listed} its new value; give both", USAGE)
    if queue_class is not None:
        changes["queue"] = (queue_class, of_class)
    if down and up:
        raise CliError("link: --down and --up contradict each other; give one", USAGE)
    if not (changes or clear or down or up):
        raise CliError("link: nothing to change; give an impairment, --clear, --down or --up", USAGE)
    sides = [side for side, named in zip(SIDES, (forward, reverse), strict=True) if named] or list(SIDES)
    with connect(lab) as control:
        request = _impairments(control, link, sides, changes, clear) if changes or clear else {}
        answer = payload(
            asked(
                control,
                "link",
                link=link,
                by=by(),
                **request,
                **({"down": True} if down else {}),
                **({"up": True} if up else {}),
            )
        )
    if as_json:
        print_json({"lab": lab, **answer})
    else:
        for line in said(answer):
            note(line)


def _impairments(
    control: Control, link: str, sides: list[str], changes: dict[str, Any], clear: bool
) -> dict[str, dict[str, Any]]:
    """Returns the fields of the request: for each of `sides` its new impairment (see `completed`). Raises
    CliError if the lab has no such link.
    """
    links = asked(control, "inspect")["links"]
    if link not in links:
        raise CliError(f'link "{link}": the lab has no such link; its links: {_some(links)}')
    return {side: completed(links[link][side]["requested"], changes, clear) for side in sides}


def completed(now: dict[str, Any], changes: dict[str, Any], clear: bool) -> dict[str, Any]:
    """Returns the new impairment: the present one `now` (an empty one if `clear`) with `changes`. A new loss
    replaces a loss in bursts. The queue limit is computed from the new rate and delay, unless it is in
    `changes`. Raises CliError if the kernel does not support this combination, or the queue has no such
    class.
    """
    import dataclasses

    from contract.codec import build
    from contract.plan import Impairment
    from orchestrator.plan.netem import sized
    from orchestrator.plan.queues import impossible

    base = dataclasses.asdict(Impairment()) if clear else now
    uniform = {"gemodel": None} if "loss" in changes else {}
    of_class = {"queue": base["queue"]} if "queue" in changes else {}
    wanted = build(Impairment, {**base, **uniform, **changes, **of_class})
    if "queue" in changes:
        wanted = _class_changed(wanted, *changes["queue"])
    if (wrong := impossible(wanted)) is not None:
        raise CliError(f"link: {wrong}", USAGE)
    return dataclasses.asdict(sized(wanted, changes.get("limit_packets")))


def _class_changed(wanted: Impairment, name: str, changes: dict[str, Any]) -> Impairment:
    """Returns the impairment with new values of the queue class `name`. Raises CliError if there is no such
    class, or for rates in a queue whose classes have no rates.
    """
    import dataclasses

    from orchestrator.plan.queues import with_bands

    bands = wanted.queue.bands if wanted.queue is not None else ()
    if name not in [band.name for band in bands]:
        listed = ", ".join(band.name for band in bands) or "none"
        raise CliError(f"link: --class {name}: its queue has no such class; its classes: {listed}", USAGE)
    if any(field != "limit_packets" for field in changes) and not any(band.rate_bps for band in bands):
        assert wanted.queue is not None
        rule = f"classes of {wanted.queue.kind} have no rates"
        raise CliError(f"link: --guaranteed, --ceiling: {rule}; change --class-limit", USAGE)
    changed = tuple(dataclasses.replace(b, **changes) if b.name == name else b for b in bands)
    return with_bands(wanted, changed)


def _some(names: dict[str, Any]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") or "none"


def said(answer: dict[str, Any]) -> list[str]:
    """Returns lines on the state of a link after a change, from the lab's answer: the impairment of each
    changed direction, and `down`. If nothing else changed, the line is `up`.
    """
    from contract.codec import build
    from contract.plan import Impairment
    from orchestrator.plan.summary import impairment_words

    lines = []
    for side in SIDES:
        if answer.get(side):
            words = ", ".join(impairment_words(build(Impairment, answer[side]))) or "plain wire"
            lines.append(f"{answer['link']} {side}: {words}")
    return [*lines, f"{answer['link']}: down"] if answer.get("down") else lines or [f"{answer['link']}: up"]
