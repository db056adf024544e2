"""Runs all trials of a lab one after another: for every generator of the plan, every frame size and every
test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capture.ethernet import line_fps
from contract import codec
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.trials import search
from orchestrator.lab.trials.exchange import exchange
from orchestrator.lab.trials.records import Records
from orchestrator.lab.trials.search import Finding, Steps
from orchestrator.lab.trials.trial import Outcome, Trial
from orchestrator.software.frames.trials import KIND_NAME, Frames


@dataclass(frozen=True, slots=True)
class Stream:
    """A traffic generator of the plan, with its destination and tests."""

    node: str
    name: str  # the software's name on that node
    frames: Frames

    @property
    def label(self) -> str:
        """The generator's name in the records."""
        return f"{self.node}.{self.name}"


def streams(lab: Lab) -> list[Stream]:
    """Returns the plan's traffic generators, in the order of its nodes."""
    return [
        Stream(n.name, s.name, codec.build(Frames, s.spec))
        for n in lab.plan.nodes
        for s in n.software
        if s.kind == KIND_NAME
    ]


class Trials:
    """Carries out the trials one at a time and records each."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._records = Records(lab.run_dir / "raw")
        self._number = 0
        self._slow: set[tuple[str, int]] = set()

    def run(self) -> None:
        """Carries out all trials, for each generator, frame size and test, and records trials and findings;
        warns if latency was measured too slowly. Raises LabError if a node cannot take part.
        """
        planned = [(s, size) for s in streams(self._lab) for size in s.frames.sizes]
        for done, (stream, size) in enumerate(planned):
            self._place = (done, len(planned), f"{stream.node} to {stream.frames.to}, {size} B")
            for steps in self._tests(stream, size):
                finding = self._follow(stream, steps)
                self._records.finding(stream.label, finding)
                self._last = finding
        self._say_slow()

    def _tests(self, stream: Stream, size: int) -> Iterator[Steps]:
        """Yields the requested searches of one frame size; they use the findings of earlier ones. Latency is
        left out if the throughput is 0 or was not requested.
        """
        wanted = stream.frames
        found, top = 0.0, line_fps(size, wanted.line_rate_bps)
        if "throughput" in wanted.tests:
            yield search.throughput(wanted, size)
            # The rate is at most the one that the generator reached: a rate that it cannot offer does not
            # test the path.
            found, top = self._last.value, min(top, self._last.top_fps)
        if "latency" in wanted.tests and found:
            yield search.latency(wanted, size, found)
        if "frame-loss" in wanted.tests:
            yield search.frame_loss(wanted, size, top)
        longest = None
        for repetition in range(1, wanted.burst_trials + 1 if "back-to-back" in wanted.tests else 1):
            yield search.back_to_back(wanted, size, top, repetition, longest)
            longest = int(self._last.value)

    def _follow(self, stream: Stream, steps: Steps) -> Finding:
        """Carries out the trials that one search requests, to its end; returns its finding."""
        outcome: Outcome | None = None
        while True:
            try:
                trial = steps.send(outcome) if outcome else next(steps)
            except StopIteration as end:
                finding: Finding = end.value
                return finding
            outcome = self._one(stream, trial)

    def _one(self, stream: Stream, trial: Trial) -> Outcome:
        """Carries out one trial, records its outcome and returns it."""
        lab = self._lab
        self._number += 1
        rate = f"{trial.rate_fps:,.0f} frames/s" if trial.rate_fps else f"{trial.count:,} back to back"
        done, total, where = self._place
        lab.events.phase("hold", done, total, f"{where}, {trial.test}: {rate}")
        outcome = exchange(lab.driver.call, stream.node, stream.frames, trial, self._number)
        verdict = outcome.verdict(stream.frames.tolerate)
        now = lab.loop.clock.now_ns()
        self._records.trial(self._number, now, stream.label, outcome, verdict)
        if trial.test == "latency" and verdict == "tester":
            self._slow.add((stream.node, trial.size))
        return outcome

    def _say_slow(self) -> None:
        """Warns of nodes where the tester limited a latency trial, since latency was then measured below the
        throughput's load.
        """
        for node in dict.fromkeys(name for name, _ in sorted(self._slow)):
            sizes = ", ".join(str(size) for name, size in sorted(self._slow) if name == node)
            self._lab.events.warn(Warning(
                "trial-slow",
                f"{node}: frames of {sizes} B: in latency trials the tester could not keep the rate up or "
                "dropped frames itself: their load was lower than the throughput",
                "repeat the run when the machine is idle, or with longer trials",
                suspect=False,
            ))  # fmt: skip
