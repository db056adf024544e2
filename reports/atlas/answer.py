"""Ranks interaction models by how well they meet the requirements of a question, each with its measured
evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from reports.atlas.axes import DEADLINES_S, Floats, Place, coordinates, distances, duration_words
from reports.atlas.dataset import Atlas
from reports.atlas.surface import FEWEST, Estimate, Surface

SHOWN = 3  # number of measured neighbours that are shown for each model
VERDICTS = ("meets", "likely", "perhaps", "no", "unknown")  # in the order of ranking


@dataclass(frozen=True)
class Question:
    """Requirements on a network: a share `needed` of all updates arrives at each receiver within
    `deadline_s`, for at most `budget_bytes` for one update to one receiver (None: any number).

    With `confirmed`, an update counts when the receiver's confirmation is back at the sender in time.
    """

    place: Place
    deadline_s: float
    needed: float
    budget_bytes: float | None = None
    confirmed: bool = False


@dataclass(frozen=True)
class Neighbour:
    """A measured point near the question: its distance `away` and the values measured at it."""

    point: int
    away: float
    place: Place
    in_time: float
    bytes_per_update: float
    seed: int


@dataclass(frozen=True)
class Candidate:
    """The answer for one model: a verdict of VERDICTS with its reason `why`; estimates that the atlas cannot
    make are None.
    """

    model: str
    verdict: str
    why: str
    in_time: Estimate | None
    bytes_per_update: Estimate | None
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Answer:
    """The answer for all models, best first. `unknown` has the reasons why the atlas cannot answer, a
    sentence each; it is empty if the atlas can answer.
    """

    question: Question
    candidates: tuple[Candidate, ...]
    unknown: tuple[str, ...]

    @property
    def best(self) -> Candidate | None:
        """The first candidate if its verdict is "meets" or "likely", else None."""
        first = self.candidates[0] if self.candidates and not self.unknown else None
        return first if first and first.verdict in VERDICTS[:2] else None


def outside(question: Question) -> list[str]:
    """Returns one sentence for each number of the question that is outside the range of the atlas; empty if
    none is.
    """
    found = question.place.outside()
    if not DEADLINES_S[0] <= question.deadline_s <= DEADLINES_S[-1]:
        low, high = (duration_words(d) for d in (DEADLINES_S[0], DEADLINES_S[-1]))
        asked = duration_words(question.deadline_s)
        found.append(f"deadline: {asked} is outside the measured range, {low} to {high}")
    return found


def ask(atlas: Atlas, question: Question, models: Sequence[str] = ()) -> Answer:
    """Returns the answer for the named `models` of the data set, or for all of them, in ranked order. The
    answer has no candidates if the question is outside the range.
    """
    wanted = [model for model in atlas.models if not models or model in models]
    if reasons := outside(question):
        return Answer(question, (), tuple(reasons))
    most = reach_of(atlas)
    found = [_candidate(atlas.of(model), model, question, most) for model in wanted]
    found.sort(key=_rank)
    reasons = [] if any(c.verdict != "unknown" for c in found) else [f"{c.model}: {c.why}" for c in found]
    return Answer(question, tuple(found), tuple(reasons))


def _rank(candidate: Candidate) -> tuple[int, float, float]:
    """Returns the sort key of a candidate: models that meet the requirements by their bytes per update,
    others by their share in time.
    """
    place = VERDICTS.index(candidate.verdict)
    if candidate.in_time is None or candidate.bytes_per_update is None:
        return place, 0.0, 0.0
    if place < 2:
        return place, candidate.bytes_per_update.value, -candidate.in_time.value
    return place, -candidate.in_time.value, candidate.bytes_per_update.value


def _candidate(rows: pl.DataFrame, model: str, question: Question, most: float) -> Candidate:
    in_time = shares_in_time(rows, question.deadline_s, confirmed=question.confirmed)
    if in_time is None:
        why = "its receivers' confirmations were not measured: repeat without --confirmed"
        return Candidate(model, "unknown", why, None, None, ())
    points, place = coordinates(rows), question.place.scaled()
    away = distances(points, place)
    near = tuple(_neighbour(rows, in_time, away, int(index)) for index in np.argsort(away)[:SHOWN])
    if rows.height < FEWEST:
        why = f"only {rows.height} points are measured, and at least {FEWEST} are needed"
        return Candidate(model, "unknown", why, None, None, near)
    if away.min() > most:
        why = f"the nearest measurement is {away.min():.2f} away; errors are known up to {most:.2f}"
        return Candidate(model, "unknown", why, None, None, near)
    share = share_surface(points, in_time).estimate(place)
    price = exp(price_surface(points, rows).estimate(place))
    verdict, why = _verdict(share, price, question)
    return Candidate(model, verdict, why, share, price, near)


def reach_of(atlas: Atlas) -> float:
    """Returns the largest distance from a measurement at which the atlas still answers; 0 if no model has
    FEWEST points.

    All models share the largest `reach` of any of them, because a densely measured model would otherwise
    answer within a smaller distance than a sparsely measured one.
    """
    enough = [rows for model in atlas.models if (rows := atlas.of(model)).height >= FEWEST]
    return max((reach(coordinates(rows)) for rows in enough), default=0.0)


def reach(points: Floats) -> float:
    """Returns the largest distance of a measured point from its nearest other point. The errors at held-out
    points are known only up to this distance.
    """
    return max(float(np.sort(distances(points, point))[1]) for point in points)


def share_surface(points: Floats, in_time: Floats) -> Surface:
    """Returns the interpolation of the shares in time, bounded to 0 to 1."""
    return Surface(points, in_time, 0.0, 1.0)


def price_surface(points: Floats, rows: pl.DataFrame) -> Surface:
    """Returns the interpolation of the logarithm of the bytes sent for one update to one receiver."""
    return Surface(points, np.log(rows["bytes_per_update"].to_numpy()))


def exp(of: Estimate) -> Estimate:
    """Returns the estimate of a quantity, from the estimate of its natural logarithm."""
    return Estimate(float(np.exp(of.value)), float(np.exp(of.low)), float(np.exp(of.high)))


def shares_in_time(rows: pl.DataFrame, deadline_s: float, *, confirmed: bool = False) -> Floats | None:
    """Returns, for each row, the share of updates x receivers that arrive (or are confirmed) by the deadline;
    None if a row has no confirmations to measure.

    Between two measured deadlines it is interpolated linearly in the logarithm of the deadline.
    """
    column = rows["confirmed_within" if confirmed else "delivered_within"]
    if column.null_count():
        return None
    table = column.to_numpy().astype(np.float64)
    at, known = np.log(deadline_s), np.log(np.array(DEADLINES_S))
    return np.array([float(np.interp(at, known, row)) for row in table])


def _neighbour(rows: pl.DataFrame, in_time: Floats, away: Floats, index: int) -> Neighbour:
    row = rows.row(index, named=True)
    place = Place(**{name: row[name] for name in Place.__dataclass_fields__})
    return Neighbour(
        row["point"], float(away[index]), place, float(in_time[index]), row["bytes_per_update"], row["seed"]
    )


def _verdict(share: Estimate, price: Estimate, question: Question) -> tuple[str, str]:
    needed, budget = question.needed, question.budget_bytes
    dear = budget is not None and price.value > budget
    surely_cheap = budget is None or price.high <= budget
    if share.low >= needed and surely_cheap:
        return "meets", "also at the worse end of its interval"
    if share.value >= needed and not dear:
        return "likely", "by its estimate; its interval reaches below"
    if share.high >= needed and (budget is None or price.low <= budget):
        return "perhaps", "at the better end of its interval only"
    return "no", "over the budget" if dear and share.high >= needed else "too few in time"
