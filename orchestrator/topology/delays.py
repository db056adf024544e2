"""Converts a CSV file of delay samples or quantiles into a netem distribution table.

The file's first line names its columns: `delay_ms` alone (samples, in any order), or `quantile,delay_ms`
(both rising; below the first and above the last quantile the delay is constant). The unit is ns, us, ms or s.
The table has 4,096 equally likely delays as multiples of the jitter, in 1/8192 (NETEM_DIST_SCALE in the
kernel's net/sched/sch_netem.c), at most four times the jitter.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from typing import Any

from ..language.beside import LineError, file_beside, text_of
from ..language.problem import Problem
from ..language.source import Document, Path

SCALE, HIGHEST = 8192, 32767
ENTRIES = 4096
LONGEST_NS = 274 * 10**9  # the same in checks/impairments.py
WIDEST_NS = 2**31 - 1  # largest jitter: sch_netem.c computes with 32 bits and truncates larger ones
UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
HEADERS = "`delay_ms`, or `quantile,delay_ms`"
_REPLACED = ("delay", "jitter", "distribution", "delay_correlation")


class OwnTable(str):
    """The name of a user's table: `own-` and a hash of its entries. A topology file cannot state such a name
    itself.
    """


@dataclass(frozen=True)
class Delays:
    """The content of a delays file for netem: delay and jitter in ns (whole microseconds), and the table's
    entries.
    """

    delay_ns: int
    jitter_ns: int
    entries: tuple[int, ...]

    @property
    def name(self) -> OwnTable:
        text = ",".join(map(str, self.entries))
        return OwnTable("own-" + hashlib.sha256(text.encode()).hexdigest()[:12])


class OwnDelays(str):
    """The name of a user's table as text; `delays` holds the delays that the table was made from."""

    delays: Delays

    def __new__(cls, delays: Delays) -> OwnDelays:
        made = super().__new__(cls, delays.name)
        made.delays = delays
        return made


class DelaysError(LineError):
    """Raised for a mistake in a line of a delays file."""


def read(text: str) -> Delays:
    """Parses the text of a delays file; raises DelaysError at the first mistake."""
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise DelaysError(1, "", "is empty", f"begin with a line {HEADERS}")
    columns = [word.strip() for word in lines[0][1].split(",")]
    unit = columns[-1].removeprefix("delay_")
    if columns[:-1] not in ([], ["quantile"]) or columns[-1] == unit or unit not in UNITS_NS:
        raise DelaysError(lines[0][0], lines[0][1][:40], "names other columns", f"begin with {HEADERS}")
    rows = [(n, _numbers(n, line, len(columns))) for n, line in lines[1:]]
    if len(rows) < 2:
        raise DelaysError(lines[-1][0], "", "has fewer than two delays", "write a line for each")
    for n, values in rows:
        _one(n, values[-1], values[-1] * UNITS_NS[unit], unit)
    if len(columns) == 1:
        ordered = sorted(values[0] * UNITS_NS[unit] for _, values in rows)
        steps = len(ordered) - 1
        return table([_between(ordered, (k + 0.5) / ENTRIES * steps) for k in range(ENTRIES)])
    _rising(rows)
    points = [(values[0], values[1] * UNITS_NS[unit]) for _, values in rows]
    return table([_quantile(points, (k + 0.5) / ENTRIES) for k in range(ENTRIES)])


def table(delays_ns: list[float]) -> Delays:
    """Converts equally likely delays (ns, rising) to netem's form: their mean in whole microseconds, a jitter
    such that no delay is more than four jitters away, and each delay's distance from the mean.
    """
    delay = round(math.fsum(delays_ns) / len(delays_ns) / 1000) * 1000
    furthest = max(abs(d - delay) for d in (delays_ns[0], delays_ns[-1]))
    jitter = math.ceil(furthest / (HIGHEST / SCALE) / 1000) * 1000
    return Delays(
        delay, jitter, tuple(round((d - delay) * SCALE / jitter) if jitter else 0 for d in delays_ns)
    )


def _numbers(line: int, text: str, columns: int) -> list[float]:
    words = text.split(",")
    if len(words) != columns:
        raise DelaysError(line, text[:40], f"has {len(words)} values, not {columns}", "write one a column")
    try:
        found = [float(word) for word in words]
    except ValueError:
        raise DelaysError(line, text[:40], "is not a number", "write for example 12.5") from None
    if not all(map(math.isfinite, found)):
        raise DelaysError(line, text[:40], "is not a finite number", "write for example 12.5")
    return found


def _one(line: int, value: float, delay_ns: float, unit: str) -> None:
    if value < 0:
        rule = "is negative; a packet cannot leave before it came"
        raise DelaysError(line, f"{value:g} {unit}", rule, "write 0 or more")
    if delay_ns > LONGEST_NS:
        raise DelaysError(
            line, f"{value:g} {unit}", "is more than 274 s, the longest that tc can set", "write less"
        )


def _rising(rows: list[tuple[int, list[float]]]) -> None:
    before = (-math.inf, -math.inf)
    for line, (quantile, delay) in rows:
        if not 0 <= quantile <= 1:
            raise DelaysError(line, f"{quantile:g}", "is no quantile", "write a share from 0 to 1")
        if quantile <= before[0]:
            raise DelaysError(
                line, f"{quantile:g}", "does not rise", "order the lines by quantile, each once"
            )
        if delay < before[1]:
            rule = "falls where its quantile rises"
            raise DelaysError(line, f"{delay:g}", rule, "a higher quantile is a longer delay")
        before = (quantile, delay)


def _between(ordered: list[float], place: float) -> float:
    low = min(int(place), len(ordered) - 2)
    return ordered[low] + (ordered[low + 1] - ordered[low]) * (place - low)


def _quantile(points: list[tuple[float, float]], share: float) -> float:
    if share <= points[0][0]:
        return points[0][1]
    for (q, d), (later, longer) in itertools.pairwise(points):
        if share <= later:
            return d + (longer - d) * (share - q) / (later - q)
    return points[-1][1]


Tables = dict[str, tuple[int, ...]]


def expand(data: Any, document: Document, problems: list[Problem]) -> tuple[Any, Tables]:
    """Replaces every `delays: FILE` of a direction by delay, jitter and a table's name, and that of a slot by
    OwnDelays. Returns the data and the tables of directions and slots by name; reports invalid files.
    """
    tables: Tables = {}
    if not isinstance(data, dict):
        return data, tables
    found = dict(data)
    for section in ("segments", "links", "timeline"):
        owners = data.get(section)
        if not isinstance(owners, dict | list):
            continue
        pairs = owners.items() if isinstance(owners, dict) else enumerate(owners)
        changed = {key: _owner(one, (section, key), document, problems, tables) for key, one in pairs}
        found[section] = changed if isinstance(owners, dict) else list(changed.values())
    return found, tables


def _owner(one: Any, path: Path, document: Document, problems: list[Problem], tables: Tables) -> Any:
    if not isinstance(one, dict):
        return one
    found = {key: dict(value) if isinstance(value, dict) else value for key, value in one.items()}
    for side in ("both", "forward", "reverse", "medium"):
        values = one.get(side)
        if isinstance(values, dict) and "delays" in values:
            found[side] = _direction(values, (*path, side), document, problems, tables)
        slot = values.get("slot") if isinstance(values, dict) else None
        if isinstance(slot, dict) and isinstance(slot.get("delays"), str):
            made = _read((*path, side, "slot", "delays"), slot["delays"], document, problems, tables)
            found[side]["slot"] = {**slot, "delays": OwnDelays(made)} if made else None
    return found


def _direction(
    values: dict[str, Any], path: Path, document: Document, problems: list[Problem], tables: Tables
) -> dict[str, Any]:
    for key in _REPLACED:
        if key in values:
            rule = "conflicts with `delays`, whose file has it"
            problems.append(document.problem((*path, key), "", rule, "keep one of the two"))
    rest = {key: value for key, value in values.items() if key not in (*_REPLACED, "delays")}
    if (made := _read((*path, "delays"), str(values["delays"]), document, problems, tables)) is None:
        return rest
    if not made.jitter_ns:
        return {**rest, "delay": f"{made.delay_ns} ns"}
    delays = {"delay": f"{made.delay_ns} ns", "jitter": f"{made.jitter_ns} ns", "distribution": made.name}
    return {**rest, **delays}


def _read(
    path: Path, name: str, document: Document, problems: list[Problem], tables: Tables
) -> Delays | None:
    """Reads one delays file and adds its table to `tables`; reports an invalid file and returns None."""
    file = file_beside(document, name)
    if (found := text_of(file, document, path, problems)) is None:
        return None
    try:
        made = read(found)
    except DelaysError as error:
        problems.append(error.problem(file, "delays"))
        return None
    if made.jitter_ns > WIDEST_NS:
        rule = "has delays more than 8.5 s from their mean, further than netem draws them"
        problems.append(document.problem(path, name, rule, "write a narrower range"))
        return None
    if made.jitter_ns:
        tables[made.name] = made.entries
    return made
