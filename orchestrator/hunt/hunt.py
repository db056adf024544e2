"""Hunts: baseline, corpus, then rounds of trials; each new violation is shrunk and written as a file."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contract import manifest
from orchestrator.hunt import journal
from orchestrator.hunt.drawing import Space, draw
from orchestrator.hunt.files import content
from orchestrator.hunt.guidance import Guidance
from orchestrator.hunt.model import Data, HuntError, Outcome, Trial
from orchestrator.hunt.shrinking import Shrinker
from orchestrator.hunt.space import faults
from orchestrator.hunt.trials import TRIALS, Trials
from orchestrator.hunt.violations import Violation
from orchestrator.language.problem import TopologyError
from orchestrator.language.ranges import range_of
from orchestrator.language.source import read_document
from orchestrator.run.prepare import Request, prepare
from orchestrator.topology import Topology, load
from orchestrator.topology.hunt import HuntBlock

ROUND = 8  # trials of which none knows the others' outcomes; the same for any number of workers
REPRODUCTIONS, RUNS = "reproductions", "violations"
MOST_VIOLATIONS = 20  # groups that are shrunk
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What a hunt is asked for. trials, budget_s: in place of the file's limits. guided: without it all
    trials are random.
    """

    file: Path
    parameters: Mapping[str, str]
    directory: Path
    seed: int | None = None
    workers: int = 1
    kernel: str = "auto"
    trials: int | None = None
    budget_s: float | None = None
    also_real: int = 0
    guided: bool = True


@dataclass
class Found:
    """The state of a hunt. trials: of the search; runs: all that were run now, those of shrinking, too.
    searched_s, shrunk_s: what search and shrinking took on this machine.
    """

    trials: int = 0
    runs: int = 0
    shrinking_runs: int = 0
    holds: int = 0
    fails: int = 0
    unsure: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    corpus: dict[str, str] = field(default_factory=dict)  # file -> state
    searched_s: float = 0.0
    shrunk_s: float = 0.0
    tried: dict[str, int] = field(default_factory=dict)
    features: int = 0
    seed: int = 0
    interrupted: bool = False


def hunt(settings: Settings, tell: Tell) -> Found:
    """Runs a hunt, or goes on with the one in its directory; returns what it found. Ctrl-C raises
    KeyboardInterrupt; what was recorded until then is kept. Raises TopologyError, KernelError or HuntError
    before the first trial if the file cannot be hunted.
    """
    topology = checked(settings)
    about = {
        "file": hashlib.sha256(settings.file.read_bytes()).hexdigest(),
        "parameters": dict(settings.parameters),
        "seed": _seed(settings, topology),
        "guided": settings.guided,
    }
    with journal.opened(settings.directory, about) as book:
        shutil.rmtree(settings.directory / TRIALS, ignore_errors=True)  # of a hunt that was killed
        trials = Trials(settings.file, settings.directory, book, settings.kernel, settings.workers)
        try:
            return Hunt(settings, topology, trials, tell).run()
        finally:
            trials.stop()
            shutil.rmtree(settings.directory / TRIALS, ignore_errors=True)


def _seed(settings: Settings, topology: Topology) -> int:
    return topology.seed if settings.seed is None else settings.seed


def checked(settings: Settings) -> Topology:
    """Loads the file and refuses what cannot be hunted: no expectation, a value of `vary` that the parameter
    does not take, a lab that virtual time does not carry.
    """
    topology = load(settings.file, settings.parameters)
    wrong = topology.document.problem
    if not topology.model.expect:
        rule = "states no expectation, and nothing could be broken"
        raise TopologyError([wrong(("expect",), "", rule, "write `expect: [{delivered: exactly-once}]`")])
    vary = topology.model.hunt.vary if topology.model.hunt else {}
    for name in vary:
        if name in settings.parameters:
            rule = "is varied, and -p sets it too"
            raise TopologyError([wrong(("hunt", "vary", name), "", rule, "leave -p out")])
    for name, values in vary.items():
        for value in _ends(values):
            load(settings.file, {**settings.parameters, name: value})
    if not faults(topology):
        rule = "has no program, link or segment that could fail"
        raise TopologyError([wrong(("nodes",), "", rule, "name `faults:` in `hunt:`")])
    prepare(
        Request(settings.file, settings.parameters, kernel=settings.kernel, time="virtual"), Path(), topology
    )
    return topology


def _ends(values: Any) -> list[Any]:
    if isinstance(values, list):
        return values
    found = range_of(values)
    return [found.at(0.0), found.at(1.0)] if found else []


class Hunt:
    """One hunt on a checked file. `trials` runs its trials; `tell` receives a line about each step."""

    def __init__(self, settings: Settings, topology: Topology, trials: Trials, tell: Tell) -> None:
        self._settings, self._topology, self._trials, self._tell = settings, topology, trials, tell
        block = topology.model.hunt or HuntBlock.model_validate({})
        self._limits = block.at_most
        self._space = Space(
            faults(topology), dict(block.vary), block.at_most.events, topology.phases.hold_ns
        )  # fmt: skip
        self._data: Data = dict(topology.document.data)
        self._fixed = {name: topology.parameters[name] for name in settings.parameters}
        self._guidance = Guidance(self._space)
        self.found = Found(seed=_seed(settings, topology))
        self._began = time.monotonic()

    def run(self) -> Found:
        """Runs baseline, corpus and search, and returns what was found."""
        self._baseline()
        self._corpus()
        most = self._settings.trials or self._limits.trials
        number = 1
        while number <= most and not self._over():
            numbers = range(number, min(number + ROUND, most + 1))
            self._round(list(numbers))
            number = numbers.stop
        self.found.tried, self.found.features = self._guidance.tried, self._guidance.seen
        self.found.runs = self._trials.ran
        return self.found

    def _over(self) -> bool:
        limit_s = self._limits.time / 1e9 if self._settings.budget_s is None else self._settings.budget_s
        return time.monotonic() - self._began > limit_s

    def _own(self, trial: Trial) -> Trial:
        return replace(trial, data=self._data, parameters={**self._fixed, **trial.parameters})

    def _baseline(self) -> None:
        """Runs the file without faults; raises HuntError unless all expectations hold."""
        (outcome,) = self._trials.run([self._own(Trial(0, self._topology.seed))])
        self._tell(f"baseline: {outcome.state}")
        if outcome.state == "holds":
            return
        file, why = self._settings.file, "; ".join(outcome.why) or outcome.error
        if outcome.state == "fails":
            rule = f'expect: "{outcome.broken[0]}" fails without any fault ({why})'
            raise HuntError(
                f"{file}: {rule}; mend the file until `vnet run --time virtual` ends with status 0"
            )
        if outcome.state == "cannot tell":
            rule = f"expect: cannot be told without any fault ({why})"
            raise HuntError(f"{file}: {rule}; state what a run can tell")
        raise HuntError(f"{file}: does not run without any fault ({why}); mend that first")

    def _corpus(self) -> None:
        """Runs the reproductions of earlier hunts, so that a defect that is there again is found at once."""
        for path in sorted((self._settings.directory / REPRODUCTIONS).glob("*.yaml")):
            data = read_document(str(path), path.read_bytes()).data
            trial = Trial(0, data.get("seed", 1), data=data)
            (outcome,) = self._trials.run([trial])
            self.found.corpus[path.name] = outcome.state
            self._tell(f"corpus: {path.name}: {outcome.state}")

    def _round(self, numbers: list[int]) -> None:
        lesson = self._guidance.lesson() if self._settings.guided else None
        drawn = [draw(self._space, self.found.seed, number, lesson) for number in numbers]
        began = time.monotonic()
        outcomes = self._trials.run([self._own(trial) for trial in drawn])
        self.found.searched_s += time.monotonic() - began
        done = list(zip(drawn, outcomes, strict=True))
        self._guidance.learn(done)
        for trial, outcome in done:
            self._count(outcome)
            if outcome.state == "fails":
                self._violated(trial, outcome)
        said = f"{self.found.trials} trials: {self.found.fails} fail, {len(self.found.violations)} violations"
        self._tell(f"{said}, {self._guidance.seen} features seen")

    def _count(self, outcome: Outcome) -> None:
        found = self.found
        found.trials += 1
        found.holds += outcome.state == "holds"
        found.fails += outcome.state == "fails"
        found.unsure += outcome.state == "cannot tell"
        if outcome.state == "broken":
            why = (outcome.error or "").splitlines()[0][:200] if outcome.error else "no reason"
            found.errors[why] = found.errors.get(why, 0) + 1

    def _violated(self, trial: Trial, outcome: Outcome) -> None:
        """Adds a failed trial to the violation that explains it, or shrinks it to a new one."""
        for known in self.found.violations:
            if known.explains(trial, outcome):
                known.trials.append(trial.number)
                return
        if len(self.found.violations) >= MOST_VIOLATIONS:
            return
        self._tell(f"trial {trial.number}: {outcome.broken[0]} fails: {outcome.why[0]}; shrinking")
        began, before = time.monotonic(), self._trials.ran
        smallest = self._shrunk(self._own(trial), outcome)
        self.found.shrunk_s += time.monotonic() - began
        self.found.shrinking_runs += self._trials.ran - before
        (last,) = self._trials.run([smallest])
        one = Violation(last.broken, last.why, smallest, trial.number, [trial.number])
        for known in self.found.violations:
            if (known.broken, known.events) == (one.broken, one.events):
                known.trials.append(trial.number)
                return
        self.found.violations.append(one)
        self._write(one, len(self.found.violations))

    def _shrunk(self, trial: Trial, outcome: Outcome) -> Trial:
        def fails(candidate: Trial) -> bool:
            if not self._trials.valid(candidate):
                return False
            (found,) = self._trials.run([candidate])
            return bool(set(found.broken) & set(outcome.broken))

        smallest = {name: _ends(values)[0] for name, values in self._space.vary.items()}
        return Shrinker(fails).shrink(trial, self._topology.seed, smallest)

    def _write(self, one: Violation, number: int) -> None:
        """Writes the violation's file, and runs it twice: the first run is kept, the second must equal it."""
        name = f"{number:02}-{'-'.join(event.split(' ')[0] for event in one.events) or 'no-event'}"
        text = content(one.smallest, _begin(one, self._settings, name))
        path = self._settings.directory / REPRODUCTIONS / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        run_dir = self._settings.directory / RUNS / name
        self._trials.keep(text, run_dir)
        again = self._settings.directory / TRIALS / "again"
        self._trials.keep(text, again)
        one.repeats = manifest.load(run_dir).hashes == manifest.load(again).hashes
        one.file, one.run_dir = str(path), str(run_dir)
        for _ in range(self._settings.also_real):
            one.real += self._trials.keep(text, again, "real").state == "fails"
            one.real_runs += 1
        shutil.rmtree(again, ignore_errors=True)
        self._tell(f"violation {number}: {path}")


def _begin(one: Violation, settings: Settings, name: str) -> str:
    lines = [
        f"# Found by `vnet hunt` in trial {one.first}, then made smaller while it still fails.",
        *(f"# Breaks: {broken}: {why}" for broken, why in zip(one.broken, one.why, strict=True)),
        f"# vnet run {name}.yaml --time virtual    # exit status 7",
    ]
    return "\n".join(line.replace("\n", " ") for line in lines) + "\n"


def as_data(found: Found, directory: Path) -> dict[str, Any]:
    """Returns what a hunt found as JSON data."""
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
        "tried": found.tried,
        "corpus": found.corpus,
        "violations": [
            {
                "broken": list(one.broken), "why": list(one.why),
                "events": [dict(event) for event in one.smallest.events],
                "seed": one.smallest.seed, "trials": one.trials, "file": one.file, "run_dir": one.run_dir,
                "repeats": one.repeats, "real": one.real, "real_runs": one.real_runs,
            }
            for one in found.violations
        ],
    }  # fmt: skip
