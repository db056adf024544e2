"""The event loop of the lab process (selectors): while the scenario waits in `until`, the loop serves sockets
and timers.
"""

from __future__ import annotations

import heapq
import selectors
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.lab.clock import MILLISECOND, SECOND, Clock
from orchestrator.lab.errors import TimedOut

# time before a probe without a descriptor is called again; it doubles with each call ...
SHORTEST_WAIT_NS = MILLISECOND
LONGEST_WAIT_NS = SECOND // 4  # ... up to this time
Call = Callable[[], None]


@dataclass(order=True)
class Timer:
    """A timer that calls `call` at multiples of `interval_ns` after the first time, or only once if the
    interval is 0.

    late_ns: the lateness of each call.
    """

    due_ns: int
    interval_ns: int = field(compare=False)
    call: Call = field(compare=False)
    late_ns: list[int] = field(compare=False, default_factory=list)
    cancelled: bool = field(compare=False, default=False)


class Calls(selectors.DefaultSelector):
    """A selector that stores a function for each descriptor and calls it when the descriptor is ready."""

    _turns = 0

    def turn(self, wait_s: float) -> bool:
        """Waits up to `wait_s` for ready descriptors and calls their functions; returns whether any was
        ready.

        A called function may unregister other descriptors, or run a nested turn that serves them. After a
        nested turn the outer one stops; descriptors that are still ready are served in the next turn.
        """
        self._turns += 1
        turn = self._turns
        ready = self.select(wait_s)
        for key, _ in ready:
            if self._turns != turn:
                break
            if self.get_map().get(key.fd) is key:
                key.data()
        return bool(ready)


class Loop:
    """Waits for conditions until deadlines and serves descriptors and timers meanwhile; `interrupt` raises an
    exception out of the innermost wait.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._calls = Calls()
        self._timers: list[Timer] = []
        self._stop: BaseException | None = None
        self._shielded = False

    def watch(self, fd: int, readable: Call) -> None:
        self._calls.register(fd, selectors.EVENT_READ, readable)

    def unwatch(self, fd: int) -> None:
        if fd in self._calls.get_map():
            self._calls.unregister(fd)

    def every(self, interval_ns: int, call: Call) -> Timer:
        timer = Timer(self.clock.now_ns() + interval_ns, interval_ns, call)
        heapq.heappush(self._timers, timer)
        return timer

    def at(self, due_ns: int, call: Call) -> Timer:
        """Calls `call` once at lab time `due_ns`; returns the timer."""
        timer = Timer(due_ns, 0, call)
        heapq.heappush(self._timers, timer)
        return timer

    def interrupt(self, why: BaseException) -> None:
        """Makes the current wait, or the next one, raise `why`; later calls are ignored."""
        if self._stop is None:
            self._stop = why

    @property
    def interrupted(self) -> BaseException | None:
        return self._stop

    def shield(self) -> None:
        """Makes all later waits ignore interruptions, for the teardown."""
        self._shielded = True

    def suspend_interruption(self, work: Call) -> None:
        """Runs `work` without interruptions; a pending one takes effect afterwards."""
        stop, self._shielded = self._stop, True
        try:
            work()
        finally:
            self._shielded = False
            self._stop = stop or self._stop

    def until(self, deadline_ns: int, subject: str, probe: Callable[[], bool]) -> None:
        """Serves descriptors and timers until `probe()` is true; raises TimedOut with the subject at the
        deadline (lab time).
        """
        started, wait_ns = self.clock.now_ns(), SHORTEST_WAIT_NS
        while True:
            self._raise_stop()
            if probe():
                return
            now = self.clock.now_ns()
            if now >= deadline_ns:
                waited = (now - started) / SECOND
                raise TimedOut(f"waited {waited:.1f} s for {subject}, in vain")
            self._turn(min(deadline_ns, now + wait_ns))
            wait_ns = min(2 * wait_ns, LONGEST_WAIT_NS)

    def sleep_until(self, due_ns: int) -> None:
        """Serves descriptors and timers until lab time `due_ns`, and returns."""
        while self.clock.now_ns() < due_ns:
            self._raise_stop()
            self._turn(due_ns)
        self._raise_stop()

    def serve(self) -> None:
        """Serves descriptors and timers in real time until interrupted."""
        while True:
            self._raise_stop()
            due = min([LONGEST_WAIT_NS] + [t.due_ns - self.clock.now_ns() for t in self._timers[:1]])
            self._dispatch(max(0, due) / SECOND)

    def _raise_stop(self) -> None:
        if self._stop is not None and not self._shielded:
            raise self._stop

    def _turn(self, deadline_ns: int) -> None:
        now = self.clock.now_ns()
        due = min([deadline_ns, now + LONGEST_WAIT_NS] + [t.due_ns for t in self._timers[:1]])
        wait_ns = max(0, due - now)
        if not self._dispatch(0 if self.clock.jumps else wait_ns / SECOND):
            self.clock.advance(wait_ns)
            self._run_timers()

    def _dispatch(self, wait_s: float) -> bool:
        """Waits for ready descriptors, at most for a timeout, and serves them; returns whether any
        was ready.
        """
        served = self._calls.turn(wait_s)
        self._run_timers()
        return served

    def _run_timers(self) -> None:
        now = self.clock.now_ns()
        while self._timers and self._timers[0].due_ns <= now:
            timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            timer.late_ns.append(now - timer.due_ns)
            if not timer.interval_ns:
                timer.call()
                continue
            # Missed calls are skipped: the next call is at the first multiple of the interval after now.
            timer.due_ns += timer.interval_ns * (1 + (now - timer.due_ns) // timer.interval_ns)
            heapq.heappush(self._timers, timer)
            timer.call()
