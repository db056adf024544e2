"""Follows a lab process to its end: passes its events on, adds `tick` and `signal` events, and ends the lab
on Ctrl-C: by request at the first signal, by force at the second.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from orchestrator.kernel.protocol import LabHandle

Event = dict[str, Any]
Observe = Callable[[Event], None]
Arrived = queue.SimpleQueue[Event | BaseException | None]
TICK_S = 0.5
COLLECT = "collect"  # the first phase without load
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Followed:
    """The end of a lab, as `follow` saw it. `interrupted`: True if a first signal began an orderly end of the
    lab. `killed`: True if a second one ended it by force, so that it could not tear itself down. `errors`
    holds the texts of the lab's error events. `last` is the event for which `until` held and at which
    `follow` returned while the lab still runs; None if the lab's process has ended. `failure` is the
    exception that `beside` raised.
    """

    interrupted: bool = False
    killed: bool = False
    errors: tuple[str, ...] = ()
    last: Event | None = None
    failure: BaseException | None = None


def follow(
    start: Callable[[], LabHandle],
    observe: Observe,
    until: Callable[[Event], bool] | None = None,
    beside: Callable[[], None] | None = None,
) -> Followed:
    """Starts a lab; passes its events to `observe`, and `{"event": "tick"}` after TICK_S without one.

    Signals become events, too, and end the lab. Returns how the lab ended, once its process has ended or an
    event has arrived for which `until` holds. `beside` runs in a thread from the phase `collect` on, and has
    ended when `follow` returns. Raises what `start` and the lab's events raise.
    """
    arrived: Arrived = queue.SimpleQueue()
    followed = Followed()
    thread = threading.Thread(target=_run, args=(beside, followed))
    # The signal handlers are set before the lab starts, because a Ctrl-C in between would leave the lab
    # behind.
    with _signals(arrived):
        handle = start()
        threading.Thread(target=_pump, args=(handle, arrived), daemon=True).start()
        while (event := _next(arrived)) is not None:
            _act(event, handle, followed)
            if event.get("phase") == COLLECT and thread.ident is None:
                thread.start()
            observe(event)
            if until and until(event):
                followed.last = event
                break
    if thread.ident is not None:
        thread.join()
    return followed


def _run(beside: Callable[[], None] | None, followed: Followed) -> None:
    try:
        if beside is not None:
            beside()
    except BaseException as failure:  # the caller of `follow` raises it
        followed.failure = failure


def _act(event: Event, handle: LabHandle, followed: Followed) -> None:
    if event["event"] == "signal":
        followed.killed, followed.interrupted = followed.interrupted, True
        event["press"] = 2 if followed.killed else 1
        if followed.killed:
            handle.kill()
        else:
            handle.interrupt()
    elif event["event"] == "error":
        followed.errors += (str(event.get("text", "")),)


def _next(arrived: Arrived) -> Event | None:
    try:
        item = arrived.get(timeout=TICK_S)
    except queue.Empty:
        return {"event": "tick"}
    if isinstance(item, BaseException):
        raise item
    return item


def _pump(handle: LabHandle, arrived: Arrived) -> None:
    try:
        for event in handle.events():
            if "event" in event:
                arrived.put(event)
    except BaseException as error:  # `_next` raises it in the thread that follows the lab
        arrived.put(error)
    arrived.put(None)


@contextmanager
def _signals(arrived: Arrived) -> Iterator[None]:
    """While the context lasts, SIGINT, SIGTERM and SIGHUP put an event into `arrived` and do nothing else.

    A handler interrupts other code at any place, so it must neither print nor wait.
    """

    def note(number: int, _: FrameType | None) -> None:
        arrived.put({"event": "signal", "signal": signal.Signals(number).name})

    before = {number: signal.signal(number, note) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
