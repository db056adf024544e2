"""Answers the requests to `vnet serve`: pages and their data, frames of labs, terminals, files of runs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from orchestrator.campaign.journal import CampaignError
from orchestrator.cli.control import ControlError
from orchestrator.cli.ls import about, of_others, reserved
from orchestrator.cli.page import campaigns
from orchestrator.cli.page.campaigns import Campaigns
from orchestrator.cli.page.changes import CHANGES, RefusedError, change
from orchestrator.cli.page.gate import FILES_POLICY, Gate
from orchestrator.cli.page.metrics import OPEN, PLAIN, exposition
from orchestrator.cli.page.runs import TYPES, allowed, matrix, runs
from orchestrator.cli.page.source import Source, source
from orchestrator.cli.page.terminal import console, terminal
from orchestrator.cli.page.watch import Scrapes, Watches
from orchestrator.lab.cleanup import running_labs
from orchestrator.lab.errors import LabError
from orchestrator.lab.state import state_root

STATIC = Path(__file__).with_name("static")
NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
BODY_BYTES = 65536
PCAP = "application/vnd.tcpdump.pcap"


@dataclass(frozen=True)
class Settings:
    """The options of `vnet serve`. token: secret that requests must have. hosts: names with ports under which
    browsers reach the server; secure: those of them that use TLS. results: directory of runs and campaigns.
    read_only: True refuses changes, shells and consoles. every_s: interval of queries to a watched lab, in
    seconds.
    """

    token: str
    hosts: frozenset[str]
    results: Path
    only: str = ""  # name of the only run or campaign below `results` that is shown; empty: all are shown
    read_only: bool = False
    every_s: float = 1.0
    secure: frozenset[str] = frozenset()


def application(settings: Settings) -> tuple[ASGIApp, Watches]:
    """Returns the ASGI application behind its access control, and the object that watches labs for it."""
    watches = Watches(state_root, settings.every_s)
    pages = Pages(settings, watches)
    routes = [
        Route("/", _page("index.html")),
        Route("/lab/{lab}", _page("lab.html")),
        Route("/run/{path:path}", _page("run.html")),
        Route("/campaign/{path:path}", _page("campaign.html")),
        Route("/api/frames/{path:path}", pages.replayed),
        Route("/api/run/{path:path}", pages.run),
        Route("/api/campaign/{path:path}", pages.campaign),
        Route("/api/campaigns/{action}", pages.run_campaign, methods=["POST"]),
        Route("/api/overview", pages.overview),
        Route("/metrics", pages.metrics),
        Route("/api/lab/{lab}/fetch", pages.fetch),
        Route("/api/lab/{lab}/drawing", pages.drawing),
        Route("/api/lab/{lab}/capture/{name}", pages.capture),
        Route("/api/lab/{lab}/{what}", pages.change, methods=["POST"]),
        WebSocketRoute("/ws/lab/{lab}", pages.frames),
        WebSocketRoute("/ws/lab/{lab}/shell/{node}", pages.shell),
        WebSocketRoute("/ws/lab/{lab}/console/{node}", pages.console),
        Route("/files/{path:path}", pages.file),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Gate(Starlette(routes=routes), settings.token, settings.hosts, settings.secure), watches


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(_: Request) -> Response:
        return FileResponse(STATIC / name, media_type="text/html; charset=utf-8")

    return page


class NoWish(Exception):  # noqa: N818
    """Raised if a request for a change is refused; `answer` is the HTTP response."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


class Pages:
    """Answers the requests for data and changes, one method for each route."""

    def __init__(self, settings: Settings, watches: Watches) -> None:
        self._settings = settings
        self._watches = watches
        self._scrapes = Scrapes(watches)
        self._campaigns = Campaigns(settings.results, Path.cwd())

    async def metrics(self, request: Request) -> Response:
        """Returns metrics of all running labs for Prometheus, as OpenMetrics if the scraper accepts it."""
        labs = [name for name in await asyncio.to_thread(running_labs) if NAME.fullmatch(name)]
        found = await self._scrapes.facts(labs)
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        text = exposition(found, openmetrics=openmetrics)
        return Response(text, headers={"Content-Type": OPEN if openmetrics else PLAIN})

    async def overview(self, _: Request) -> Response:
        """Returns this user's labs, other accounts' labs and present reservations as texts, and the runs and
        campaigns below the results directory, as JSON.
        """
        found = await asyncio.to_thread(runs, self._settings.results, self._settings.only)
        labs = await asyncio.to_thread(lambda: [about(name) for name in running_labs()])
        shown = self._settings.results / self._settings.only
        more = {
            "results": str(shown), "read_only": self._settings.read_only, "only": self._settings.only,
            "there": shown.is_dir(),
        }  # fmt: skip
        others = await asyncio.to_thread(lambda: [str(one) for one in of_others()])
        booked = await asyncio.to_thread(lambda: [str(one) for one in reserved()])
        return JSONResponse({"labs": labs, "others": others, "reserved": booked, **found, **more})

    async def fetch(self, request: Request) -> Response:
        """Returns {size, offset, data} of a part of the file `path` of a running lab's run, from `offset`
        (default 0); `data` is base64. A negative `offset` counts from the end of the file. Answers 409 with
        the reason if there is no such lab or the lab refuses.
        """
        query = request.query_params
        try:
            state_dir, offset = _state_dir(request.path_params["lab"]), int(query.get("offset", "0"))
            at = await source(state_dir, lambda _: None)
            try:
                if offset < 0:
                    size = (await at.call("fetch", path=query.get("path"), offset=0, length=0))["size"] or 0
                    offset = max(0, size + offset)
                answer = await at.call("fetch", path=query.get("path"), offset=offset)
            finally:
                await at.close()
        except (ValueError, ControlError) as error:
            return _refused(str(error))
        return JSONResponse({"size": answer["size"], "offset": offset, "data": answer.get("data", "")})

    async def drawing(self, request: Request) -> Response:
        """Returns the drawing of a watched lab; the parameters `unfold` name groups to unfold (* for all).
        Answers 409 with the reason if no page watches the lab, or if the lab has not yet described its
        network.
        """
        watch = self._watches.of(request.path_params["lab"])
        if watch is None:
            return _refused("no page watches this lab")
        found = await watch.drawn(request.query_params.getlist("unfold"))
        if found is None:
            return _refused("this lab has not yet described its network; repeat the request")
        return JSONResponse(found)

    async def change(self, request: Request) -> Response:
        """Applies the change {what}, a key of CHANGES, to a running lab and returns its answer; answers 409
        with the reason if the lab refuses, and other statuses as `_wanted` does.
        """
        what = request.path_params["what"]
        try:
            wanted = await self._wanted(request, what in CHANGES)
            control = _state_dir(request.path_params["lab"]) / "control.sock"
            return JSONResponse(await change(control, what, wanted))
        except NoWish as no:
            return no.answer
        except (ValueError, RefusedError) as error:
            return _refused(str(error))

    async def run_campaign(self, request: Request) -> Response:
        """Begins a campaign, or resumes or stops the one at the body's `path`; returns its {path}. Answers
        409 with the reason if it refuses, 404 without such a campaign.
        """
        action = request.path_params["action"]
        try:
            wanted = await self._wanted(request, action in ("begin", "resume", "stop"))
            if action == "begin" and self._settings.only:
                return _refused("this server shows one campaign; begin others without --results")
            if action == "begin":
                place = await asyncio.to_thread(self._campaigns.begin, wanted)
            else:
                found = self._allowed(f"{wanted.get('path')}/campaign.json")
                if found is None:
                    return _refused("no such campaign below the results directory", 404)
                place = found.parent
                await asyncio.to_thread(getattr(self._campaigns, action), place)
        except NoWish as no:
            return no.answer
        except (ValueError, OSError, LabError, campaigns.RefusedError) as error:
            return _refused(str(error))
        return JSONResponse({"path": str(place.relative_to(self._settings.results))})

    async def _wanted(self, request: Request, known: bool) -> dict[str, Any]:
        """Returns the JSON object in the body of a request for a change.

        Raises NoWish if the server is read-only, if the change is not `known`, if the body is not JSON, or if
        its length is not stated or too large. Raises ValueError if the JSON is not an object.
        """
        if self._settings.read_only:
            raise NoWish(_refused("this server is read-only (`vnet serve --read-only`)", 403))
        if not known or request.headers.get("content-type") != "application/json":
            raise NoWish(_refused("no such change", 404))
        stated = "" if "transfer-encoding" in request.headers else request.headers.get("content-length", "")
        if int(stated or "-1") not in range(BODY_BYTES):
            raise NoWish(_refused(f"a body of at most {BODY_BYTES} bytes, of stated length", 413))
        try:
            wanted = await request.json()
        except RecursionError:
            raise NoWish(_refused("the body is nested too deeply", 400)) from None
        if not isinstance(wanted, dict):
            raise ValueError("the body is not an object")
        return wanted

    async def frames(self, socket: WebSocket) -> None:
        """Sends a lab's frames to the page until the page disconnects or the lab ends."""
        lab = socket.path_params["lab"]
        await socket.accept()
        if NAME.fullmatch(lab) is None:
            await socket.close(4404)
            return
        async with self._watches.look(lab) as queue:
            gone = asyncio.create_task(_gone(socket))
            try:
                while True:
                    taken = asyncio.create_task(queue.get())
                    await asyncio.wait({taken, gone}, return_when=asyncio.FIRST_COMPLETED)
                    if gone.done() or (frame := taken.result()) is None:
                        taken.cancel()
                        break
                    await socket.send_json(frame)
            except (WebSocketDisconnect, RuntimeError):
                return
            finally:
                gone.cancel()
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await socket.close()

    async def shell(self, socket: WebSocket) -> None:
        """Connects the page to a shell on a node; closes the connection at once if the server is
        read-only.
        """
        lab, node = socket.path_params["lab"], socket.path_params["node"]
        if self._settings.read_only or NAME.fullmatch(lab) is None:
            await socket.close(1008)
            return
        await socket.accept()
        await terminal(socket, state_root() / lab / "control.sock", lab, node)

    async def console(self, socket: WebSocket) -> None:
        """Connects the page to a virtual machine's serial line; closes the connection at once if the server
        is read-only.
        """
        lab, node = socket.path_params["lab"], socket.path_params["node"]
        if self._settings.read_only or NAME.fullmatch(lab) is None or NAME.fullmatch(node) is None:
            await socket.close(1008)
            return
        await socket.accept()
        await console(socket, state_root() / lab, node)

    async def capture(self, request: Request) -> Response:
        """Sends the file of a capture of a running lab, up to its present size; 404 if there is none."""
        name = request.path_params["name"]
        if NAME.fullmatch(name) is None:
            return _refused("no such capture", 404)
        path = f"pcap/{name}.pcap"
        try:
            at = await source(_state_dir(request.path_params["lab"]), lambda _: None)
            size = (await at.call("fetch", path=path, offset=0, length=0))["size"]
        except (ValueError, ControlError) as error:
            return _refused(str(error))
        if size is None:
            await at.close()
            return _refused("no such capture", 404)
        headers = {"Content-Disposition": f'attachment; filename="{name}.pcap"'}
        return StreamingResponse(_parts(at, path, size), media_type=PCAP, headers=headers)

    async def run(self, request: Request) -> Response:
        """Returns the data that the replay of a finished run needs before its frames (`replay.about`)."""
        from orchestrator.cli.page import replay

        unfolded = request.query_params.getlist("unfold")
        return await self._of_directory(request, "manifest.json", lambda found: replay.about(found, unfolded))

    async def replayed(self, request: Request) -> Response:
        """Returns `count` frames of the replay of a finished run, from frame number `from` on; answers 409
        with the reason if the replay fails, 404 if there is no such run.
        """
        from orchestrator.cli.page import replay

        try:
            first, count = (int(request.query_params.get(name, "")) for name in ("from", "count"))
        except ValueError:
            return _refused("give from and count, in frames")
        return await self._of_directory(
            request, "manifest.json", lambda found: replay.frames(found, first, count)
        )

    async def campaign(self, request: Request) -> Response:
        """Returns the cells of a campaign with their states, and the time left (`runs.matrix`)."""
        return await self._of_directory(request, "campaign.json", matrix)

    def _allowed(self, path: str) -> Path | None:
        return allowed(self._settings.results, path, self._settings.only)

    async def _of_directory(self, request: Request, holds: str, made: Callable[[Path], Any]) -> Response:
        from orchestrator.cli.page.replay import ReplayError

        found = self._allowed(f"{request.path_params['path']}/{holds}")
        if found is None:
            return _refused("no such directory below the results directory", 404)
        try:
            return JSONResponse(await asyncio.to_thread(made, found.parent))
        except (ReplayError, CampaignError) as error:
            return _refused(str(error))

    async def file(self, request: Request) -> Response:
        """Sends a file below the results directory, as a download unless its type is in TYPES; 404 if there
        is none or it may not be shown.
        """
        found = await asyncio.to_thread(self._allowed, request.path_params["path"])
        if found is None:
            return _refused("no such file below the results directory", 404)
        media = TYPES.get(found.suffix)
        headers = {"Content-Security-Policy": FILES_POLICY}
        if media is None:
            return FileResponse(
                found, headers=headers, filename=found.name, media_type="application/octet-stream"
            )
        return FileResponse(found, headers=headers, media_type=media)


async def _gone(socket: WebSocket) -> None:
    """Waits until the page disconnects; ignores its messages."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _parts(at: Source, path: str, size: int) -> AsyncIterator[bytes]:
    """Yields the first `size` bytes of a file of a lab, fewer if the lab ends; then closes the source."""
    offset = 0
    try:
        while offset < size:
            answer = await at.call("fetch", path=path, offset=offset)
            if not (data := base64.b64decode(answer.get("data", ""))):
                return
            yield data[: size - offset]
            offset += len(data)
    except ControlError:
        return
    finally:
        await at.close()


def _state_dir(lab: str) -> Path:
    if NAME.fullmatch(lab) is None:
        raise ValueError(f"lab {lab}: no such lab")
    return state_root() / lab


def _refused(text: str, status: int = 409) -> Response:
    return PlainTextResponse(text, status)
