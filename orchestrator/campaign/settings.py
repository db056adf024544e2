"""Holds the settings of a campaign, and makes the run request of one of its cells from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.run.prepare import Request
from orchestrator.topology import Cell


@dataclass(frozen=True)
class Settings:
    """The settings of a campaign. campaign.json holds them, and a resumed campaign must have the same."""

    file: Path
    parameters: Mapping[str, str]
    kernel: str = "auto"
    lab: str | None = None
    time: str = "real"
    seed: int | None = None  # seed of the first repetition; None: the seed in the file
    # conditions that must not come true, in addition to the files' expectations
    fail_if: tuple[str, ...] = ()


def request_of(
    settings: Settings, cell: Cell, state: str | None = None, snapshots: Path | None = None
) -> Request:
    """Returns the run request of a cell. state: name of its state directory, by default the lab's name.
    snapshots: directory of the snapshots of booted virtual machines that cells share; None: the cell shares
    none.
    """
    return Request(
        Path(cell.topology),
        cell.parameters,
        cell.seed,
        settings.kernel,
        settings.lab,
        settings.time,
        state,
        snapshots,
        fail_if=settings.fail_if,
    )
