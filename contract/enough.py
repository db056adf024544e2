"""Defines when a setting of a campaign has been repeated often enough: the rule of `campaign.until`.

A campaign looks at its results several times and stops at the first look that finds a narrow interval. Each
look is one more chance to see a narrow interval by luck, so the 5 % of error are split evenly over all looks
that may happen (Bonferroni): at any look that ends the setting, its interval misses the mean with a
probability of at most 5 %. The number of repetitions grows by a third from look to look, so that there are
few looks. Imports the standard library only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from contract.plan import Expectation

ERROR = 0.05  # probability that the interval of a setting misses the mean, for any look at which it ends
GROWTH = 4 / 3  # the number of repetitions at a look divided by that at the look before


@dataclass(frozen=True)
class Enough:
    """A setting is repeated until half the interval of a metric's mean is at most `interval` of the mean."""

    metric: Expectation  # chooses the values; it has no bounds
    interval: float  # share of the mean
    at_least: int  # repetitions before the first look
    at_most: int  # repetitions after which a setting ends with any interval

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of repetitions after which the results are looked at; the last one is `at_most`."""
        found = [self.at_least]
        while found[-1] < self.at_most:
            found.append(min(self.at_most, math.ceil(found[-1] * GROWTH - 1e-9)))
        return tuple(found)

    @property
    def confidence(self) -> float:
        """The probability with which the interval of one look holds the mean."""
        return 1 - ERROR / len(self.looks)
