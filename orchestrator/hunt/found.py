"""Collects the findings of a hunt: counts of its trials, and the violations, each with the broken
expectations and the needed events.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.hunt.model import Outcome, Trial, kind_of

KNOWN = ("holds", "fails")  # states of a run whose verdicts on expectations count
# Matches the fate of messages in the text of a failed expectation on delivery (reports/expect/observed.py).
_FATE = re.compile(r"[\d,]+ (lost|twice)\b")


def ways(outcome: Outcome) -> list[str]:
    """Returns the ways in which a trial fails as text, sorted. A failing expectation is one way. If its
    reason counts lost messages, or messages that arrived twice, it is one way for each of these. Empty for a
    trial that does not fail.
    """
    if outcome.state != "fails":
        return []
    found: set[str] = set()
    for name, why in zip(outcome.failing, outcome.why, strict=True):
        fates = _FATE.findall(why)
        found |= {f"{name}: {fate}" for fate in fates} or {name}
    return sorted(found)


@dataclass
class Violation:
    """Trials that fail in the same way by the same kinds of events; `smallest` is their smallest form.

    way: one of `ways`. failing, why: all expectations that the smallest form breaks, with the reasons. file:
    its topology file; run_dir: its run. repeats: True if two runs of it were equal to the byte. real: the
    number of runs in real time, of `real_runs`, that failed in the same way.
    """

    way: str
    failing: tuple[str, ...]
    why: tuple[str, ...]
    smallest: Trial
    first: int  # number of the first trial that failed in this way
    trials: list[int] = field(default_factory=list)
    file: str = ""
    run_dir: str = ""
    repeats: bool | None = None
    real: int = 0
    real_runs: int = 0

    @property
    def events(self) -> list[str]:
        """The kinds of events that the violation needs, sorted."""
        return sorted(map(kind_of, self.smallest.events))

    def explains(self, way: str, trial: Trial) -> bool:
        """Returns whether a trial that fails in this way has at least the needed kinds of events."""
        needed, given = Counter(self.events), Counter(map(kind_of, trial.events))
        return self.way == way and not needed - given


@dataclass
class Found:
    """The state of a hunt. trials: of the search; runs: all runs of this process, including those of
    shrinking. searched_s, shrunk_s: the seconds of search and of shrinking on this machine. covered: trials
    with an event of this kind that begins in this third of the hold (0 to 2), each counted once; failed:
    those of them that fail. rounds: after each round the number of trials, of features seen and of
    violations. repeated: runs that were made twice whether or not they fail, the baseline first; unequal:
    those whose bytes differ, in words.
    """

    trials: int = 0
    runs: int = 0
    shrinking_runs: int = 0
    holds: int = 0
    fails: int = 0
    unsure: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    corpus: dict[str, str] = field(default_factory=dict)  # file of the corpus -> state of its trial
    searched_s: float = 0.0
    shrunk_s: float = 0.0
    tried: dict[str, int] = field(default_factory=dict)  # kind of fault -> number of its events
    covered: Counter[tuple[str, int]] = field(default_factory=Counter)
    failed: Counter[tuple[str, int]] = field(default_factory=Counter)
    rounds: list[tuple[int, int, int]] = field(default_factory=list)
    features: int = 0
    seed: int = 0
    repeated: int = 0
    unequal: list[str] = field(default_factory=list)

    @property
    def doubts(self) -> list[str]:
        """The reasons, as text, why a hunt without a violation does not prove the expectations."""
        found = [] if self.trials else ["no trial was run: the limits were reached before the first"]
        found += [f"corpus: {name}: {state}" for name, state in self.corpus.items() if state not in KNOWN]
        found += [f"{self.unsure} trials cannot tell"] if self.unsure else []
        failed = sum(self.errors.values())
        found += [f"{failed} trials did not end in order"] if failed else []
        return found + [f"two runs differ: {name}" for name in self.unequal]

    def repeat(self, name: str, equal: bool | None) -> None:
        """Counts a trial that was run twice; a trial whose bytes could not be compared (`equal` is None) does
        not count.
        """
        self.repeated += equal is not None
        if equal is False:
            self.unequal.append(name)

    def count(self, trial: Trial, outcome: Outcome, hold_ns: int) -> None:
        """Counts a trial of the search by its state and by the faults that it covered."""
        self.trials += 1
        self.holds += outcome.state == "holds"
        self.fails += outcome.state == "fails"
        self.unsure += outcome.state == "cannot tell"
        if outcome.state == "aborted":
            why = (outcome.error or "").splitlines()[0][:200] if outcome.error else "no reason"
            self.errors[why] = self.errors.get(why, 0) + 1
        places = set(trial.places(hold_ns))
        self.covered.update(places)
        if outcome.state == "fails":
            self.failed.update(places)


def as_data(found: Found, directory: Path) -> dict[str, Any]:
    """Returns the findings of a hunt as JSON data."""
    return {
        "directory": str(directory),
        "seed": found.seed,
        "trials": found.trials,
        "runs": found.runs,
        "shrinking_runs": found.shrinking_runs,
        "states": {"holds": found.holds, "fails": found.fails, "cannot tell": found.unsure},
        "errors": found.errors,
        "searched_s": round(found.searched_s, 1),
        "shrunk_s": round(found.shrunk_s, 1),
        "features": found.features,
        "repeated": found.repeated,
        "unequal": found.unequal,
        "doubts": found.doubts,
        "rounds": [list(one) for one in found.rounds],
        "tried": found.tried,
        "covered": [
            {"fault": kind, "third": third + 1, "trials": count, "fails": found.failed[kind, third]}
            for (kind, third), count in sorted(found.covered.items())
        ],
        "corpus": found.corpus,
        "violations": [
            {
                "way": one.way, "failing": list(one.failing), "why": list(one.why),
                "events": [dict(event) for event in one.smallest.events],
                "seed": one.smallest.seed, "trials": one.trials, "file": one.file, "run_dir": one.run_dir,
                "repeats": one.repeats, "real": one.real, "real_runs": one.real_runs,
            }
            for one in found.violations
        ],
    }  # fmt: skip
