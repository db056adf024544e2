"""Implements `vnet trend`, which shows the figures of runs or campaigns of several dates on one page."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.errors import DONE, REFUSED, UNMET, CliError
from orchestrator.cli.output import json_option, print_json, say
from orchestrator.cli.quantities import SHARE

PLACE = Path("results") / "trend.html"


@click.command("trend")
@click.argument("sides", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option(
    "--margin", type=SHARE, default="5 %", show_default=True, help="Relative difference that matters."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=PLACE, show_default=True,
    help="The page, an HTML file.",
)  # fmt: skip
@click.option(
    "--fail-if-differs", is_flag=True, help="Exit status 7 if the last date differs from the first."
)
@json_option
def trend_command(
    sides: tuple[Path, ...], margin: float, out: Path, fail_if_differs: bool, as_json: bool
) -> int:
    """Show the figures of runs or campaigns DIR over their dates, each compared with the first.

    \b
    Example:  vnet trend results/nightly/*
    """
    from reports.compare import trend
    from reports.compare.comparison import DIFFERS
    from reports.compare.errors import CompareError
    from reports.compare.reading import read_side
    from reports.damage import told
    from reports.errors import RunDirectoryError

    try:
        read = []
        for path in dict.fromkeys(sides):
            with told(path):
                read.append(read_side("", path))
        found = trend.trend(read, margin)
        written = trend.write(found, out)
    except (CompareError, RunDirectoryError) as error:
        raise CliError(str(error), REFUSED) from error
    if as_json:
        print_json({**trend.as_data(found), "page": str(written)})
    else:
        say(trend.answer(found))
        say(f"page: {written}")
    differs = any(line.last.finding == DIFFERS for line in found.lines)
    return UNMET if fail_if_differs and differs else DONE
