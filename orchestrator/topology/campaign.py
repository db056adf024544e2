"""Campaigns: cells of factors x levels x topologies x repetitions, in one fixed order, each with its seed."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ..language.problem import Problem, TopologyError, shown
from ..language.source import Document, Path, read_document
from .document import CampaignBlock, CampaignFile
from .loading import Topology, load, parse, read_bytes
from .validation import problems_of

MOST_CELLS = 10_000  # each is checked before the first runs


@dataclass(frozen=True)
class Cell:
    """One run of a campaign. Equal repetitions have equal seeds, so that cells pair."""

    index: int  # from 0, in the order of running
    topology: str  # path of the topology file
    parameters: dict[str, Any]  # all of the topology's, resolved
    levels: dict[str, Any]  # only the factors
    seed: int
    repetition: int  # from 1
    loaded: Topology  # checked with these parameters

    @property
    def name(self) -> str:
        """A name that no other cell of the campaign has: `pair.delay-20ms.r2`."""
        levels = [
            f"{factor}-{str(level).replace(' ', '').replace('/', '')}"
            for factor, level in self.levels.items()
        ]
        return ".".join([self.loaded.name, *levels, f"r{self.repetition}"])


@dataclass(frozen=True)
class Campaign:
    """A checked campaign; every cell's topology has been loaded with its parameters."""

    path: str
    name: str
    description: str
    factors: dict[str, list[Any]]
    repetitions: int
    boot: str  # once, each
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class _Source:
    name: str
    description: str
    seed: int
    block: CampaignBlock
    document: Document
    topologies: tuple[str, ...]


def load_campaign(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> Campaign:
    """The campaign of a campaign file, or of a topology file's `campaign:` block.

    `overrides` hold for every cell. Order: repetition, then topology, then the levels, the last factor
    fastest, so that a campaign that is cut short has every cell about equally often. Raises TopologyError
    with every problem of every cell.
    """
    source = _source(os.fspath(path), read_bytes(path), overrides or {})
    if wrong := [*_clashes(source, overrides or {}), *_repeated(source), *_too_many(source)]:
        raise TopologyError(wrong)
    loaded, problems = _loaded(source, overrides or {})
    if problems:
        raise TopologyError(problems)
    cells = tuple(_cells(source, loaded))
    return Campaign(
        os.fspath(path),
        source.name,
        source.description,
        dict(source.block.factors),
        source.block.repetitions,
        source.block.boot,
        cells,
    )


def _clashes(source: _Source, overrides: Mapping[str, Any]) -> Iterator[Problem]:
    for name in source.block.factors:
        if name in overrides:
            place, rule = ("campaign", "factors", name), "is a factor, and -p sets it too"
            yield source.document.problem(place, "", rule, "leave -p out")


def _repeated(source: _Source) -> Iterator[Problem]:
    """Levels and topologies that stand twice: two cells could not be told apart."""
    lists: dict[Path, list[Any]] = {
        ("campaign", "factors", name): levels for name, levels in source.block.factors.items()
    }
    lists["campaign", "topologies"] = list(source.block.topologies or ())
    for place, values in lists.items():
        texts = [str(value) for value in values]
        for index, value in enumerate(values):
            if texts.index(texts[index]) < index:
                yield source.document.problem(
                    (*place, index), shown(value), "stands twice", "remove one of them"
                )


def _too_many(source: _Source) -> Iterator[Problem]:
    cells = len(source.topologies) * math.prod(len(levels) for levels in source.block.factors.values())
    if cells > MOST_CELLS:
        rule = f"{cells} cells are more than {MOST_CELLS}"
        yield source.document.problem(("campaign", "factors"), "", rule, "split the campaign")


def _source(file: str, content: bytes, overrides: Mapping[str, Any]) -> _Source:
    document = read_document(file, content)
    if not isinstance(document.data, dict) or "campaign" not in document.data:
        rule = "holds no campaign"
        raise TopologyError(
            [Problem(file, 1, "", "", rule, "write a `campaign:` block with factors and repetitions")]
        )
    if "segments" in document.data:
        return _of_topology(file, content, overrides)
    try:
        model = CampaignFile.model_validate(document.data)
    except ValidationError as error:
        raise TopologyError(problems_of(error, CampaignFile, document)) from None
    if model.campaign.topologies is None:
        remedy = "write `topologies: [FILE, ...]`"
        raise TopologyError([document.problem(("campaign",), "", "names no topology", remedy)])
    beside = tuple(str(FilePath(file).parent / name) for name in model.campaign.topologies)
    return _Source(model.name, model.description, model.seed, model.campaign, document, beside)


def _of_topology(file: str, content: bytes, overrides: Mapping[str, Any]) -> _Source:
    topology = parse(file, content, overrides)
    block = topology.campaign
    assert block is not None
    beside = tuple(str(FilePath(file).parent / name) for name in block.topologies or ())
    return _Source(
        topology.name, topology.description, topology.seed, block, topology.document, beside or (file,)
    )


def _matrix(source: _Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Topology and levels of each cell of one repetition."""
    factors = source.block.factors
    for topology in source.topologies:
        for levels in itertools.product(*factors.values()):
            yield topology, dict(zip(factors, levels, strict=True))


def _loaded(source: _Source, overrides: Mapping[str, Any]) -> tuple[list[Topology], list[Problem]]:
    """Each cell's topology, once for all repetitions, and all that is wrong with any."""
    found: list[Topology] = []
    problems: list[Problem] = []
    for name, levels in _matrix(source):
        if wrong := _impossible(source, levels):
            problems += wrong
            continue
        try:
            found.append(load(name, {**source.block.parameters, **overrides, **levels}))
        except TopologyError as error:
            problems += error.problems
    return found, problems


def _impossible(source: _Source, levels: Mapping[str, Any]) -> list[Problem]:
    rule, remedy = "a level is a single value", "write numbers, texts or quantities"
    return [
        source.document.problem(("campaign", "factors", name), shown(level), rule, remedy)
        for name, level in levels.items()
        if level is None or isinstance(level, dict | list)
    ]


def _cells(source: _Source, loaded: list[Topology]) -> Iterator[Cell]:
    matrix = list(_matrix(source))
    numbers = itertools.count()
    for repetition in range(1, source.block.repetitions + 1):
        for (path, levels), topology in zip(matrix, loaded, strict=True):
            seed = source.seed + repetition - 1
            yield Cell(next(numbers), path, topology.parameters, levels, seed, repetition, topology)
