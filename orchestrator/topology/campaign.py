"""Expands a campaign into cells: points x topologies x levels x repetitions, and the trials of searches, in a
fixed order.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ..language.problem import Problem, TopologyError, shown
from ..language.source import Document, Path, read_document
from .blocks import Order, block
from .conditions import goals
from .design import KEYS, TOPOLOGY, Point, described, points_of
from .document import CampaignBlock, CampaignFile
from .expect import Stated
from .loading import Topology, load, parse, read_bytes
from .search import Search, Trial
from .until import Until
from .until import wrong as wrong_until
from .validation import problems_of

MOST_CELLS = 10_000  # largest number of cells; each is checked before the first one runs


@dataclass(frozen=True)
class Cell:
    """One run of a campaign. All cells of one repetition have the same seed, so that they can be compared in
    pairs.
    """

    index: int  # number from 0, by repetition and then in the order of the file
    topology: str  # path of the topology file
    parameters: dict[str, Any]  # all parameters of the topology, with their values
    levels: dict[str, Any]  # the levels of the factors, and the values that its point sets
    seed: int
    repetition: int  # from 1
    loaded: Topology  # the topology, checked with these parameters
    point: Point | None = None

    @property
    def name(self) -> str:
        """Returns a name that is unique in the campaign: `pair.delay-20ms.r2`, or
        `pair.p017.r1` for a point.
        """
        set_there = self.point.values.keys() if self.point else ()
        levels = [
            f"{factor}-{str(level).replace(' ', '').replace('/', '')}"
            for factor, level in self.levels.items()
            if factor not in set_there
        ]
        point = [f"p{self.point.number:03}"] if self.point else []
        return ".".join([self.loaded.name, *point, *levels, f"r{self.repetition}"])


@dataclass(frozen=True)
class Campaign:
    """A checked campaign; every cell's topology has been loaded with its parameters."""

    path: str
    name: str
    description: str
    factors: dict[str, list[Any]]
    repetitions: int
    boot: str  # "once" or "each"
    order: Order  # order of the runs of a repetition
    seed: int  # seed of the first repetition
    rerun_suspect: int  # largest number of further runs of a cell whose run is suspect
    until: Until | None
    design: str  # the design in words; empty without one
    settings: int  # number of combinations that each repetition may run
    cells: tuple[Cell, ...]  # in the order of running
    searches: Mapping[str, Search]  # parameter -> its search


@dataclass(frozen=True)
class _Source:
    name: str
    description: str
    seed: int
    block: CampaignBlock
    document: Document
    topologies: tuple[str, ...]
    points: tuple[Point, ...] = ()
    trials: tuple[Trial, ...] = ()
    goals: Stated | None = None  # goals of the searches and of `until`

    @property
    def repetitions(self) -> int:
        """The number of repetitions that are known before the first run."""
        return self.block.until.at_least if self.block.until else self.block.repetitions


@dataclass(frozen=True)
class _Planned:
    """The topology, levels and point of a cell, which are the same in all repetitions."""

    topology: str
    levels: dict[str, Any]
    point: Point | None

    def text(self, beside: FilePath) -> str:
        """Returns a text that no other setting of the campaign has, and that stays the same when the folder
        of the topologies (`beside`) is moved.
        """
        point = f"point {self.point.number}" if self.point else ""
        levels = [f"{name} {level}" for name, level in self.levels.items()]
        return ", ".join([os.path.relpath(self.topology, beside), point, *levels])


def load_campaign(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    trials: Sequence[Trial] = (),
    seed: int | None = None,
    repetitions: Mapping[int, int] | None = None,
) -> Campaign:
    """Loads the campaign of a campaign file, or of a topology file's `campaign:` block, with all its cells.

    `overrides` apply to every cell; `trials` are those of the searches after the first ones; `seed` replaces
    that of the file for the first repetition. `repetitions` has the number of runs of each setting (its place
    in a repetition -> number) if `until` has decided it; by default it is the number that is known before the
    first run.

    The cells are ordered by repetition, then by `order`: `listed` is by point, topology and levels, and the
    last factor changes fastest. A campaign that is cut short has therefore run every cell about equally
    often. Raises TopologyError with every problem of every cell.
    """
    source = replace(_checked(path, overrides or {}), trials=tuple(trials))
    source = source if seed is None else replace(source, seed=seed)
    loaded, problems = _loaded(source, overrides or {})
    if problems:
        raise TopologyError(problems)
    counts = repetitions or dict.fromkeys(range(len(loaded)), source.repetitions)
    cells = tuple(_cells(source, loaded, counts))
    return Campaign(
        os.fspath(path),
        source.name,
        source.description,
        dict(source.block.factors),
        max(counts.values(), default=source.repetitions),
        source.block.boot,
        source.block.order,
        source.seed,
        source.block.rerun_suspect,
        source.block.until,
        described(source.block.design) if source.block.design else "",
        len(loaded),
        cells,
        source.block.search or {},
    )


def load_cell(path: str | os.PathLike[str], overrides: Mapping[str, Any], index: int) -> Cell:
    """Loads only cell `index` of a campaign that `load_campaign` has checked before."""
    source = _checked(path, overrides)
    matrix = list(_matrix(source))
    planned = matrix[index % len(matrix)]
    topology = _load(source, overrides, planned)
    return _cell(source, planned, topology, index, index // len(matrix) + 1)


def _checked(path: str | os.PathLike[str], overrides: Mapping[str, Any]) -> _Source:
    """Reads and checks the campaign block with its points and searches, but loads no cell; raises
    TopologyError.
    """
    source = _source(os.fspath(path), read_bytes(path), overrides)
    points, wrong = points_of(source.block, source.document)
    source = replace(source, points=tuple(points))
    until = source.block.until
    aims, impossible = goals(source.block.search or {}, until, source.document)
    source = replace(source, goals=aims)
    wrong += impossible
    if until is not None:
        others = {key for key in source.block.model_fields_set if getattr(source.block, key) is not None}
        wrong += wrong_until(until, others, source.document)
    wrong += [*_clashes(source, overrides), *_repeated(source), *_too_many(source)]
    if wrong:
        raise TopologyError(wrong)
    return source


def _clashes(source: _Source, overrides: Mapping[str, Any]) -> Iterator[Problem]:
    for name in source.block.factors:
        if name in overrides:
            place, rule = ("campaign", "factors", name), "is a factor, and -p sets it too"
            yield source.document.problem(place, "", rule, "leave -p out")
    for name in dict.fromkeys(name for point in source.points for name in point.values):
        key = next(key for key in KEYS if getattr(source.block, key) is not None)
        for others, said in (
            (overrides, "-p"),
            (source.block.factors, "factors"),
            (source.block.parameters, "parameters"),
        ):
            if name in others:
                rule = f"is set by each point, and by `{said}` too"
                yield source.document.problem(("campaign", key), name, rule, "leave one of them out")


def _repeated(source: _Source) -> Iterator[Problem]:
    """Yields a problem for each level and topology that is listed twice, since their cells would have equal
    names.
    """
    lists: dict[Path, list[Any]] = {
        ("campaign", "factors", name): levels for name, levels in source.block.factors.items()
    }
    lists["campaign", "topologies"] = list(source.block.topologies or ())
    for place, values in lists.items():
        seen = set[str]()
        for index, value in enumerate(values):
            if str(value) in seen:
                yield source.document.problem(
                    (*place, index), shown(value), "stands twice", "remove one of them"
                )
            seen.add(str(value))


def _too_many(source: _Source) -> Iterator[Problem]:
    own = sum(point.topology is not None for point in source.points)
    topologies = own + len(source.topologies) * (max(1, len(source.points)) - own)
    cells = topologies * math.prod(len(levels) for levels in source.block.factors.values())
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
    block = model.campaign
    if block.topologies is None and not all(TOPOLOGY in point for point in block.points or [{}]):
        remedy = "write `topologies: [FILE, ...]`"
        raise TopologyError([document.problem(("campaign",), "", "names no topology", remedy)])
    beside = tuple(str(FilePath(file).parent / name) for name in block.topologies or ())
    return _Source(model.name, model.description, model.seed, model.campaign, document, beside)


def _of_topology(file: str, content: bytes, overrides: Mapping[str, Any]) -> _Source:
    topology = parse(file, content, overrides)
    block = topology.campaign
    assert block is not None
    beside = tuple(str(FilePath(file).parent / name) for name in block.topologies or ())
    return _Source(
        topology.name, topology.description, topology.seed, block, topology.document, beside or (file,)
    )


def _matrix(source: _Source) -> Iterator[_Planned]:
    """Yields the cells of one repetition: points, topologies and levels combined, then the trials."""
    factors = source.block.factors
    for point in source.points or (None,):
        for topology in _topologies(source, point):
            for levels in itertools.product(*factors.values()):
                set_there = point.values if point else {}
                yield _Planned(topology, {**set_there, **dict(zip(factors, levels, strict=True))}, point)
    for trial in source.trials:
        values = dict(trial.values)
        yield _Planned(trial.topology, {**values, **trial.levels}, Point(trial.number, values))


def _topologies(source: _Source, point: Point | None) -> tuple[str, ...]:
    """Returns the topologies that a point applies to: its own, else all of the campaign's."""
    if point is None or point.topology is None:
        return source.topologies
    return (str(FilePath(source.document.file).parent / point.topology),)


def _load(source: _Source, overrides: Mapping[str, Any], planned: _Planned) -> Topology:
    loaded = load(planned.topology, {**source.block.parameters, **overrides, **planned.levels})
    return replace(loaded, goals=source.goals)


def _loaded(source: _Source, overrides: Mapping[str, Any]) -> tuple[list[Topology], list[Problem]]:
    """Loads the topology of each cell of one repetition; returns the topologies and all problems."""
    found: list[Topology] = []
    problems: list[Problem] = []
    for planned in _matrix(source):
        if wrong := _impossible(source, planned):
            problems += wrong
            continue
        try:
            found.append(_load(source, overrides, planned))
        except TopologyError as error:
            problems += [_of_point(problem, planned.point) for problem in error.problems]
    return found, problems


def _of_point(problem: Problem, point: Point | None) -> Problem:
    """Adds the point's number to the path of a problem; without a point, the problem stays unchanged."""
    return replace(problem, path=f"{problem.path} of point {point.number}".strip()) if point else problem


def _impossible(source: _Source, planned: _Planned) -> list[Problem]:
    rule, remedy = "a level is a single value", "write numbers, texts or quantities"
    return [
        source.document.problem(_place(source, name, planned.point), shown(level), rule, remedy)
        for name, level in planned.levels.items()
        if level is None or isinstance(level, dict | list)
    ]


def _place(source: _Source, name: str, point: Point | None) -> Path:
    """Returns the path, in the campaign's file, of the value that a cell gives to parameter `name`."""
    if point is None or name not in point.values:
        return ("campaign", "factors", name)
    if source.block.search is not None:
        return ("campaign", "search", name)
    return ("campaign", "points", point.number - 1, name)


def _cells(source: _Source, loaded: list[Topology], counts: Mapping[int, int]) -> Iterator[Cell]:
    """Yields the cells in the order of running; `counts` has the repetitions of each setting."""
    matrix = list(_matrix(source))
    settings = [one.text(FilePath(source.document.file).parent) for one in matrix]
    for repetition in range(1, max(counts.values(), default=0) + 1):
        for place in block(source.block.order, settings, source.seed, repetition):
            if repetition > counts[place]:
                continue
            index = (repetition - 1) * len(matrix) + place
            yield _cell(source, matrix[place], loaded[place], index, repetition)


def _cell(source: _Source, planned: _Planned, topology: Topology, index: int, repetition: int) -> Cell:
    seed = source.seed + repetition - 1
    return Cell(
        index,
        planned.topology,
        topology.parameters,
        planned.levels,
        seed,
        repetition,
        topology,
        planned.point,
    )
