"""Follow a lab process to its end: its events, the passing time, and Ctrl-C (first gently, then hard)."""

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
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Followed:
    """How a lab ended: by itself, after one signal (`presses` is 1), or by force after a second (2 and more).

    `errors` are the texts of the lab's error events; `last` is the event at which following stopped,
    if that was before the lab's process ended.
    """

    presses: int = 0
    errors: tuple[str, ...] = ()
    last: Event | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the lab."""
        return self.presses > 0

    @property
    def killed(self) -> bool:
        """Whether the lab could not tear itself down."""
        return self.presses > 1


def follow(
    start: Callable[[], LabHandle], observe: Observe, until: Callable[[Event], bool] | None = None
) -> tuple[LabHandle, Followed]:
    """Starts a lab and passes every event to `observe`, and `{"event": "tick"}` while nothing happens.

    Ends when the lab's process has ended or an event for which `until` holds has come. Raises what `start`
    raises.
    """
    arrived: Arrived = queue.SimpleQueue()
    followed = Followed()
    with _signals(arrived):  # from before the start: at no moment may Ctrl-C orphan the lab
        handle = start()
        threading.Thread(target=_pump, args=(handle, arrived), daemon=True).start()
        while (event := _next(arrived)) is not None:
            _act(event, handle, followed)
            observe(event)
            if until and until(event):
                followed.last = event
                break
    return handle, followed


def _act(event: Event, handle: LabHandle, followed: Followed) -> None:
    if event["event"] == "signal":
        followed.presses += 1
        event["press"] = followed.presses
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
    except BaseException as error:  # carried to the thread that follows, which raises it
        arrived.put(error)
    arrived.put(None)


@contextmanager
def _signals(arrived: Arrived) -> Iterator[None]:
    """Signals become events: a handler may then neither print nor wait, wherever it strikes."""

    def note(number: int, _: FrameType | None) -> None:
        arrived.put({"event": "signal", "signal": signal.Signals(number).name})

    before = {number: signal.signal(number, note) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
