"""RFC 2544's four tests as generators: each yields trials, receives their outcomes by `send`, and returns a
finding.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from capture.ethernet import line_fps
from orchestrator.lab.clock import SECOND
from orchestrator.lab.trials.trial import Outcome, Trial, TrialResult
from orchestrator.software.frames.trials import Frames

Limit = Literal["line", "path", "tester", "length"]
Steps = Generator[Trial, Outcome, "Finding"]

# attempts at a trial if the tester could not offer the rate: other work on the machine may have delayed it
ATTEMPTS = 2
HELD_UP = 3  # attempts if frames took too long: a growing queue delays frames again, the machine may not
DOUBTFUL = 6  # attempts if the tester offered a higher rate before: something must have delayed the tester
MOST_TRIALS = 40  # most trials of one search; halving from any rate to one frame per trial takes fewer
LEAST_FRAMES = 10  # fewest frames of a trial; a path that loses one of 10 does not carry the rate
# the frame loss rate test ends after this many successive loads without loss (RFC 2544, section 26.3)
EMPTY_RUNS = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a search. value: frames a second or frames (`unit`); limit: the reason why it is not
    larger; top_fps: the highest rate that was really offered.
    """

    test: str
    size: int
    repetition: int
    value: float
    unit: str
    limit: Limit
    top_fps: float = 0.0  # the highest rate that was really offered


def frames_in(rate_fps: float, length_ns: int) -> int:
    """Returns the number of frames of a trial of that length (ns) at that rate; at least two, so that the
    trial has a rate.
    """
    return max(2, round(rate_fps * length_ns / SECOND))


def patiently(
    trial: Trial, tolerate: float, offered: float = 0.0
) -> Generator[Trial, Outcome, tuple[Outcome, TrialResult]]:
    """Yields a trial, and yields it again while the machine may be the cause of its result, up to 6 times in
    all; returns the best outcome and its verdict.

    An outcome `queued` is repeated up to 3 times, `tester` up to 2, or 6 if the sender reached a higher rate
    before. tolerate: share of frames that may be lost; offered: the highest rate that the sender reached
    before.
    """
    best = yield trial
    most = {"queued": HELD_UP, "tester": DOUBTFUL if trial.rate_fps < offered else ATTEMPTS}
    tries = 1
    while tries < most.get(best.verdict(tolerate), 0):
        again = yield trial
        tries += 1
        if again.verdict(tolerate) in ("passed", "lost") or again.achieved_fps > best.achieved_fps:
            best = again
    return best, best.verdict(tolerate)


def throughput(wanted: Frames, size: int) -> Steps:
    """RFC 2544, section 26.1: searches the highest rate without loss (or with the tolerated one), in at most
    40 guesses.

    The search begins at the line rate; the delivered rate of the first trial that failed is the next guess.
    Later guesses differ by growing steps, each at most to the middle of the open interval. The result is at
    most the delivered rate.
    """
    top = line_fps(size, wanted.line_rate_bps)
    floor = LEAST_FRAMES * SECOND / wanted.trial_ns
    found, low, high, guess = 0.0, 0.0, top, top
    up = down = 2 * wanted.resolution
    limit: Limit = "line"
    offered = 0.0
    for _ in range(MOST_TRIALS):
        trial = Trial("throughput", size, guess, frames_in(guess, wanted.trial_ns))
        outcome, verdict = yield from patiently(trial, wanted.tolerate, offered)
        offered = max(offered, outcome.achieved_fps)
        if verdict in ("passed", "tester") and not outcome.ring_dropped and not outcome.held_back:
            low = max(low, min(outcome.achieved_fps, guess))
            # The finding is the delivered rate if that is lower: a queue may grow too slowly to be seen.
            found = max(found, min(low, outcome.delivered_fps))
        if verdict == "passed":
            if guess >= top:
                break
        elif verdict == "tester":
            # The tester cannot offer more; if the tester itself dropped frames, it must offer less.
            high, limit = min(high, guess if outcome.ring_dropped else outcome.achieved_fps), "tester"
        else:
            high, limit = min(high, guess), "path"
        if high - low <= wanted.resolution * high or high <= floor:
            break
        if low:
            guess, up = min((low + high) / 2, low * (1 + up)), 2 * up
        else:
            guess, down = _lower(high, outcome.delivered_fps, wanted.resolution, down)
    return Finding("throughput", size, 1, found, "frames/s", limit, offered)


def _lower(high: float, delivered_fps: float, resolution: float, step: float) -> tuple[float, float]:
    """Returns the next guess (frames/s) below `high` while nothing has passed, and the next step: just below
    the delivered rate if that is clearly lower, else lower than `high` by a growing step.
    """
    if 0 < delivered_fps < high * (1 - 2 * resolution):
        return delivered_fps * (1 - resolution), step
    return high * (1 - min(step, 0.5)), 2 * step


def latency(wanted: Frames, size: int, rate_fps: float) -> Steps:
    """RFC 2544, section 26.2: measures `latency_trials` times at `rate_fps`; the finding has that rate. The
    reports compute means and percentiles from the records.
    """
    for repetition in range(1, wanted.latency_trials + 1):
        count = frames_in(rate_fps, wanted.latency_trial_ns)
        yield Trial("latency", size, rate_fps, count, repetition)
    return Finding("latency", size, 1, rate_fps, "frames/s offered", "line")


def frame_loss(wanted: Frames, size: int, top_fps: float) -> Steps:
    """RFC 2544, section 26.3: measures from the load `top_fps` downwards in steps, until two loads in a row
    lose nothing; the finding has the highest load.
    """
    share, clean = 1.0, 0
    while share > wanted.loss_step / 2 and clean < EMPTY_RUNS:
        rate = share * top_fps
        outcome = yield Trial("frame-loss", size, rate, frames_in(rate, wanted.trial_ns))
        clean = clean + 1 if not outcome.lost else 0
        share -= wanted.loss_step
    return Finding("frame-loss", size, 1, top_fps, "frames/s at most", "line")


def back_to_back(wanted: Frames, size: int, top_fps: float, repetition: int, first: int | None) -> Steps:
    """RFC 2544, section 26.4: searches the longest burst without loss (or with the tolerated one). first: the
    result of an earlier search, as the first guess; None begins with the longest burst.
    """
    most = max(LEAST_FRAMES, round(top_fps * wanted.burst_ns / SECOND))
    low, high = 0, most + 1  # the longest burst that passed, and the shortest that did not
    guess, step = min(most, first or most), 2 * wanted.resolution
    limit: Limit = "length"
    for _ in range(MOST_TRIALS):
        trial = Trial("back-to-back", size, 0.0, guess, repetition)
        outcome, verdict = yield from patiently(trial, wanted.tolerate)
        if verdict == "passed" and outcome.sent < guess:
            return Finding("back-to-back", size, repetition, float(outcome.sent), "frames", "tester", top_fps)
        if verdict == "passed":
            low = guess
        else:
            high, limit = guess, "tester" if verdict == "tester" else "path"
        if low >= most or high - low <= max(1, wanted.resolution * low):
            break
        guess, step = _burst(low, high, most, step, outcome), 2 * step
    return Finding("back-to-back", size, repetition, float(low), "frames", limit, top_fps)


def _burst(low: int, high: int, most: int, step: float, outcome: Outcome) -> int:
    """Returns the next burst length to try: a longer one while none has failed; the number of received frames
    while none has passed; else the middle of both.
    """
    if high > most:
        return min(most, low + max(1, round(min(step, 1.0) * low)))
    if not low and 0 < outcome.received < high:
        return max(1, min(high - 1, outcome.received))
    return max(1, (low + high) // 2)
