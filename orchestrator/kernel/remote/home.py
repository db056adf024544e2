"""Ends a lab on another machine, fetches its run directory and removes the rest there."""

from __future__ import annotations

import gzip
import shlex
import shutil
import subprocess
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from contract import manifest
from orchestrator.kernel.process import end
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.remote_lab import RemoteLab, read
from orchestrator.kernel.remote.ssh import Connection
from orchestrator.lab.state import forget_root, processes

# The files that this side writes while the lab runs on the other machine, and that it keeps: the received
# events and the owner's log.
OURS = frozenset({"raw/progress.jsonl", "raw/remote.log", "raw/remote-lab.json"})
PIECE = 1 << 20
DOWN_S = 180.0  # s; more than all time limits of a teardown together


def fetch(connection: Connection, remote_lab: RemoteLab) -> None:
    """Copies the run directory here, then removes the lab's directory on the other machine.

    Raises KernelError or OSError on failure; the directory then stays there and can be fetched again.
    """
    command = remote_lab.account.program(remote_lab.code, "pack", remote_lab.home)
    process = connection.popen(command, subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE)
    assert process.stdout is not None
    try:
        unpack(process.stdout, Path(remote_lab.run_dir))
    except (tarfile.TarError, EOFError) as error:
        process.kill()
        words = " ".join(process.communicate()[1].decode(errors="replace").split())
        raise KernelError(
            f"{remote_lab.machine.url}: {remote_lab.run_there} came cut off: {words or error}"
        ) from error
    except BaseException:
        process.kill()
        process.communicate()
        raise
    words = " ".join(process.communicate()[1].decode(errors="replace").split())
    if process.returncode:
        raise KernelError(f"{remote_lab.machine.url}: {remote_lab.run_there} did not come whole: {words}")
    connection.run(remote_lab.account.program(remote_lab.code, "forget", remote_lab.home), what="clearing up")


def unpack(stream: IO[bytes], run_dir: Path) -> None:
    """Unpacks files of a compressed tar below `run_dir`, except those that this side writes itself.

    Raises KernelError for a member that is neither a plain file nor a directory below it. Raises TarError or
    EOFError for a damaged or cut archive; for that it compares gzip's checksum, which tarfile itself does not
    do.
    """
    with gzip.GzipFile(fileobj=stream) as zipped:
        try:
            with tarfile.open(fileobj=zipped, mode="r|") as tar:
                _unpack(tar, run_dir)
            while zipped.read(PIECE):
                pass  # the checksum follows at the end
        except (gzip.BadGzipFile, zlib.error) as error:
            raise tarfile.ReadError(str(error)) from error


def _unpack(tar: tarfile.TarFile, run_dir: Path) -> None:
    for member in tar:
        path = PurePosixPath(member.name)
        if not _belongs(member, path):
            raise KernelError(
                f"{run_dir}: {member.name!r}: no run directory holds that; nothing of it is kept"
            )
        try:
            if member.isdir():
                (run_dir / path).mkdir(parents=True, exist_ok=True)
            elif str(path) not in OURS:
                _write(tar, member, run_dir / path)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            raise KernelError(
                f"{run_dir}: {member.name!r}: is a file and a directory in one archive"
            ) from error


def _belongs(member: tarfile.TarInfo, path: PurePosixPath) -> bool:
    """Returns whether a member may be in a run directory. A sparse file can claim any size without content;
    the other machine sends none.
    """
    below = not path.is_absolute() and ".." not in path.parts and "\0" not in member.name
    return below and (member.isdir() or (member.isreg() and not member.issparse() and path.name != ""))


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None  # only files have content, and the member is a file
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)


def come_home(connection: Connection, remote_lab: RemoteLab) -> None:
    """Ends the lab on the other machine, by its own teardown if possible, and fetches its measurements. Does
    nothing if the lab's directory does not exist there any more.
    """
    there = remote_lab.account
    look = f"test -d {shlex.quote(remote_lab.home)} && echo there; true"
    said = connection.run(there.shell(look), what=remote_lab.home)
    if said.split() == [b"there"]:
        connection.run(
            there.program(remote_lab.code, "down", remote_lab.home),
            timeout_s=DOWN_S,
            what="taking the lab away",
        )
        fetch(connection, remote_lab)


def blame(run_dir: Path, why: str) -> None:
    """Records in the manifest that the run failed, with the reason `why`; this replaces the lab's own record
    that it was interrupted. Does nothing if there is no manifest.
    """
    if manifest.read(run_dir):
        manifest.ended(run_dir, "failed", why)


def cleanup_remote(state_dir: Path) -> None:
    """Kills the lab's processes here, fetches its measurements into its run directory, and removes the lab on
    both machines; if there is no record of a remote lab, only removes the state directory.

    Raises KernelError if a process does not end or the machine cannot be reached; the state directory and the
    other machine's files then stay, for another attempt.
    """
    if left := end(processes(state_dir)):
        pids = ", ".join(f"{p.pid} ({p.role})" for p in left)
        raise KernelError(
            f"{state_dir}: process {pids} does not end; look at it with ps, then repeat `vnet down`"
        )
    remote_lab = read(state_dir)
    if remote_lab is not None:
        try:
            with Connection(remote_lab.machine, state_dir) as connection:
                come_home(connection, remote_lab)
        except KernelError as error:
            raise KernelError(
                f"{error}\n  what is left of it there is in {remote_lab.home}; "
                f"repeat `vnet down {remote_lab.state}` when the "
                f"machine can be reached, or give that up with rm -r {state_dir}"
            ) from error
    if state_dir.exists():
        shutil.rmtree(state_dir)
        forget_root(state_dir.parent)
