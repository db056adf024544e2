"""Implements `vnet shell`, which opens a terminal on a node of a running lab."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from orchestrator.cli import completing
from orchestrator.cli.control import ControlError
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.running import connect, groups, one
from orchestrator.cli.sessions import attached


@click.command("shell")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("node", shell_complete=completing.nodes)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell_command(lab: str, node: str, command: tuple[str, ...]) -> int:
    """Open a terminal on NODE of a running lab; COMMAND runs instead of a shell.

    \b
    Example:  vnet shell pair left
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliError(
            f"shell: needs a terminal; in a script write `vnet exec {lab} {node} -- COMMAND`", USAGE
        )
    with connect(lab) as control:
        name = one(node, groups(control))
        argv = command or shell_words(lab, name)
        with raw(sys.stdin.fileno()), _window() as resized:
            try:
                return attached(
                    control, name, argv, stdin=sys.stdin.fileno(), output=_write, tty=_size(), resized=resized
                )
            except ControlError as error:
                raise CliError(str(error)) from error


def shell_words(lab: str, node: str) -> tuple[str, ...]:
    """Returns the command for an interactive shell with node and lab in its prompt: bash, or sh if bash is
    missing.
    """
    prompt = rf"\[\e[1;36m\]{node}\[\e[0m\]@{lab}:\w\$ "
    script = (
        'if command -v bash >/dev/null; then PS1="$1" exec bash --norc -i; else PS1="$0# " exec sh -i; fi'
    )
    return ("sh", "-c", script, node, prompt)


def _write(_stream: str, data: bytes) -> None:
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]


def _size() -> tuple[int, int]:
    size = shutil.get_terminal_size()
    return (size.lines, size.columns)


@contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Puts the terminal into raw mode while the context lasts, so that the node gets all keys, including
    Ctrl-C; then restores it.
    """
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _window() -> Iterator[_Resized]:
    """Yields an object that reports changes of the window size (SIGWINCH) while the context lasts."""
    resized = _Resized()
    before = signal.signal(signal.SIGWINCH, resized.note)
    try:
        yield resized
    finally:
        signal.signal(signal.SIGWINCH, before)


class _Resized:
    """A callable that returns the new (rows, columns) once after a change of the window size, else None."""

    def __init__(self) -> None:
        self._changed = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        self._changed = True

    def __call__(self) -> tuple[int, int] | None:
        if not self._changed:
            return None
        self._changed = False
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        return (lines, columns)
