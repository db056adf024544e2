"""Implements `vnet why`, which divides the time of a run's messages into parts, and names the causes of lost
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from contract.verdict import HOLDS, OPEN
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import json_option, print_json, say
from orchestrator.cli.why_effect import cause_lines, effect_lines, effect_of

if TYPE_CHECKING:
    from capture.why.answer import Answer
    from capture.why.lost import Lost
    from capture.why.summary import OfClass, Sum

BAR = 32  # characters of a waterfall's bar for the whole time
SHOWN = 0.005  # parts with a smaller share of the time are summed up as `other`


@click.command("why")
@click.argument("run_dir", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("message", required=False, metavar="[FLOW:SEQ]")
@click.option("--worst", type=click.IntRange(1), help="The N worst: lost ones first, then the slowest.")
@click.option("--class", "traffic_class", metavar="CLASS", help="Only messages of this class.")
@click.option("--without", metavar="KIND:NAME", help="Repeat the run without that cause; show the effect.")
@click.option("--confirm", is_flag=True, help="Like --without, with the first cause that is found.")
@json_option
def why_command(
    run_dir: Path, message: str | None, worst: int | None, traffic_class: str | None, without: str | None,
    confirm: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show where the time of a message went, and where one that never arrived was dropped.

    The parts add up to the latency exactly; what captures do not show is a part of its own, `unexplained`.
    Without a message and --worst: the sums of each class, and its slowest message.

    Causes are flow:FLOW, rate:, queue:, loss:, jitter: and cut:LINK, nagle:, cpu:, events: and lookup:NODE.
    --without and --confirm repeat a run in virtual time, with all seeds the same.

    \b
    Example:  vnet why results/dumbbell/20260131T120000 client1.meter:12
              vnet why results/dumbbell/20260131T120000 --worst 3 --class site-a
              vnet why results/dumbbell/20260131T120000 --without flow:s1.send
    """
    from capture.errors import CaptureError
    from capture.why.answer import Run
    from capture.why.causes import causes
    from capture.why.select import select, slowest
    from capture.why.summary import by_class

    if message is not None and (worst is not None or traffic_class is not None):
        raise CliError("FLOW:SEQ names one message; leave out --worst and --class", USAGE)
    if without is not None and confirm:
        raise CliError("--confirm chooses the cause itself; leave out --without or it", USAGE)
    try:
        run = Run(run_dir)
        chosen = rows = select(run, message, worst, traffic_class)
        classes = by_class(run, rows) if message is None and worst is None else []
        found_causes = causes(run, rows)
        if classes:
            rows = slowest(rows)
        answers = list(run.answers(rows, behind=True))
    except CaptureError as error:
        raise CliError(str(error)) from error
    named = found_causes.named
    wanted = str(named[0].cause) if confirm and named else without
    effect = effect_of(run_dir, chosen, wanted, named) if wanted else None
    if as_json:
        found = [_object(one) for one in answers]
        sums = [{**asdict(one), "text": one.text} for one in classes]
        causes_ = [{**asdict(one), "cause": str(one.cause)} for one in named]
        done = asdict(effect) if effect else None
        untold = {"unexplained_share": found_causes.unexplained_share, "lost": found_causes.lost_untold}
        print_json({"classes": sums, "messages": found, "causes": causes_, "untold": untold, "effect": done})
        return
    for of in classes:
        say("\n".join(_class_lines(of)) + "\n")
    say("\n\n".join("\n".join(_lines(one)) for one in answers))
    gone = "lost or unanswered" if (chosen["pattern"] == "request").any() else "lost"
    say("\n" + "\n".join([*cause_lines(found_causes, gone), *(effect_lines(effect, gone) if effect else ())]))


def _object(answer: Answer) -> dict[str, Any]:
    return {"message": answer.message, **asdict(answer)}


def _class_lines(of: OfClass) -> Iterator[str]:
    unanswered = f", {of.unanswered} requests unanswered" if of.unanswered else ""
    yield f"class {of.traffic_class}: {of.messages} messages, {of.lost} lost{unanswered}"
    if of.text:
        yield f"  {of.text}"
    yield from _sums("all that arrived", of.parts)
    yield from _sums("from p99 on", of.slow)
    for owner, number in of.owners.items():
        gone = "unanswered" if of.unanswered else "lost"
        yield f"  {gone}: {number}, " + (owner if owner == OPEN else f"dropped by {owner}")


def _sums(title: str, parts: Sequence[Sum]) -> Iterator[str]:
    if parts:
        yield f"  {title}:"
    for one in parts:
        if one.share >= SHOWN:
            behind = ", ".join(f"{node} {share:.0%}" for node, share in list(one.behind.items())[:3])
            yield f"  {one.share:6.1%}  {one.what:<16} {one.where}" + (f", behind {behind}" if behind else "")


def _lines(answer: Answer) -> Iterator[str]:
    """Yields the lines of a message: a heading, then its waterfall, or the place where it was dropped."""
    total = answer.latency_ns
    missing = "no reply" if answer.received else "never arrived"
    fate = missing if total is None else f"{total / 1e6:,.6f} ms"
    yield f"{answer.message} ({answer.traffic_class}) to {answer.receiver or 'nobody'}: {fate}"
    for note in answer.notes:
        yield f"  note: {note}"
    if answer.lost:
        yield from _lost_lines(answer.lost, answer.scheduled_ns)
    for part in answer.parts:
        assert total
        first = BAR * (part.begin_ns - answer.scheduled_ns) // total
        last = -(-BAR * (part.begin_ns + part.length_ns - answer.scheduled_ns) // total)
        bar = " " * first + "#" * max(last - first, 1)
        behind = ", ".join(f"{node} {size:,} B" for node, size in list(part.behind.items())[:3])
        what = f"{part.what}: {part.where}" + (f", behind {behind}" if behind else "")
        yield f"  {part.length_ns / 1e6:14,.6f} ms {part.length_ns / total:6.1%} |{bar:<{BAR}}| {what}"


def _lost_lines(lost: Lost, scheduled_ns: int) -> Iterator[str]:
    """Yields the place where a message was dropped, the place where it was seen last, and the counters that
    changed.
    """
    owners = " or ".join(lost.owners) or "nothing that captures and counters show"
    yield f"  {'dropped by' if lost.verdict == HOLDS else 'cannot tell where it was dropped:'} {owners}"
    yield f"  last seen: {lost.last_seen}, {(lost.last_ns - scheduled_ns) / 1e6:,.6f} ms after it was due"
    yield f"  {lost.text}"
    for one in lost.counters:
        near = "" if one.near is None else f", {one.near} of them around that time"
        yield f"  counter: {one.where} {one.name}: {one.value} in the run{near}"
