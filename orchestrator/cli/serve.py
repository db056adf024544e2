"""Implements `vnet serve`, which serves the live page of labs and runs to a browser."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import secrets
import signal
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import note

PORT = 8350
HOST = "127.0.0.1"
PORTS = {"http": 80, "https": 443}  # ports that browsers leave out of addresses


@click.command("serve")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free."
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Show the runs and campaigns below this directory, or the one that it is itself  [default: results]",
)
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on; one that other machines reach needs TLS.",
)
@click.option("--name", "called", multiple=True, help="Another name by which browsers reach the server.")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate chain, PEM; with --tls-key.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its key, PEM, without a password.")
@click.option(
    "--proxy",
    metavar="URL",
    help="https://... address of a proxy in front of this server that terminates TLS.",
)
@click.option("--read-only", is_flag=True, help="For guests: no changes, no shells.")
def serve_command(
    port: int,
    results: Path | None,
    host: str,
    called: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    proxy: str | None,
    read_only: bool,
) -> None:
    """Show this machine's labs and runs live in a browser; by default only on this machine.

    Prints the address with a secret token, which gives its holder your rights over labs and runs. From
    another machine, forward the port: ssh -L 8350:127.0.0.1:8350 SERVER. A lab is queried only while a page
    shows it. /metrics is for Prometheus, with the token as its bearer token.

    \b
    Example:  vnet serve
    """
    if results is not None and not results.is_dir():
        raise CliError(f"--results {results}: no such directory; run something first, or name another")
    tls = _tls(tls_cert, tls_key)
    front = _front(proxy)
    if not _is_loopback(host) and not (tls or front):
        raise CliError(
            f"--host {host}: the token would cross the network in the clear; give --tls-cert and --tls-key, "
            "or --proxy https://... of a proxy that terminates TLS, or forward the port with ssh",
            USAGE,
        )
    from asyncio import constants

    import uvicorn

    from orchestrator.cli.page.app import Settings, application
    from orchestrator.cli.page.connections import REQUEST_S, BoundedProtocol
    from orchestrator.cli.page.runs import single

    constants.SSL_HANDSHAKE_TIMEOUT = REQUEST_S  # uvicorn has no option for it
    listener = _listener(host, port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    scheme = "https" if tls else "http"
    own = frozenset(authority(name, port, scheme) for name in (HOST, "localhost", host, *called))
    hosts, secure = own | ({front} if front else set()), own if tls else frozenset({front} if front else ())
    root, only = single(results or Path("results"))
    app, _ = application(Settings(token, hosts, root, only, read_only, secure=secure))
    address = f"https://{front}" if front else f"{scheme}://{authority((called or (host,))[0], port, scheme)}"
    note(f"live page: {address}/?token={token}\nCtrl-C ends the server; labs keep running")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", server_header=False, proxy_headers=False,
        http=BoundedProtocol, ws="websockets-sansio", ws_max_size=65536, timeout_graceful_shutdown=1, **tls,
    )  # fmt: skip
    # A server in the background of a script inherits that SIGINT is ignored; its children would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, with which the user ends the server
        uvicorn.Server(config).run(sockets=[listener])


def authority(name: str, port: int, scheme: str) -> str:
    """Returns name and port as browsers write them in `Host` (RFC 3986, 3.2; RFC 5952): an IPv6 address in
    brackets and in its shortest form, names in small letters, without the port that is the scheme's own.
    """
    try:
        found = ipaddress.ip_address(name.strip("[]"))
        name = f"[{found}]" if found.version == 6 else str(found)
    except ValueError:  # the host is a name, not an address
        name = name.lower()
    return name if port == PORTS[scheme] else f"{name}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name may lead to any address
        return False


def _tls(cert: Path | None, key: Path | None) -> dict[str, Any]:
    """Returns uvicorn's TLS options, empty without a certificate; CliError if the files cannot be used."""
    if cert is None and key is None:
        return {}
    if cert is None or key is None:
        raise CliError("--tls-cert and --tls-key: give both, or neither", USAGE)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (OSError, ssl.SSLError) as error:
        raise CliError(f"--tls-cert {cert}, --tls-key {key}: {error.strerror or error}") from error
    return {"ssl_certfile": str(cert), "ssl_keyfile": str(key)}


def _front(proxy: str | None) -> str:
    """Returns the proxy's name and port for browsers; "" without a proxy; CliError for a wrong URL."""
    if proxy is None:
        return ""
    found = urlsplit(proxy)
    if found.scheme != "https" or not found.netloc or found.path not in ("", "/") or found.query:
        raise CliError(f"--proxy {proxy}: write https://NAME or https://NAME:PORT: TLS, and no path", USAGE)
    try:
        return authority(found.hostname or "", found.port or PORTS["https"], "https")
    except ValueError as error:
        raise CliError(f"--proxy {proxy}: {error}; write https://NAME or https://NAME:PORT", USAGE) from None


def _listener(host: str, port: int) -> socket.socket:
    from orchestrator.cli.page.connections import Listener

    made = Listener(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            text = f"--port {port}: {error.strerror}; give another, or 0 for any that is free"
        else:
            text = f"--host {host}, --port {port}: {error.strerror or error}"
        raise CliError(text) from error
    made.listen(64)
    return made
