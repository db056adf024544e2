"""The settings of a campaign, and the run request of one of its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.run.prepare import Request
from orchestrator.topology import Cell


@dataclass(frozen=True)
class Settings:
    """Kept in campaign.json, and compared when the campaign is resumed."""

    file: Path
    parameters: Mapping[str, str]
    kernel: str = "auto"
    lab: str | None = None
    time: str = "real"
    seed: int | None = None  # of the first repetition, in place of the file's


def request_of(
    settings: Settings, cell: Cell, state: str | None = None, snapshots: Path | None = None
) -> Request:
    """The run request of a cell; `state` names its state directory where several labs of one name run,
    `snapshots` the place of booted virtual machines that cells share.
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
    )
