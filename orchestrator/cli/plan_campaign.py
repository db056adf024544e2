"""Shows what a campaign will run: the part of `vnet plan` for campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import console, note, print_json, say, table
from orchestrator.cli.topologies import RESULTS

if TYPE_CHECKING:
    from orchestrator.campaign.preview import Preview
    from orchestrator.topology import Campaign, Cell

MOST_LISTED = 60  # largest number of cells that the terminal lists


def is_campaign(file: Path) -> bool:
    """Returns whether a file holds only a campaign, without a topology of its own."""
    from orchestrator.language.source import read_document
    from orchestrator.topology.loading import read_bytes

    data = read_document(str(file), read_bytes(file)).data
    return isinstance(data, dict) and "campaign" in data and "segments" not in data


def show_campaign(
    file: Path, parameters: dict[str, str], seed: int | None, lab: str | None, time: str, as_json: bool
) -> None:
    """Prints the cells of the campaign of `file` in the order of running, with the expected time."""
    from contract.plan import Plan
    from orchestrator.campaign.preview import as_data, preview
    from orchestrator.cli.progress import expected_s
    from orchestrator.topology import load_campaign

    def around_s(plan: Plan) -> float:
        return sum(expected_s(plan, "reduce").values())

    campaign = load_campaign(file, parameters, seed=seed)
    found = preview(campaign, lab, around_s)
    begun = _begun(Path(RESULTS) / campaign.name)
    if as_json:
        print_json(
            {
                "name": campaign.name,
                "order": campaign.order,
                "design": campaign.design,
                "runs": len(found.cells),
                "at_most": found.most,
                "adds": list(found.adds),
                "wall_s": None if time == "virtual" else round(found.wall_s, 1),
                "lab_s": round(found.lab_s, 3),
                "begun": begun,
                "cells": [as_data(one) for one in found.cells],
            }
        )
        return
    say(f"{campaign.name}: {_number(found)}, {_time(found, time)}")
    for line in _about(campaign, found, begun):
        say(line)
    rows = [
        (str(one.number), one.cell.name, _levels(one.cell), str(one.cell.seed), _seconds(one.lab_s))
        for one in found.cells[:MOST_LISTED]
    ]
    console().print(table(["run", "cell", "levels", "seed", "ramp and hold"], rows, right=["run", "seed"]))
    if (left := len(found.cells) - MOST_LISTED) > 0:
        note(f"and {left} more; `--json` lists all")


def insist_on_plain(file: Path, options: dict[str, object]) -> None:
    """Raises CliError if an option is given that applies only to the plan of one lab; `file` is read as a
    campaign.
    """
    if given := [name for name, value in options.items() if value]:
        rule = f"read as a campaign, but {given[0]} is of one lab"
        raise CliError(f"{file}: {rule}; name a topology file, without --campaign, to see its plan", USAGE)


def _levels(cell: Cell) -> str:
    return ", ".join(f"{name} {level}" for name, level in cell.levels.items())


def _number(found: Preview) -> str:
    """Returns the number of runs as text: `12 runs`, `12 to 80 runs`, or `at least 12 runs`."""
    known = len(found.cells)
    if found.most is None:
        return f"at least {known} runs"
    return f"{known} runs" if found.most == known else f"{known} to {found.most} runs"


def _time(found: Preview, time: str) -> str:
    """Returns the expected time of those cells whose time is known."""
    if time == "virtual":
        return (
            f"{_seconds(found.lab_s)} on the labs' clocks; how long that takes depends on their load: "
            "`vnet campaign status` estimates it after the first run"
        )
    few = f" for the first {len(found.cells)}" if found.adds else ""
    return f"about {_seconds(found.wall_s)}{few}, one after another"


def _about(campaign: Campaign, found: Preview, begun: str | None) -> list[str]:
    lines = [f"  design: {campaign.design}"] if campaign.design else []
    if campaign.order == "random":
        lines.append(f"  order: random within each repetition, by seed {campaign.seed}")
    lines += [f"  {text}" for text in found.adds]
    return lines + ([f"  begun: {begun}"] if begun else [])


def _begun(directory: Path) -> str | None:
    """Returns the progress of the campaign of that name in its usual directory; None if it has not begun
    there.
    """
    from orchestrator.campaign.campaign import status
    from orchestrator.cli.campaign import refused, said

    if not (directory / "campaign.json").exists():
        return None
    with refused():
        return f"{directory}: {said(status(directory))}"


def _seconds(seconds: float) -> str:
    from orchestrator.cli.progress import duration

    return duration(seconds)
