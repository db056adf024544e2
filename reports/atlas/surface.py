"""Interpolates one outcome of one model over the space of the axes with scipy, and measures the error on
held-out points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RBFInterpolator
from scipy.spatial.distance import cdist

from reports.atlas.axes import Floats

FEWEST = 12  # least number of measured points; fewer are not enough for six axes
FOLDS = 10
NEIGHBOURS = 20  # number of nearest points whose held-out errors make the interval
LEVEL = 0.9  # share of the errors that an interval covers
Basis = tuple[Literal["thin_plate_spline", "linear"], int, float]  # kernel, degree of the trend, smoothing
_PLATES: tuple[Basis, ...] = tuple(("thin_plate_spline", 1, s) for s in (0.0, 0.03, 0.1, 0.3, 1.0))
_CONES: tuple[Basis, ...] = tuple(("linear", 0, s) for s in (0.0, 0.1, 1.0))


@dataclass(frozen=True)
class Estimate:
    """A value with its interval. The half-width is the 90 % quantile of the held-out errors of the nearest
    points.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Surface:
    """An interpolation of `values` at `points` (n x axes, each range 0 to 1). Predictions are clipped to
    `least` and `most`.
    """

    points: Floats
    values: Floats
    least: float = -np.inf
    most: float = np.inf

    @cached_property
    def _tried(self) -> dict[Basis, Floats]:
        """The prediction of each measured point from the other folds, for each basis. Bases with a linear
        trend take part only if the points outside each fold span all axes.
        """
        allowed = [*_PLATES, *_CONES] if self._spread else _CONES
        return {basis: self._folded(basis) for basis in allowed}

    @cached_property
    def basis(self) -> Basis:
        """The basis with the least mean square error at held-out points."""
        return min(self._tried, key=lambda b: float(np.mean((self._tried[b] - self.values) ** 2)))

    @property
    def held_out(self) -> Floats:
        """The prediction of each measured point from the other folds, with the best basis."""
        return self._tried[self.basis]

    @cached_property
    def errors(self) -> Floats:
        """The absolute error of `held_out` at each measured point."""
        return np.abs(self.held_out - self.values)

    @cached_property
    def _whole(self) -> Callable[[Floats], Floats]:
        return _fitted(self.points, self.values, self.basis)

    def at(self, places: Floats) -> Floats:
        """Returns the interpolated outcome at each row of `places` (n x axes), clipped to `least`
        and `most`.
        """
        return self._bounded(self._whole(places))

    def off(self, place: Floats) -> float:
        """Returns the half-width of the interval at one place: the LEVEL quantile of the held-out errors of
        the NEIGHBOURS nearest points.
        """
        return float(self.offs(place[None, :])[0])

    def offs(self, places: Floats) -> Floats:
        """Returns the half-width of the interval at each row of `places` (n x axes)."""
        return _level(self.errors, cdist(places, self.points))

    def estimate(self, place: Floats) -> Estimate:
        """Returns the outcome at one place with its interval, which is clipped to `least` and `most`."""
        value, off = float(self.at(place[None, :])[0]), self.off(place)
        low, high = self._bounded(np.array([value - off, value + off]))
        return Estimate(value, float(low), float(high))

    def covered(self) -> float:
        """Returns the share of measured points whose own held-out error is within the interval made from the
        other points' errors.
        """
        inside = 0
        for index, point in enumerate(self.points):
            others = np.arange(len(self.points)) != index
            off = _level(self.errors[others], cdist(point[None, :], self.points[others]))
            inside += bool(self.errors[index] <= off[0])
        return inside / len(self.points)

    @property
    def _folds(self) -> list[npt.NDArray[np.bool_]]:
        """Returns for each of FOLDS folds (fewer if there are fewer points) a mask of the points that it
        holds out: every FOLDS-th point.
        """
        fold = np.arange(len(self.points)) % FOLDS
        return [fold == number for number in range(min(FOLDS, len(self.points)))]

    @property
    def _spread(self) -> bool:
        """Returns whether the points outside each fold span all axes, which a linear trend needs."""
        return all(_rank(self.points[~inside]) == self.points.shape[1] + 1 for inside in self._folds)

    def _folded(self, basis: Basis) -> Floats:
        found = np.empty(len(self.points))
        for inside in self._folds:
            found[inside] = _fitted(self.points[~inside], self.values[~inside], basis)(self.points[inside])
        return self._bounded(found)

    def _bounded(self, values: Floats) -> Floats:
        return np.clip(values, self.least, self.most)


def _rank(points: Floats) -> int:
    return int(np.linalg.matrix_rank(np.column_stack([np.ones(len(points)), points])))


def _fitted(points: Floats, values: Floats, basis: Basis) -> Callable[[Floats], Floats]:
    kernel, degree, smoothing = basis
    found = RBFInterpolator(points, values, kernel=kernel, degree=degree, smoothing=smoothing)
    return lambda places: np.asarray(found(places), dtype=np.float64)


def _level(errors: Floats, away: Floats) -> Floats:
    """Returns, for each row of distances, the LEVEL quantile of the errors of the NEIGHBOURS nearest points,
    or of all if there are fewer.

    Of n errors it is the one with rank (n + 1) x LEVEL, rounded up, at most the largest.
    """
    many = min(NEIGHBOURS, len(errors))
    nearest = np.argpartition(away, many - 1, axis=1)[:, :many]
    place = min(many, math.ceil((many + 1) * LEVEL)) - 1
    return np.sort(errors[nearest], axis=1)[:, place]
