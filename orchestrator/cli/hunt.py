"""Implements `vnet hunt`, which looks for the faults that break an expectation of a topology file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import DONE, INTERRUPTED, REFUSED, UNMET, UNTOLD, USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json, say
from orchestrator.cli.topologies import RESULTS, file_argument, parameters_option, seed_option
from orchestrator.language.units import DURATION, UnitError, whole

if TYPE_CHECKING:
    from orchestrator.hunt.found import Found


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return whole(DURATION, text) / 1e9
    except UnitError as error:
        raise CliError(f"--budget {text}: {error}", USAGE) from error


@click.command("hunt")
@file_argument
@parameters_option
@seed_option
@click.option(
    "--out", type=click.Path(path_type=Path), help="The hunt's directory, by default results/NAME-hunt."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Trials side by side.")
@click.option("--trials", type=click.IntRange(min=1), help="Trials of the search, instead of the file's.")
@click.option("--budget", metavar="TIME", help="Time of the hunt, such as 5min, instead of the file's.")
@click.option("--random", is_flag=True, help="Draw all trials at random, to compare with the guided search.")
@click.option(
    "--also-real",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Run each reproduction N times in real time, too, and count how often it fails.",
)
@click.option("--kernel", default="auto", hidden=True)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write a JUnit file there.")
@json_option
def hunt_command(
    file: Path,
    parameters: dict[str, str],
    seed: int | None,
    out: Path | None,
    jobs: int,
    trials: int | None,
    budget: str | None,
    random: bool,
    also_real: int,
    kernel: str,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Look for the faults that break an expectation of FILE, in virtual time.

    Each violation is made as small as possible and written to reproductions/*.yaml in the hunt's directory;
    index.html there shows all. The same command continues a hunt that was stopped or killed, and runs the
    reproductions first.

    \b
    Example:  vnet hunt FILE --budget 5min
    """
    budget_s = _seconds(budget)
    from orchestrator.hunt.checking import Settings
    from orchestrator.hunt.found import as_data
    from orchestrator.hunt.hunt import hunt
    from orchestrator.hunt.model import HuntError
    from orchestrator.hunt.trials import StoppedError

    directory = out or Path(RESULTS) / f"{file.stem}-hunt"
    settings = Settings(
        file, parameters, directory, seed, jobs, kernel, trials, budget_s, also_real, not random
    )  # fmt: skip
    try:
        found = hunt(settings, note)
    except HuntError as error:
        raise CliError(str(error), REFUSED) from error
    except (KeyboardInterrupt, StoppedError):
        note(f"{directory}: stopped; the same command continues")
        return INTERRUPTED
    if junit:
        junit.write_text(_junit(found, file), encoding="utf-8")
    from reports import hunts

    data = as_data(found, directory)
    page = hunts.write(data, file.stem)
    if as_json:
        print_json(data)
    else:
        for line in said(found):
            say(line)
        say(f"page: {page}")
    return status_of(found)


def status_of(found: Found) -> int:
    """Returns the exit status. It is UNMET if an expectation fails, in a trial or in a file of the corpus. It
    is UNTOLD if there is a doubt: no trial was run, a trial or a file of the corpus could not tell or did not
    end in order, or two runs of one file differ. Otherwise it is DONE.
    """
    if found.violations or "fails" in found.corpus.values():
        return UNMET
    return UNTOLD if found.doubts else DONE


def said(found: Found) -> list[str]:
    """Returns the findings of a hunt as lines of text."""
    rate = found.trials / found.searched_s if found.searched_s else 0.0
    lines = [
        f"{found.trials} trials (seed {found.seed}): {found.holds} hold, {found.fails} fail, "
        f"{found.unsure} cannot tell, {sum(found.errors.values())} did not end in order; {rate:.2f} a second"
    ]
    for number, one in enumerate(found.violations, 1):
        lines.append(f"violation {number}: {one.way}")
        lines += [f"  {why}" for why in one.why]
        lines += [f"  {event}" for event in map(_event, one.smallest.events)]
        repeats = "equal to the byte on two runs" if one.repeats else "NOT repeated by two runs"
        real = f"; {one.real} of {one.real_runs} runs in real time fail" if one.real_runs else ""
        lines.append(f"  {one.file}: {repeats}{real}; {len(one.trials)} trials")
    lines += [f"corpus: {name}: {state}" for name, state in found.corpus.items()]
    lines += [f"{count} x not in order: {why}" for why, count in found.errors.items()]
    lines.append(f"{found.repeated} runs made twice, {found.repeated - len(found.unequal)} equal to the byte")
    lines += [f"cannot tell: {doubt}" for doubt in found.doubts]
    if untried := [kind for kind, count in found.tried.items() if not count]:
        lines.append(f"never tried: {', '.join(untried)}")
    return lines


def _event(event: dict[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in event.items()) + "}"


def _junit(found: Found, file: Path) -> str:
    from reports.junit import Case, Suite, text_of

    cases = [Case("expectation", "baseline", "passed")]
    cases += [
        Case("hunt", one.way, "failure", f"{'; '.join(one.why)} ({one.file})") for one in found.violations
    ]
    cases += [Case("hunt", doubt, "skipped", doubt) for doubt in found.doubts]
    words = {"fails": "failure", "holds": "passed"}
    cases += [
        Case("corpus", name, words.get(state, "skipped"), state)  # type: ignore[arg-type]
        for name, state in found.corpus.items()
    ]
    return text_of([Suite(f"hunt {file.stem}", tuple(cases))])
