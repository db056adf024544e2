"""Groups violations by the expectations that they break and the events that they need."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from orchestrator.hunt.model import Outcome, Trial, kind_of


@dataclass
class Violation:
    """Trials that break the same expectations by the same kinds of events; `smallest` is their smallest form.

    file: its topology file; run_dir: its run. repeats: whether two runs of it were equal to the byte.
    real: how many of `real_runs` runs in real time broke it, too.
    """

    broken: tuple[str, ...]
    why: tuple[str, ...]
    smallest: Trial
    first: int  # number of the trial that broke it first; 0: of the corpus
    trials: list[int] = field(default_factory=list)
    file: str = ""
    run_dir: str = ""
    repeats: bool | None = None
    real: int = 0
    real_runs: int = 0

    @property
    def events(self) -> list[str]:
        """The kinds of events that it needs, sorted."""
        return sorted(map(kind_of, self.smallest.events))

    def explains(self, trial: Trial, outcome: Outcome) -> bool:
        """Returns whether a failed trial breaks the same and has at least the needed kinds of events."""
        needed, given = Counter(self.events), Counter(map(kind_of, trial.events))
        return self.broken == outcome.broken and not needed - given
