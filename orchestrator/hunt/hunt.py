"""Runs a hunt: a baseline, the corpus, then rounds of trials; shrinks each new violation and writes it as a
file.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from orchestrator.hunt import journal
from orchestrator.hunt.checking import Settings, checked, ends, faults
from orchestrator.hunt.drawing import Space, draw
from orchestrator.hunt.files import content
from orchestrator.hunt.found import KNOWN, Found, Violation, ways
from orchestrator.hunt.guidance import Guidance
from orchestrator.hunt.model import Data, HuntError, Outcome, Trial
from orchestrator.hunt.shrinking import Shrinker
from orchestrator.hunt.trials import TRIALS, Trials, equal
from orchestrator.topology import Topology
from orchestrator.topology.hunt import HuntBlock
from reports.report import report

# number of trials that are drawn before any of their outcomes is known; the same for any number of workers
ROUND = 8
REPRODUCTIONS, RUNS = "reproductions", "violations"
REPEAT = 32  # one trial in this many is run twice, whether or not it fails
MOST_VIOLATIONS = 20  # largest number of violations that are shrunk
MOST_NAMES = 1000  # largest number of files of one name in a corpus
Tell = Callable[[str], None]


def hunt(settings: Settings, tell: Tell) -> Found:
    """Runs a hunt, or continues the one in its directory; returns what it found. Ctrl-C raises
    KeyboardInterrupt; outcomes that were recorded until then stay. Raises TopologyError, KernelError or
    HuntError before the first trial if the file cannot be hunted.
    """
    topology = checked(settings)
    about = {
        "file": hashlib.sha256(settings.file.read_bytes()).hexdigest(),
        "parameters": dict(settings.parameters),
        "seed": _seed(settings, topology),
        "guided": settings.guided,
    }
    with journal.opened(settings.directory, about) as book:
        # a killed hunt leaves the runs of its trials
        shutil.rmtree(settings.directory / TRIALS, ignore_errors=True)
        trials = Trials(settings.file, settings.directory, book, settings.kernel, settings.workers)
        try:
            return Hunt(settings, topology, trials, tell).run()
        finally:
            trials.close()
            shutil.rmtree(settings.directory / TRIALS, ignore_errors=True)


def _seed(settings: Settings, topology: Topology) -> int:
    return topology.seed if settings.seed is None else settings.seed


class Hunt:
    """One hunt on a checked file. `trials` runs its trials; `tell` receives a line about each step."""

    def __init__(self, settings: Settings, topology: Topology, trials: Trials, tell: Tell) -> None:
        self._settings, self._topology, self._trials, self._tell = settings, topology, trials, tell
        block = topology.model.hunt or HuntBlock.model_validate({})
        self._limits = block.at_most
        self._space = Space(
            faults(topology), dict(block.vary), block.at_most.events, topology.phases.hold_ns, block.quiet
        )
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
        trial = self._own(Trial(0, self._topology.seed))
        (outcome,) = self._trials.run([trial])
        self._tell(f"baseline: {outcome.state}")
        if outcome.state == "holds":
            self._same(trial, outcome)
            return
        file, why = self._settings.file, "; ".join(outcome.why) or outcome.error
        if outcome.state == "fails":
            rule = f'expect: "{outcome.failing[0]}" fails without any fault ({why})'
            raise HuntError(
                f"{file}: {rule}; mend the file until `vnet run --time virtual` ends with status 0"
            )
        if outcome.state == "cannot tell":
            rule = f"expect: has no verdict without any fault ({why})"
            raise HuntError(f"{file}: {rule}; state a condition that a run can decide")
        raise HuntError(f"{file}: does not run without any fault ({why}); mend that first")

    def _same(self, trial: Trial, recorded: Outcome) -> None:
        """Runs the baseline again: its bytes must be those that are recorded. Raises HuntError if two fresh
        runs are equal and the recorded one differs, because all records then come from other programs.
        """
        folder, text = self._settings.directory / TRIALS / "baseline", content(trial)
        before = recorded if recorded.hashed else self._trials.keep(text, folder)
        fresh = self._trials.keep(text, folder)
        same = equal(before, fresh)
        if same is False and equal(fresh, self._trials.keep(text, folder)):
            place = self._settings.directory
            rule = "the run without faults is no more what it was: the programs, the kernel or vNET changed"
            raise HuntError(
                f"{place}: {rule}; give another --out, with the directory {REPRODUCTIONS} of this one"
            )
        shutil.rmtree(folder, ignore_errors=True)
        self.found.repeat("the baseline", same)

    def _corpus(self) -> None:
        """Runs the reproductions of earlier hunts, so that a defect that has returned is found at once.
        Recorded outcomes do not replace these runs, since the programs may have changed.
        """
        run_dir = self._settings.directory / TRIALS / "corpus"
        for path in sorted((self._settings.directory / REPRODUCTIONS).glob("*.yaml")):
            outcome = self._trials.keep(path.read_text(encoding="utf-8"), run_dir)
            shutil.rmtree(run_dir, ignore_errors=True)
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
            self.found.count(trial, outcome, self._space.hold_ns)
            if trial.number % REPEAT == 1 and outcome.state != "aborted":
                self.found.repeat(f"trial {trial.number}", self._trials.repeats(self._own(trial)))
            for way in ways(outcome):
                self._violated(trial, way)
        found, seen = self.found, self._guidance.seen
        found.rounds.append((found.trials, seen, len(found.violations)))
        said = f"{found.trials} trials: {found.fails} fail, {len(found.violations)} violations"
        self._tell(f"{said}, {seen} features seen")

    def _violated(self, trial: Trial, way: str) -> None:
        """Adds a failed trial to the violation that explains it; otherwise shrinks it to a new violation."""
        for known in self.found.violations:
            if known.explains(way, trial):
                known.trials.append(trial.number)
                return
        if len(self.found.violations) >= MOST_VIOLATIONS:
            return
        self._tell(f"trial {trial.number}: {way}; shrinking")
        began, before = time.monotonic(), self._trials.ran
        smallest = self._shrunk(self._own(trial), way)
        self.found.shrunk_s += time.monotonic() - began
        self.found.shrinking_runs += self._trials.ran - before
        (last,) = self._trials.run([smallest])
        one = Violation(way, last.failing, last.why, smallest, trial.number, [trial.number])
        for known in self.found.violations:
            if (known.way, known.events) == (way, one.events):
                known.trials.append(trial.number)
                return
        self.found.violations.append(one)
        self._write(one, len(self.found.violations))

    def _shrunk(self, trial: Trial, way: str) -> Trial:
        def fails(candidate: Trial) -> bool:
            if not self._trials.valid(candidate):
                return False
            (outcome,) = self._trials.run([candidate])
            return way in ways(outcome)

        smallest = {name: ends(values)[0] for name, values in self._space.vary.items()}
        shrinker = Shrinker(fails, quiet_ns=self._space.quiet_ns)
        return shrinker.shrink(trial, self._topology.seed, smallest)

    def _write(self, one: Violation, number: int) -> None:
        """Writes the violation's file, and runs it twice. The first run is kept with its report and must
        break the expectation, too. The second run must equal the first.
        """
        base = f"{number:02}-{'-'.join(event.split(' ')[0] for event in one.events) or 'no-event'}"
        path, text = self._free(base, one)
        name = path.stem
        run_dir = self._settings.directory / RUNS / name
        kept = self._trials.keep(text, run_dir)
        again = self._settings.directory / TRIALS / "again"
        one.repeats = bool(equal(kept, self._trials.keep(text, again))) and one.way in ways(kept)
        one.file, one.run_dir = str(path), str(run_dir)
        if kept.state != "aborted":
            report(run_dir)
        for _ in range(self._settings.also_real):
            outcome = self._trials.keep(text, again, "real")
            one.real += one.way in ways(outcome)
            one.real_runs += outcome.state in KNOWN
        shutil.rmtree(again, ignore_errors=True)
        self._tell(f"violation {number}: {path}")

    def _free(self, base: str, one: Violation) -> tuple[Path, str]:
        """Writes a violation's file; returns its path and text. If a file of that name with other content
        exists from an earlier hunt, it stays, and the new name ends in -2, -3, ...
        """
        folder = self._settings.directory / REPRODUCTIONS
        folder.mkdir(exist_ok=True)
        for name in (base, *(f"{base}-{more}" for more in range(2, MOST_NAMES))):
            path, text = folder / f"{name}.yaml", content(one.smallest, _begin(one, name))
            if not path.exists() or path.read_text(encoding="utf-8") == text:
                path.write_text(text, encoding="utf-8")
                return path, text
        raise HuntError(f"{folder}: holds {MOST_NAMES} files {base}-N.yaml; move some away")


def _begin(one: Violation, name: str) -> str:
    lines = [
        f"# Found by `vnet hunt` in trial {one.first}, then made smaller while it still fails.",
        *(f"# Breaks: {failing}: {why}" for failing, why in zip(one.failing, one.why, strict=True)),
        f"# vnet run {name}.yaml --time virtual    # exit status 7",
    ]
    return "\n".join(line.replace("\n", " ") for line in lines) + "\n"
