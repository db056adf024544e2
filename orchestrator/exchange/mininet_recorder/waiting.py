"""Keeps the script's time: what it sleeps passes at once on a clock of its own, timers run when their time
has come on that clock, and changes by them are reported as later ones.
"""

from __future__ import annotations

import atexit
import itertools
import sched
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .said import PAUSED, SCRIPT, here, leave, pause

SLEPT = [0.0]  # s that the script has slept
MOST = 1000  # largest number of timers that run
_WAITING: list[Timer] = []
_NUMBERS = itertools.count()
_START, _WAIT = threading.Thread.start, threading.Event.wait
_SLEEP = time.sleep


class Timer:
    """A timer of the script, with the methods of threading.Timer; its function runs in the main thread."""

    def __init__(
        self, interval: float, function: Callable[..., Any], args: Iterable[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.interval, self.function = interval, function
        self.args, self.kwargs = list(args or ()), dict(kwargs or {})
        self.daemon, self.name, self.line, self.due = False, f"Timer-{next(_NUMBERS)}", 0, (0.0, 0)
        self.finished = threading.Event()

    def start(self) -> None:
        """Starts the timer at the present time of the script."""
        self.line = here()
        if next(_NUMBERS) > MOST:
            leave(f"more than {MOST} timers: the others are not run")
            return
        self.due = (SLEPT[0] + float(self.interval), next(_NUMBERS))
        _WAITING.append(self)

    def cancel(self) -> None:
        """Stops the timer, if it has not run."""
        self.finished.set()
        if self in _WAITING:
            _WAITING.remove(self)

    def setDaemon(self, daemon: bool) -> None:
        """Sets `daemon`, as in older versions of Python."""
        self.daemon = daemon

    def is_alive(self) -> bool:
        """Returns whether the timer waits."""
        return self in _WAITING

    def join(self, timeout: float | None = None) -> None:
        """Lets the time pass until the timer has run, or for `timeout` s."""
        if self in _WAITING:
            rest = self.due[0] - SLEPT[0]
            passed(rest if timeout is None else min(rest, timeout))

    def run(self) -> None:
        """Calls the function."""
        self.function(*self.args, **self.kwargs)

    def fire(self) -> None:
        """Runs the timer; what it changes is reported as later than its start."""
        _WAITING.remove(self)
        self.finished.set()
        PAUSED[0] = self.line or PAUSED[0]
        if type(self).run is not Timer.run:
            leave(f"the timer of line {self.line} has a way of its own to run: it is not run")
            return
        try:
            self.run()
        except Exception as failure:  # in Python it ends the timer's thread only
            leave(f"the timer of line {self.line} fails ({type(failure).__name__}: {failure!s:.80})")


def passed(seconds: float) -> None:
    """Lets seconds pass on the script's clock; timers that are due run in their order."""
    end = SLEPT[0] + max(0.0, seconds)
    while due := sorted((one for one in _WAITING if one.due[0] <= end), key=lambda one: one.due):
        SLEPT[0] = max(SLEPT[0], due[0].due[0])
        due[0].fire()
    SLEPT[0] = end


def all_passed() -> None:
    """Lets each timer run that waits now: the script waits for a user, or for its own end. Reports those that
    they start.
    """
    waiting = sorted((one for one in _WAITING if not one.daemon), key=lambda one: one.due)
    for one in waiting:
        if one in _WAITING:
            SLEPT[0] = max(SLEPT[0], one.due[0])
            one.fire()
    for one in [one for one in _WAITING if one not in waiting]:
        leave(f"the timer of line {one.line} is not run")
        _WAITING.remove(one)


def slept(seconds: float) -> None:
    """Replaces time.sleep: notes a pause and lets the script's time pass; a thread sleeps 1 ms."""
    if threading.current_thread() is not threading.main_thread():
        _SLEEP(0.001)
        return
    pause()
    passed(float(seconds))


def _waited(self: threading.Event, timeout: float | None = None) -> bool:
    if timeout and sys._getframe(1).f_code.co_filename == SCRIPT[0]:
        slept(timeout)
        timeout = 0.01
    return _WAIT(self, timeout)


def _alarm(seconds: float, *_rest: Any) -> int:
    if seconds:
        leave(f"a signal after {seconds} s is not sent")
    return 0


def keep_time() -> None:
    """Replaces what waits and what acts later: sleep, timers, events, signals, schedulers."""
    time.sleep = slept  # type: ignore[assignment]
    threading.Timer = Timer  # type: ignore[misc, assignment]
    threading.Event.wait = _waited  # type: ignore[method-assign]
    signal.alarm = _alarm
    signal.setitimer = lambda _which, seconds, *_rest: (_alarm(seconds), (0.0, 0.0))[1]
    signal.pause = pause
    sched.scheduler.__init__.__defaults__ = (time.monotonic, slept)


def keep_asyncio() -> None:
    """Replaces asyncio.sleep, whose time passes at once, too."""
    import asyncio

    original = asyncio.sleep

    async def sleep(delay: float, result: Any = None) -> Any:
        slept(delay)
        return await original(0, result)

    asyncio.sleep = sleep


def ended(error: bool) -> None:
    """Does what Python does at the script's end: waits for threads (2 s at most), lets timers run, and calls
    the functions of atexit. error: the script failed, so timers do not matter.
    """
    if not error:
        all_passed()
    others = [one for one in threading.enumerate() if one is not threading.main_thread() and not one.daemon]
    for one in others:
        one.join(2 / len(others))
    if any(one.is_alive() for one in others):
        leave("what a thread of the script does after its end")
    atexit._run_exitfuncs()
