"""Implements `vnet cp`, which copies a file to or from nodes of a running lab over its control socket."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click

from orchestrator.cli import completing
from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.errors import DONE, FAILED, USAGE, CliError
from orchestrator.cli.output import note
from orchestrator.cli.running import choose, connect, groups
from orchestrator.cli.sessions import attached

REMOTE = re.compile(r"([^/:]+):(.+)", re.DOTALL)
# Arguments of the script: $1 path, $2 name in a directory, $3 mode, $4 number of bytes. The file gets its
# name only when it is complete.
PUT = """p=$1
[ -d "$p" ] && p=${p%/}/$2
t=$p.vnet-part
if cat >"$t" && [ "$(wc -c <"$t")" -eq "$4" ] && chmod "$3" "$t" && mv -f "$t" "$p"; then exit 0; fi
rm -f "$t"
exit 1"""
GET = '[ -d "$1" ] && { echo "$1: is a directory" >&2; exit 1; }; exec cat "$1"'


@dataclass(frozen=True)
class Far:
    """A path on the nodes that match a pattern."""

    nodes: str
    path: str


@click.command("cp")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("source", metavar="FILE|NODES:PATH")
@click.argument("target", metavar="NODES:PATH|FILE")
def cp_command(lab: str, source: str, target: str) -> int:
    """Copy a file to PATH on NODES of a running lab, or from PATH on NODES to FILE here.

    A directory as the target keeps the file's name; from several nodes it is a directory here, and each
    file is named after its node. Modes are kept on the way there. A file that does not arrive whole leaves
    the one before it as it was.

    \b
    Example:  vnet cp pair app.conf 'left,right:/tmp/app.conf'
              vnet cp pair left:/etc/hosts .
    """
    here, there, outward = _sides(source, target)
    with connect(lab) as control:
        nodes = choose(there.nodes, groups(control))
        failed = [
            node
            for node in nodes
            if not (
                _put(control, node, here, there.path)
                if outward
                else _get(control, node, there.path, _named(here, node, there.path, len(nodes)))
            )
        ]
    if failed and len(nodes) > 1:
        note(f"{len(failed)} of {len(nodes)} nodes failed")
    return FAILED if failed else DONE


def _sides(source: str, target: str) -> tuple[Path, Far, bool]:
    """Returns the path here, the one on nodes, and whether the copy goes to the nodes; CliError (USAGE)
    unless there is one of each. A text with a colon before its first slash names nodes.
    """
    far = [Far(*found.groups()) if (found := REMOTE.fullmatch(text)) else None for text in (source, target)]
    named = [one for one in far if one is not None]
    if len(named) != 1:
        rule = "both are on nodes" if named else "neither is on a node"
        remedy = "write one as NODE:PATH and the other as a path here (./a:b for a name with a colon)"
        raise CliError(f'cp: "{source}" and "{target}": {rule}; {remedy}', USAGE)
    outward = far[0] is None
    return Path(source if outward else target), named[0], outward


def _named(here: Path, node: str, far: str, count: int) -> Path:
    """Returns the local file for a node's file; CliError if several nodes would write the same local file."""
    name = Path(far).name
    if not here.is_dir():
        if count > 1:
            raise CliError(f"cp: {here}: no directory, and {count} nodes match; mkdir {here}", USAGE)
        return here
    return here / (f"{node}.{name}" if count > 1 else name)


def _put(control: Control, node: str, here: Path, far: str) -> bool:
    try:
        descriptor = os.open(here, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CliError(f"cp: {here}: {error.strerror}") from None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            remedy = f"for a directory: tar c {here} | vnet exec LAB {node} -- tar x -C {far}"
            raise CliError(f"cp: {here}: is no file; {remedy}")
        mode = f"{stat.S_IMODE(about.st_mode):o}"
        script = ("sh", "-c", PUT, "sh", far, here.name, mode, str(about.st_size))
        return _run(control, node, script, descriptor, None)
    finally:
        os.close(descriptor)


def _get(control: Control, node: str, far: str, here: Path) -> bool:
    part = here.with_name(f".{here.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            done = _run(control, node, ("sh", "-c", GET, "sh", far), None, file)
        if done:
            part.rename(here)
        return done
    except OSError as error:
        raise CliError(f"cp: {error.filename or here}: {error.strerror}; nothing is written") from None
    finally:
        part.unlink(missing_ok=True)


def _run(
    control: Control, node: str, script: tuple[str, ...], stdin: int | None, file: BinaryIO | None
) -> bool:
    """Runs a script on a node; returns whether it succeeded, and prints its errors after the node's name."""
    said = bytearray()

    def output(stream: str, data: bytes) -> None:
        if stream == "stderr" or file is None:
            said.extend(data)
        else:
            file.write(data)

    try:
        status = attached(control, node, script, stdin=stdin, output=output)
    except ControlError as error:
        note(f"{node}: {error}")
        return False
    for line in said.decode(errors="replace").splitlines():
        note(f"{node}: {line}")
    if status and not said:
        note(f"{node}: did not arrive whole (exit status {status}); nothing is changed")
    return status == 0
