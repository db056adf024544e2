"""Learns from the outcomes of whole rounds which faults and which trials show something new."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.hunt.drawing import Lesson, Space
from orchestrator.hunt.model import Outcome, Trial, kind_of

RANDOM_ROUNDS = 2  # the first rounds draw at random, because no outcome is known yet
PARENTS = 32  # largest number of trials that are kept as the origin of variants: those that showed most
BONUS = 1.0  # weight of the uncertainty about a kind of fault that was tried little (UCB1, Auer et al. 2002)


class Guidance:
    """A bandit over kinds of faults. The reward is the number of features that a trial showed and no earlier
    trial had.

    It updates its weights in rounds, and within a round in the order of the trials' numbers, so that the
    weights do not depend on which worker ends first.
    """

    def __init__(self, space: Space) -> None:
        self._kinds = [kind_of(fault) for fault in space.faults]
        self._tried = dict.fromkeys(self._kinds, 0)
        self._reward = dict.fromkeys(self._kinds, 0.0)
        self._seen: set[str] = set()
        self._parents: list[tuple[int, Trial]] = []
        self._rounds = 0

    @property
    def seen(self) -> int:
        """The number of different features of all trials so far."""
        return len(self._seen)

    @property
    def tried(self) -> dict[str, int]:
        """The number of events of each kind of fault in the trials so far."""
        return dict(self._tried)

    def lesson(self) -> Lesson | None:
        """Returns the lessons of the rounds so far; None while trials are random."""
        if self._rounds < RANDOM_ROUNDS:
            return None
        total = sum(self._tried.values())
        weights = [
            0.1 + self._reward[kind] / max(1, self._tried[kind])
            + BONUS * math.sqrt(math.log(1 + total) / (1 + self._tried[kind]))
            for kind in self._kinds
        ]  # fmt: skip
        return Lesson(weights, [trial for _, trial in self._parents])

    def learn(self, done: Sequence[tuple[Trial, Outcome]]) -> None:
        """Includes the outcomes of a round, in the order of the trials' numbers."""
        self._rounds += 1
        for trial, outcome in sorted(done, key=lambda one: one[0].number):
            fresh = set(outcome.features) - self._seen
            self._seen |= fresh
            reward = min(1.0, len(fresh) / 4)
            for event in trial.events:
                kind = kind_of(event)
                if kind in self._tried:
                    self._tried[kind] += 1
                    self._reward[kind] += reward
            if fresh and outcome.state != "aborted":
                self._parents.append((len(fresh), trial))
        self._parents = sorted(self._parents, key=lambda one: (-one[0], one[1].number))[:PARENTS]
