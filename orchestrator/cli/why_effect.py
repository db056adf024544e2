"""Prints the causes that `vnet why` names, and the effect of a run without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contract.verdict import FAILS, HOLDS, OPEN
from orchestrator.cli.errors import CliError

if TYPE_CHECKING:
    import polars as pl

    from capture.why.causes import Causes, Named
    from orchestrator.verify.counterfactual import Effect

WORDS: dict[str, str] = {HOLDS: "confirmed", FAILS: "not confirmed"}


def cause_lines(found: Causes, gone: str = "lost") -> Iterator[str]:
    """Yields a line for each cause, the most important first, then one for messages without a cause; or one
    line that no cause was found.

    gone: the word for messages that never arrived and requests without a reply.
    """
    from capture.why.causes import MEANING

    if not found.named and not found.untold:
        yield "causes: none; the messages took what the lab's delays and rates take"
    for place, one in enumerate(found.named, 1):
        time = f"{one.share:.0%} of the slowest messages' time" if one.foretold_ns else ""
        lost = f"{one.lost} {gone}" if one.lost else ""
        amount = ", ".join(text for text in (time, lost) if text)
        yield f"cause {place}: {one.cause} ({MEANING[one.cause.kind]}): {amount}"
    if found.untold:
        share = found.unexplained_share
        time = f"{share:.0%} of the slowest messages' time is unexplained" if share else ""
        untold = f"who dropped {found.lost_untold} of the {gone} messages is not known"
        lost = untold if found.lost_untold else ""
        amount = "; ".join(text for text in (time, lost) if text)
        yield f"{'more causes' if found.named else 'causes'}: {OPEN}: {amount}"


def effect_of(run_dir: Path, rows: pl.DataFrame, cause: str, found: Sequence[Named]) -> Effect:
    """Runs the run again without a cause and returns the effect on `rows` of its messages; CliError if that
    is impossible.
    """
    from contract.rundir import read_plan
    from orchestrator.cli.progress import planned
    from orchestrator.cli.views import view
    from orchestrator.verify.counterfactual import counterfactual
    from orchestrator.verify.verify import VerifyError
    from orchestrator.verify.without import WithoutError

    named = next((one for one in found if str(one.cause) == cause), None)
    try:
        with view(planned(read_plan(run_dir), "virtual", "reduce"), transient=True) as shown:
            return counterfactual(run_dir, rows, cause, named, shown)
    except (VerifyError, WithoutError) as error:
        raise CliError(str(error)) from error


def effect_lines(of: Effect, gone: str = "lost") -> Iterator[str]:
    """Yields the lines on an effect: the verdict with its reason, then the slowest messages, all messages,
    and the lost ones. gone: as in `cause_lines`.
    """
    yield f"without {of.cause}: {WORDS.get(of.verdict, OPEN)}: {of.text}"
    if of.slow_before_ns is not None and of.slow_after_ns is not None:
        before, after = of.slow_before_ns / 1e6, of.slow_after_ns / 1e6
        yield f"  the slowest took {before:,.3f} ms, and take {after:,.3f} ms without it"
    if of.fall is not None:
        one = of.fall
        between = (
            f", 95 % interval {one.low / 1e6:,.3f} to {one.high / 1e6:,.3f} ms"
            if one.low is not None and one.high is not None
            else " (a single message; the run repeats to the byte, so the fall has no spread)"
        )
        yield f"  all {of.messages} together: {one.value / 1e6:,.3f} ms faster on average{between}"
    yield f"  {gone}: {of.lost_before} with it, {of.lost_after} without"
    if of.differing:
        yield f"  note: not equal to the recorded run's: {', '.join(of.differing)}; that may change it too"
