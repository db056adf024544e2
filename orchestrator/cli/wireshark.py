"""Implements `vnet wireshark`, which passes packets of a running lab live to Wireshark or other readers."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from orchestrator.cli.control import Control, ControlError, decode
from orchestrator.cli.errors import DONE, USAGE, CliError
from orchestrator.cli.output import note
from orchestrator.cli.running import asked, by, connect

EVERY_S = 0.2
KINDS = {"node": "nodes", "link": "links", "segment": "segments"}


@click.command("wireshark")
@click.argument("lab")
@click.argument("point")
@click.option("-f", "--filter", "wanted", default="", help="Capture filter in tcpdump's syntax.")
@click.option("--snaplen", type=click.IntRange(60, 262144), default=1600, show_default=True)
@click.option(
    "--write", "target", type=click.Choice(["-"]), help="-: write pcap to standard output, without Wireshark."
)
def wireshark_command(lab: str, point: str, wanted: str, snaplen: int, target: str | None) -> int:
    """Show packets at POINT of a running lab live in Wireshark.

    POINT is "node NAME", "link NAME" or "segment NAME", the name alone if it is unique, or a running capture.
    A capture that this command starts ends with it; its file stays in the run directory.

    \b
    Example:  vnet wireshark pair 'link wan'
              vnet wireshark pair lan --write - | tshark -r -
    """
    program = None if target else shutil.which("wireshark")
    if target is None and program is None:
        raise CliError(
            "wireshark: not installed (apt-get install wireshark); "
            f"`vnet wireshark {lab} '{point}' --write - | tshark -r -` works without it"
        )
    if target and sys.stdout.isatty():
        raise CliError("--write -: pcap is not for a terminal; pipe it into a program or a file", USAGE)
    with connect(lab) as control, _capture(control, point, wanted, snaplen) as path:
        if program is None:
            _copy(control, path, sys.stdout.fileno())
            return DONE
        command = [program, "-k", "-i", "-"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as shown:
            assert shown.stdin is not None
            try:
                _copy(control, path, shown.stdin.fileno())
            finally:
                shown.stdin.close()
    return DONE


@contextmanager
def _capture(control: Control, point: str, wanted: str, snaplen: int) -> Iterator[str]:
    """Yields the path of the running capture named `point`, or of a new capture at `point`, which ends with
    the context. CliError for a filter on a running capture.
    """
    found = asked(control, "inspect")
    if (there := found["captures"].get(point)) is not None:
        if wanted:
            raise CliError(f"--filter: capture {point} already runs, with its own filter", USAGE)
        yield there["path"]
        return
    begun = asked(
        control,
        "capture",
        action="on",
        at=place(found, point),
        snaplen=snaplen,
        filter=wanted,
        by=by("with vnet wireshark"),
    )
    note(f"capturing at {begun['at']}, also into {begun['path']} of the run; Ctrl-C ends it")
    try:
        yield begun["path"]
    except ControlError:
        note("the lab has ended")
    finally:
        try:
            control.call("capture", action="off", name=begun["name"], by=by("with vnet wireshark"))
        except ControlError as error:
            note(f"capture {begun['name']}: {error}")


def place(found: dict[str, Any], point: str) -> str:
    """Returns the place of a capture as `KIND NAME`, from a text of that form or from a name alone. Raises
    CliError if the lab has no such place, or if a name alone is ambiguous.
    """
    there = {
        kind: [s["name"] for s in found[of]] if kind == "segment" else list(found[of])
        for kind, of in KINDS.items()
    }
    places = [(kind, name) for kind, names in there.items() for name in names]
    meant = [f"{kind} {name}" for kind, name in places if point in (name, f"{kind} {name}")]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise CliError(f'point: "{point}" may be {" or ".join(meant)}; write one of them', USAGE)
    segments, links = ", ".join(there["segment"]) or "none", ", ".join(there["link"][:10]) or "none"
    raise CliError(
        f'point: "{point}": no node, link, segment or running capture; segments: {segments}; links: {links}',
        USAGE,
    )


def _copy(control: Control, path: str, target: int) -> None:
    """Copies the lab's file `path` to the descriptor `target` as it grows, until the reader of `target` ends.
    ControlError when the lab ends.
    """
    offset, reader = 0, select.poll()
    reader.register(target, select.POLLERR)
    while True:
        answer = control.call("fetch", path=path, offset=offset)
        data = decode(answer) if answer["size"] is not None else b""
        offset += len(data)
        try:
            while data:
                data = data[os.write(target, data) :]
        except BrokenPipeError:
            return
        if offset >= (answer["size"] or 0):
            if reader.poll(0):
                return
            time.sleep(EVERY_S)
