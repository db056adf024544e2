"""Cross-validates the atlas: predicts each measured point from the points of the other folds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reports.atlas.answer import share_surface, shares_in_time
from reports.atlas.axes import Floats, coordinates, duration_words
from reports.atlas.dataset import Atlas
from reports.atlas.surface import FEWEST, LEVEL

DEADLINES = (0.5, 2.0, 10.0)  # seconds


@dataclass(frozen=True)
class Score:
    """The errors of one model's predicted shares in time (0 to 1) at held-out points, for one deadline.

    `most_error` is the 90 % quantile. `guess` is the mean error if each point is predicted as the mean of all
    other points. `covered` is the share of points within their interval, which is made from the errors of
    other points.
    """

    model: str
    points: int
    deadline_s: float
    mean_error: float
    most_error: float
    guess: float
    covered: float

    def data(self) -> dict[str, Any]:
        """Returns the score as a dictionary for scripts."""
        return asdict(self)

    def words(self) -> list[str]:
        """Returns the score as the row of texts that `vnet atlas show` and the page print; shares are in
        percent.
        """
        shares = (self.mean_error, self.most_error, self.guess, self.covered)
        said = [f"{100 * share:.1f} %" for share in shares]
        return [self.model, str(self.points), duration_words(self.deadline_s), *said]


@dataclass(frozen=True)
class Choice:
    """Compares two models for one deadline, at points where all models were measured: the model that the
    held-out predictions choose, and the best model.
    """

    deadline_s: float
    points: int
    lost: float  # mean share in time by which the chosen model is below the best
    lost_always: tuple[str, float]  # the model whose choice everywhere loses least, and its mean loss


def scores(atlas: Atlas) -> list[Score]:
    """Returns the score of each model with at least FEWEST runs, for each of DEADLINES."""
    found = []
    for model in atlas.models:
        rows = atlas.of(model)
        if rows.height < FEWEST:
            continue
        points = coordinates(rows)
        for deadline_s in DEADLINES:
            in_time = shares_in_time(rows, deadline_s)
            if in_time is None:
                continue
            surface = share_surface(points, in_time)
            found.append(
                Score(
                    model,
                    rows.height,
                    deadline_s,
                    float(surface.errors.mean()),
                    float(np.quantile(surface.errors, LEVEL, method="higher")),
                    _guess(in_time),
                    surface.covered(),
                )
            )
    return found


def _guess(values: Floats) -> float:
    others = (values.sum() - values) / (len(values) - 1)
    return float(np.abs(others - values).mean())


def choices(atlas: Atlas) -> list[Choice]:
    """Returns a Choice for each of DEADLINES, over the models with at least FEWEST runs; empty if fewer than
    FEWEST points were measured with all of them.
    """
    models = [model for model in atlas.models if atlas.of(model).height >= FEWEST]
    if not models:
        return []
    common = set.intersection(*(set(atlas.of(model)["point"].to_list()) for model in models))
    if len(common) < FEWEST:
        return []
    found = []
    for deadline_s in DEADLINES:
        told, true = (np.empty((len(models), len(common))) for _ in range(2))
        for index, model in enumerate(models):
            rows = atlas.of(model)
            in_time = shares_in_time(rows, deadline_s)
            assert in_time is not None  # every model has measured deliveries
            keep = np.isin(rows["point"].to_numpy(), sorted(common))
            told[index], true[index] = (
                share_surface(coordinates(rows), in_time).held_out[keep],
                in_time[keep],
            )
        best, columns = true.max(axis=0), np.arange(len(common))
        always = [float((best - row).mean()) for row in true]
        least = int(np.argmin(always))
        lost = float((best - true[told.argmax(axis=0), columns]).mean())
        found.append(Choice(deadline_s, len(common), lost, (models[least], always[least])))
    return found
