"""The way home: a lab on another machine is ended there, its run directory fetched, its rest removed."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from orchestrator.kernel.process import end
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.errand import Errand, read
from orchestrator.kernel.remote.ssh import Connection
from orchestrator.lab.state import forget_root, processes, replace

# Written on this side while the lab ran there, and kept: what came in time, and our own log.
OURS = frozenset({"raw/progress.jsonl", "raw/remote.log", "raw/errand.json"})
DOWN_S = 180.0  # more than all deadlines of a teardown together


def fetch(connection: Connection, errand: Errand) -> None:
    """Bring the run directory here, then remove the lab's directory there.

    KernelError or OSError where that fails; then it is still there, and can be fetched again.
    """
    command = errand.account.program(errand.code, "pack", errand.home)
    process = connection.popen(command, subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE)
    assert process.stdout is not None
    try:
        unpack(process.stdout, Path(errand.run_dir))
    except (tarfile.TarError, EOFError) as error:
        process.kill()
        words = " ".join(process.communicate()[1].decode(errors="replace").split())
        raise KernelError(
            f"{errand.machine.url}: {errand.run_there} came cut off: {words or error}"
        ) from error
    except BaseException:
        process.kill()
        process.communicate()
        raise
    words = " ".join(process.communicate()[1].decode(errors="replace").split())
    if process.returncode:
        raise KernelError(f"{errand.machine.url}: {errand.run_there} did not come whole: {words}")
    connection.run(errand.account.program(errand.code, "forget", errand.home), what="clearing up")


def unpack(stream: IO[bytes], run_dir: Path) -> None:
    """Files of a tar below `run_dir`; what is no plain file or directory below it is refused."""
    with tarfile.open(fileobj=stream, mode="r|gz") as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
                raise KernelError(
                    f"{run_dir}: {member.name}: no run directory holds that; nothing of it is kept"
                )
            target = run_dir / path
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif str(path) not in OURS:
                _write(tar, member, target)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None  # it is a file
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)


def come_home(connection: Connection, errand: Errand) -> None:
    """End the lab there, in order if that can be, and fetch what it measured. Tolerates what is gone."""
    there = errand.account
    look = f"test -d {shlex.quote(errand.home)} && echo there; true"
    said = connection.run(there.shell(look), what=errand.home)
    if said.split() == [b"there"]:
        connection.run(
            there.program(errand.code, "down", errand.home), timeout_s=DOWN_S, what="taking the lab away"
        )
        fetch(connection, errand)


def blame(run_dir: Path, why: str) -> None:
    """Say in the manifest that the lab was lost: there it only knows that it was asked to end."""
    path = run_dir / "manifest.json"
    if path.exists():
        manifest = json.loads(path.read_text()) | {"state": "failed", "error": why, "suspect": True}
        replace(path, json.dumps(manifest, indent=1) + "\n")


def cleanup_remote(state_dir: Path) -> None:
    """Whatever is left of a lab, there and here; what it measured is in its run directory afterwards.

    KernelError where the machine cannot be reached: then everything stays as it is, for another try.
    """
    if left := end(processes(state_dir)):
        pids = ", ".join(f"{p.pid} ({p.role})" for p in left)
        raise KernelError(
            f"{state_dir}: process {pids} does not end; look at it with ps, then repeat `vnet down`"
        )
    errand = read(state_dir)
    if errand is not None:
        try:
            with Connection(errand.machine, state_dir) as connection:
                come_home(connection, errand)
        except KernelError as error:
            raise KernelError(
                f"{error}\n  what is left of it there is in {errand.home}; repeat `vnet down {errand.state}` "
                f"when the machine can be reached, or give that up with rm -r {state_dir}"
            ) from error
    if state_dir.exists():
        shutil.rmtree(state_dir)
        forget_root(state_dir.parent)
