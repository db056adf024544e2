"""Watches labs for their viewers: queries a lab at a fixed interval (1 s by default), once for all its
viewers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contract import events, manifest
from contract.codec import from_json
from contract.plan import Plan
from orchestrator.cli.control import ControlError, Message
from orchestrator.cli.page import network
from orchestrator.cli.page.flows import Flows
from orchestrator.cli.page.metrics import Facts
from orchestrator.cli.page.rates import Links, Nodes
from orchestrator.cli.page.source import Source, source
from orchestrator.cli.page.tail import Tail, whole

EVERY_S = 1.0
INSPECT_EVERY_S = 3.0  # shortest interval in s between two `inspect` of a large lab
SMALL = 60  # largest number of nodes of a lab that is inspected at each change
KEPT_EVENTS = 500
KEEP_S = 150.0  # s for which a lab is watched after a scrape; Prometheus scrapes once a minute by default
PATIENCE_S = 5.0  # longest time in s that a scrape waits for a lab's first answer
SILENT = 10  # number of intervals without an answer after which viewers see that the lab is silent
LATE = 10  # a viewer with fewer waiting frames than this still gets samples
BEHIND = 3000  # a viewer with more waiting frames than this is disconnected
CHANGES = ("event", "node-state", "exited", "restarted", "ready")
Frame = dict[str, Any]


class Watches:
    """The labs that have viewers: starts to watch a lab for its first viewer, and stops after the last."""

    def __init__(self, state_root: Callable[[], Path], every_s: float = EVERY_S) -> None:
        self._root = state_root
        self._every_s = every_s
        self._open: dict[str, Watch] = {}

    @property
    def open(self) -> list[str]:
        """Returns the names of the labs that are watched now."""
        return list(self._open)

    def of(self, lab: str) -> Watch | None:
        """Returns the watch of a lab; None if it has no viewers."""
        return self._open.get(lab)

    @contextlib.asynccontextmanager
    async def look(self, lab: str) -> AsyncIterator[asyncio.Queue[Frame | None]]:
        """Yields a queue that receives a lab's frames while the context lasts, beginning with the kept ones;
        None in the queue means that the lab has ended.
        """
        watch = self._open.get(lab)
        if watch is None or watch.over:
            watch = self._open[lab] = Watch(self._root() / lab, self._every_s)
        queue = watch.join()
        try:
            yield queue
        finally:
            watch.leave(queue)
            if not watch.viewers:
                if self._open.get(lab) is watch:
                    del self._open[lab]
                await watch.stop()


class Scrapes:
    """Watches labs for a scraper of metrics, for `keep_s` seconds after each scrape."""

    def __init__(self, watches: Watches, keep_s: float = KEEP_S, patience_s: float = PATIENCE_S) -> None:
        self._watches, self._keep_s, self._patience_s = watches, keep_s, patience_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._until = 0.0

    async def facts(self, labs: Iterable[str]) -> list[Facts]:
        """Returns the facts of these labs, and watches the labs for `keep_s` more seconds; waits up to
        `patience_s` for the first answer of a lab.
        """
        wanted = list(labs)
        self._until = time.monotonic() + self._keep_s
        for lab in wanted:
            if (task := self._tasks.get(lab)) is None or task.done():
                self._tasks[lab] = asyncio.create_task(self._look(lab))
        await asyncio.sleep(0)  # lets each task begin its watch
        found = [self._watches.of(lab) for lab in wanted]
        return await asyncio.gather(*(one.facts(self._patience_s) for one in found if one is not None))

    async def _look(self, lab: str) -> None:
        async with self._watches.look(lab) as queue:
            while (left := self._until - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    if await asyncio.wait_for(queue.get(), left) is None:
                        return


class Watch:
    """Queries one lab and sends the answers as frames to the queues of its viewers."""

    def __init__(self, state_dir: Path, every_s: float) -> None:
        self._state_dir = state_dir
        self._every_s = every_s
        self.viewers: list[asyncio.Queue[Frame | None]] = []
        self.over = False
        self.asked = asyncio.Event()  # set after the first query
        self._kept: dict[str, Frame] = {}  # last frame of each kind, for later viewers
        self._events: deque[Frame] = deque(maxlen=KEPT_EVENTS)
        self._found: Message | None = None  # the last answer to `inspect`
        self._stale = True
        self._measured = False
        self._wires: dict[str, tuple[str, str]] = {}
        self._inspected = 0.0
        self._phase = ""
        self._nodes, self._links, self._flows = Nodes(), Links(), Flows({})
        self._routers: frozenset[str] = frozenset()
        self._tails = {name: Tail(f"raw/{name}.csv") for name in ("nodes", "links", "messages")}
        self._task = asyncio.create_task(self._run())

    async def facts(self, patience_s: float) -> Facts:
        """Returns the facts by the last query; waits up to `patience_s` seconds for the first query."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.asked.wait(), patience_s)
        warnings = sum(frame["kind"] == "warning" for frame in self._events)
        return Facts(
            self._state_dir.name, self.asked.is_set() and not self.over, self._kept.get("status", {}),
            self._kept.get("network", {}), warnings, self._nodes, self._links, self._flows,
        )  # fmt: skip

    async def drawn(self, unfolded: list[str]) -> Frame | None:
        """Returns the drawing of the network by the last query, with these groups unfolded; None before the
        first answer.
        """
        if self._found is None:
            return None
        return await asyncio.to_thread(network.drawn, self._found, self._routers, unfolded)

    def join(self) -> asyncio.Queue[Frame | None]:
        queue: asyncio.Queue[Frame | None] = asyncio.Queue()
        for frame in [*self._kept.values(), *self._events]:
            queue.put_nowait(frame)
        self.viewers.append(queue)
        return queue

    def leave(self, queue: asyncio.Queue[Frame | None]) -> None:
        if queue in self.viewers:
            self.viewers.remove(queue)

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def _tell(self, kind: str, **fields: Any) -> None:
        frame = {"kind": kind, **fields}
        if kind in ("event", "warning"):
            self._events.append(frame)
        elif kind != "silent":
            self._kept[kind] = frame
        for queue in list(self.viewers):
            if queue.qsize() > BEHIND:
                self.leave(queue)
                queue.put_nowait(None)
            # a sample may be left out, because the next one replaces it
            elif kind != "sample" or queue.qsize() < LATE:
                queue.put_nowait(frame)

    async def _run(self) -> None:
        at: Source | None = None
        try:
            at = await source(self._state_dir, self._heard)
            await self._follow(at)
            self._tell("gone", text="the lab has ended")
        except KeyError as error:
            self._tell("gone", text=f"a lab of another version: its answer has no {error}")
        except (ControlError, ValueError) as error:
            self._tell("gone", text=str(error))
        finally:
            self.over = True
            self.asked.set()
            for queue in list(self.viewers):
                queue.put_nowait(None)
            if at is not None:
                await at.close()

    async def _follow(self, at: Source) -> None:
        async def fetch(**fields: Any) -> Message:
            return await at.call("fetch", **fields)

        await at.call("watch")
        await self._plan(fetch)
        due = time.monotonic()
        while not at.closed.is_set():
            await self._answered(asyncio.create_task(self._ask(at, fetch)))
            self.asked.set()
            due = max(due + self._every_s, time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(at.closed.wait(), due - time.monotonic())

    async def _answered(self, asking: asyncio.Task[None]) -> None:
        """Waits until a query of the lab ends; informs the viewers if it takes SILENT intervals, for example
        because the lab process is stopped. Cancels the query if this wait is cancelled.
        """
        try:
            done, _ = await asyncio.wait({asking}, timeout=SILENT * self._every_s)
            if not done:
                self._tell("silent", text=f"the lab has not answered for {SILENT * self._every_s:g} s")
            await asking
        finally:
            asking.cancel()

    async def _plan(self, fetch: Callable[..., Any]) -> None:
        text = await whole(fetch, "plan.json")
        if text is None:
            return
        plan = await asyncio.to_thread(from_json, Plan, text.decode())
        self._routers = network.routers(plan)
        self._flows = Flows(network.flows(plan))
        self._tell("plan", **network.timeline(plan))
        past = await whole(fetch, events.NAME) or b""
        for event in events.parsed(past.decode(errors="replace").splitlines()[-KEPT_EVENTS:]):
            self._tell("event", **asdict(event))

    async def _ask(self, at: Source, fetch: Callable[..., Any]) -> None:
        status = await at.call("status")
        if status["phase"] != self._phase or "status" not in self._kept:
            self._phase = status["phase"]
            written = manifest.parse((await whole(fetch, manifest.NAME) or b"{}").decode())
            known = {
                k: status.get(k)
                for k in ("lab", "ready", "phase", "kernel", "driver", "run_dir", "state", "serving")
            }
            times = {k: getattr(written, k) for k in ("t0_ns", "phases", "time", "seed", "topology")}
            self._tell("status", **known, **times)
            for warning in status["warnings"]:
                self._warn(warning)
        if not status["ready"]:
            return
        due = self._inspected + (INSPECT_EVERY_S if status.get("nodes", 0) > SMALL else 0)
        if self._stale and time.monotonic() >= due:
            self._stale, self._inspected = False, time.monotonic()
            found = await at.call("inspect")
            self._found, self._wires = found, network.portless(found)
            self._tell("network", **await asyncio.to_thread(network.network, found, self._routers))
        if not self._measured:
            self._measured = bool((await at.call("measure")).get("samples"))
        await self._sample(fetch)

    async def _sample(self, fetch: Callable[..., Any]) -> None:
        self._nodes.feed(await self._tails["nodes"].lines(fetch))
        self._links.feed(await self._tails["links"].lines(fetch))
        messages = self._tails["messages"]
        before, lines = messages.skipped, await messages.lines(fetch)
        if messages.skipped > before:
            self._flows.skipped()
        flows = self._flows.feed(lines)
        nodes = network.with_wires(self._nodes.now, self._links.now, self._wires)
        t_ns = max(self._nodes.t_ns, self._links.t_ns)
        self._tell(
            "sample", t_ns=t_ns, nodes=nodes, links=self._links.now, flows=flows, each=self._flows.each
        )

    def _warn(self, warning: Message) -> None:
        """Sends a warning to the viewers unless it is among the kept frames, since an event and a status may
        contain the same warning.
        """
        if {"kind": "warning", **warning} not in self._events:
            self._tell("warning", **warning)

    def _heard(self, event: Message) -> None:
        kind = str(event.get("event"))
        fields = {k: v for k, v in event.items() if k != "event"}
        self._stale = self._stale or kind in CHANGES
        if kind == "warning":
            self._warn(fields)
        elif kind in ("event", "phase"):
            self._tell(kind, **fields)
        elif kind in ("exited", "restarted", "error", "ran"):
            self._tell("event", action=kind, **{"t_ns": time.time_ns(), **fields})
