"""Controls the access to the server: only its own pages, with the token, may send requests.

For each request, the host name is checked (against DNS rebinding), the token (as in Jupyter: in the first
address, then in a cookie) and the origin (against other pages of the same browser). Each answer gets its
security headers.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Allows no script, style or data from other servers. The terminal (xterm.js) makes style elements; scripts
# never do.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-elem 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The policy for files of runs. A lab may have written texts in them, so a browser must not run scripts in
# them or send anything for them.
FILES_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE = ("GET", "HEAD")


@dataclass(frozen=True)
class Gate:
    """An ASGI application around another one. It refuses requests without the token, from pages of another
    origin, or to another host name. hosts: names with ports under which browsers reach the server, such as
    "127.0.0.1:8350". secure: those that use TLS.
    """

    app: ASGIApp
    token: str
    hosts: frozenset[str]
    secure: frozenset[str] = frozenset()

    @property
    def cookie(self) -> str:
        """The name of the token's cookie. It contains the port, since browsers send a cookie to all ports of
        a host.
        """
        ports = (port for host in sorted(self.hosts) if (port := host.rpartition(":")[2]).isdigit())
        return "vnet-" + next(ports, "page")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is None:
            await self.app(scope, receive, _guarded(send) if scope["type"] == "http" else send)
        elif scope["type"] == "http":
            await refused(scope, receive, _guarded(send))
        else:  # refuses the handshake, so that the browser gets status 403
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts:
            return _said(
                f"Host: this server is {' or '.join(sorted(self.hosts))}, and answers to no other name"
            )
        safe = scope["type"] == "http" and scope["method"] in SAFE
        scheme = "https" if host in self.secure else "http"
        if origin != f"{scheme}://{host}" and not (safe and origin is None):
            return _said("Origin: only the server's own pages may do this")
        given = HTTPConnection(scope).query_params.get("token")
        if given is not None and safe and self._is_token(given):
            return self._admitted(scope)
        if scope["path"] == "/metrics" and self._is_token(_bearer(headers)):
            return None  # programs that scrape metrics send no cookies
        if not self._is_token(_cookie(headers, self.cookie)):
            return _said("token: missing or wrong; open the address that `vnet serve` printed")
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _admitted(self, scope: Scope) -> Response:
        """Returns the answer to a request with the token in its address: a redirection to the same path
        without the token, which sets the token as a cookie. No script and no other site can use the cookie.
        """
        # A path that begins with two slashes would lead to another host.
        response = RedirectResponse("/" + str(scope["path"]).lstrip("/\\"), 303)
        secure = Headers(scope=scope).get("host", "") in self.secure
        response.set_cookie(
            self.cookie, self.token, httponly=True, samesite="strict", path="/", secure=secure
        )
        return response


def _bearer(headers: Headers) -> str:
    kind, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _said(text: str) -> Response:
    return PlainTextResponse(f"vnet serve: {text}\n", 403)


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Content-Security-Policy", POLICY)
            headers.setdefault("Cache-Control", "no-store")
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
        await send(message)

    return guarded
