"""`vnet serve`: the live page."""

from __future__ import annotations

import contextlib
import secrets
import socket
from pathlib import Path

import click

from orchestrator.cli.errors import CliError
from orchestrator.cli.output import note

PORT = 8350
HOST = "127.0.0.1"


@click.command("serve")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free."
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Runs and campaigns below it are shown.",
)
@click.option("--read-only", is_flag=True, help="For guests: nothing can be changed, no shells.")
def serve_command(port: int, results: Path, read_only: bool) -> None:
    """Show this machine's labs and runs in a browser, live, on this machine only (127.0.0.1).

    Prints the address to open, with a secret token: who has it may do what you may. From elsewhere,
    forward the port: ssh -L 8350:127.0.0.1:8350 SERVER. Nothing is asked of a lab that nobody looks at.

    \b
    Example:  vnet serve
    """
    if not results.is_dir():
        raise CliError(f"--results {results}: no such directory; run something first, or name another")
    import uvicorn

    from orchestrator.cli.page.app import Settings, application

    listener = _listener(port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    hosts = frozenset({f"{HOST}:{port}", f"localhost:{port}"})
    app, _ = application(Settings(token, hosts, results.absolute(), read_only))
    note(f"open http://{HOST}:{port}/?token={token}\nCtrl-C ends it; labs go on")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", server_header=False, proxy_headers=False,
        ws="websockets-sansio", ws_max_size=65536, timeout_graceful_shutdown=1,
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):  # how it is ended
        uvicorn.Server(config).run(sockets=[listener])


def _listener(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OSError as error:
        made.close()
        raise CliError(f"--port {port}: {error.strerror}; give another, or 0 for any that is free") from error
    made.listen(64)
    return made
