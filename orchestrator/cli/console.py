"""Implements `vnet console`, which opens the serial console of a virtual machine; it needs no agent there."""

from __future__ import annotations

import os
import re
import select
import socket
import sys
from pathlib import Path

import click

from orchestrator.cli import completing
from orchestrator.cli.control import payload
from orchestrator.cli.errors import DONE, USAGE, CliError
from orchestrator.cli.output import note, say
from orchestrator.cli.running import asked, connect, find, groups, one
from orchestrator.cli.shell import raw

LEAVE = b"\x1d"  # Ctrl-]
READ_BYTES = 65536
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@click.command("console")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("node", shell_complete=completing.nodes)
@click.option("--log", is_flag=True, help="Print its output so far instead.")
def console_command(lab: str, node: str, log: bool) -> int:
    """Open the serial console of NODE, a virtual machine of a running lab. Ctrl-] leaves it.

    It is the machine's own serial line: kernel messages, and a login where the image offers one. In a
    built-in image Enter opens a root shell, which works without the agent, too.

    \b
    Example:  vnet console machines server
    """
    with connect(lab) as control:
        name = one(node, groups(control))
        run_dir = Path(asked(control, "status")["run_dir"])
        kind = payload(asked(control, "inspect"))["nodes"][name]["kind"]
    if kind != "vm":
        raise CliError(f"console: {name}: a light node has no console")
    state_dir = find(lab).state_dir
    if log:
        say(plain(_log(state_dir, run_dir, name)), nl=False)
        return DONE
    if not sys.stdin.isatty():
        raise CliError(
            f"console: needs a terminal; `vnet console {lab} {name} --log` prints its output", USAGE
        )
    try:
        with _line(state_dir, name) as line, raw(sys.stdin.fileno()):
            note(
                "connected; Ctrl-] leaves. Enter opens a root shell in a built-in image; other images "
                "have a login prompt"
            )
            talk(line, sys.stdin.fileno(), sys.stdout.fileno())
    except FileNotFoundError as error:
        raise CliError(f"console: {name}: its machine is not running; `vnet start {lab} {name}`") from error
    except OSError as error:
        raise CliError(f"console: {name}: {error.strerror}; another console may be connected") from error
    return DONE


def _log(state_dir: Path, run_dir: Path, node: str) -> str:
    from orchestrator.kernel.protocol import KernelError
    from orchestrator.kernel.remote.lab_access import text

    try:
        return text(state_dir, run_dir, f"raw/logs/{node}.console.log")
    except KernelError as error:
        raise CliError(str(error)) from error


def plain(said: str) -> str:
    r"""Returns the output of a serial line without colour codes, with `\n` in place of `\r\n`."""
    return _COLOURS.sub("", said).replace("\r\n", "\n")


def _line(state_dir: Path, node: str) -> socket.socket:
    from orchestrator.kernel.protocol import KernelError
    from orchestrator.kernel.remote.lab_access import stream

    try:
        return stream(state_dir, f"vm/{node}/console.sock")
    except KernelError as error:
        raise CliError(str(error)) from error


def talk(line: socket.socket, keys: int, screen: int) -> None:
    """Copies the descriptor `keys` to the line and the line to the descriptor `screen`.

    Ends at Ctrl-], at the end of `keys` or at the end of the line.
    """
    while True:
        ready, _, _ = select.select([line.fileno(), keys], [], [])
        if keys in ready:
            typed = os.read(keys, READ_BYTES)
            before, leave, _ = typed.partition(LEAVE)
            line.sendall(before)
            if leave or not typed:
                return
        if line.fileno() in ready:
            said = line.recv(READ_BYTES)
            if not said:
                return
            while said:
                said = said[os.write(screen, said) :]
