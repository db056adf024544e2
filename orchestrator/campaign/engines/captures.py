"""Copies captures that stayed on the machines of workers to the campaign's directory, in pieces."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.campaign import journal
from orchestrator.campaign.engines.engine import Engine, EngineError
from orchestrator.campaign.engines.task import CAPTURES
from orchestrator.campaign.journal import CampaignError, Json

if TYPE_CHECKING:
    from distributed import Client

PIECE_BYTES = 8 << 20  # small enough that other messages of a worker do not wait long
Tell = Callable[[str], None]


def sizes(run_dir: str) -> dict[str, int]:
    """Runs on a worker: returns name -> size in bytes of each capture of a run; empty without captures."""
    names = {file.name for file in Path(run_dir).iterdir()}
    files = (Path(run_dir) / CAPTURES).iterdir() if CAPTURES in names else ()
    return {file.name: file.stat().st_size for file in files if file.is_file()}


def piece(run_dir: str, name: str, offset: int) -> bytes:
    """Runs on a worker: returns at most PIECE_BYTES bytes of the capture `name`, from `offset`; empty at its
    end.
    """
    with (Path(run_dir) / CAPTURES / name).open("rb") as file:
        file.seek(offset)
        return file.read(PIECE_BYTES)


def away(directory: Path) -> list[Json]:
    """Returns the last journal lines of those complete cells whose captures are on another machine and not in
    the campaign's directory. Raises CampaignError if the directory has no journal.
    """
    if not (directory / "cells.jsonl").exists():
        raise CampaignError(
            f"{directory}: holds no cells.jsonl; `vnet campaign run FILE` makes a campaign directory"
        )
    latest = journal.latest(directory).values()
    return [
        line
        for line in latest
        if line["state"] == "complete"
        and line.get("there")
        and not (directory / line["run_dir"] / CAPTURES).exists()
    ]


def fetch(engine: Engine, directory: Path, lines: list[Json], tell: Tell) -> list[str]:
    """Copies the captures of the cells of these journal lines from their machines; passes one sentence for
    each cell to `tell`. Returns one sentence for each cell whose captures could not be copied. Raises
    EngineError if the engine cannot be used.
    """
    from orchestrator.campaign.engines.opening import opened
    from orchestrator.campaign.engines.workers import FIRST_S, Workers

    with opened(engine) as client:
        workers = Workers(client, lambda event: tell(event["text"]), alone=False, virtual=False)
        workers.wait(FIRST_S, lambda: False)
        at = {facts.machine: address for address, facts in workers.admitted.items()}
        missing = []
        for line in lines:
            try:
                _fetch(client, at, directory, line, tell)
            except (EngineError, OSError) as error:
                missing.append(f"cell {line['cell']}: {error}")
        return missing


def _fetch(client: Client, at: dict[str, str], directory: Path, line: Json, tell: Tell) -> None:
    machine, there = line["machine"], line["there"]
    if machine not in at:
        raise EngineError(
            f"its captures are on {machine} in {there}, where the engine has no worker; start one there"
        )
    part = directory / line["run_dir"] / f"{CAPTURES}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    found: dict[str, int] = _asked(client, at[machine], sizes, there)
    for name, size in found.items():
        with (part / Path(name).name).open("wb") as file:
            for some in _pieces(client, at[machine], there, name, size):
                file.write(some)
    part.rename(part.with_name(CAPTURES))
    tell(f"{line['cell']}: {len(found)} captures, {sum(found.values()) / 1e6:.1f} MB from {machine}")


def _pieces(client: Client, address: str, there: str, name: str, size: int) -> Iterator[bytes]:
    for offset in range(0, size, PIECE_BYTES):
        yield _asked(client, address, piece, there, name, offset)


def _asked(client: Client, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs the function on the worker at `address`; returns its result.

    EngineError if the worker has left.
    """
    answers = client.run(function, *arguments, workers=[address])
    if address not in answers:
        raise EngineError("its worker went meanwhile; the same command tries it again")
    return answers[address]
