"""Examines hosts over ssh: copies vNET's code there, as for a lab, and runs the doctor."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orchestrator.doctor import tools
from orchestrator.doctor.finding import Finding
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote import stage
from orchestrator.kernel.remote.account import account
from orchestrator.kernel.remote.ssh import Connection
from orchestrator.language.uris import RemoteMachine

PROGRAM = "orchestrator.doctor"
NO_PART = "no lab can have a part there"
LOOK_S = 60.0
AT_ONCE = 16  # number of connections that are made at the same time


def examine_all(hosts: Mapping[str, RemoteMachine], agent: Path) -> dict[str, list[Finding]]:
    """Returns the findings of all hosts, examined in parallel; `agent` is the agent's program, which is
    copied there with the code. A host that cannot be reached or examined has one finding, with the reason. A
    host that lacks requirements of remote labs has one finding for each of them.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {name: pool.submit(_examine, machine, agent) for name, machine in hosts.items()}
        return {name: one.result() for name, one in asked.items()}


def _examine(machine: RemoteMachine, agent: Path) -> list[Finding]:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="vnet-ssh-") as directory,
            Connection(machine, Path(directory)) as connection,
        ):
            return _ask(connection, agent)
    except KernelError as error:
        return [Finding("kernel", "missing", str(error), NO_PART)]


def _ask(connection: Connection, agent: Path) -> list[Finding]:
    there = account(connection)
    if missing := there.missing():
        return [Finding(one.what, "missing", one.reason, NO_PART, one.remedy) for one in missing]
    upload = stage.code(there, agent)
    stage.carry(connection, there, upload)
    told = json.dumps([dataclasses.asdict(tool) for tool in tools.usual()]).encode()
    command = there.module(upload.target, PROGRAM)
    said = connection.run(command, lambda out: out.write(told), LOOK_S, "looking at what it can do")
    try:
        return [Finding(**one) for one in json.loads(said)]
    except (ValueError, TypeError) as error:
        words = said.decode(errors="replace").strip()[:200]
        raise KernelError(
            f"{connection.machine.url}: its doctor said {words!r} ({error}); does its shell print something?"
        ) from error
