"""Carries a whole lab on a remote machine: `python -m orchestrator.run.remote VERB ...`.

kernel/remote copies this code there and starts it over ssh; it uses the standard library only. `check` reads
{plan, kernel} from standard input and prints whether this machine can carry the plan. `run HOME` starts the
lab and owns it (kernel/remote/remote_owner.py), `down HOME` takes it down, `pack HOME` writes its run
directory as a compressed tar, `forget HOME` removes its directory. `text HOME FILE` and `stream HOME SOCKET`
read a file and join a socket of a running lab. HOME is the lab's directory on this machine
(kernel/remote/remote_lab.py).
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import select
import shutil
import socket
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract import codec
from contract.plan import Plan
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.process import end
from orchestrator.kernel.protocol import KernelError, Launch, NoKernel, Wish
from orchestrator.kernel.registry import choose, made
from orchestrator.kernel.remote.remote_lab import LAUNCH, OWNER, Start
from orchestrator.kernel.remote.remote_owner import RemoteOwner
from orchestrator.lab.state import Owned, owned, read_lab, state_root
from orchestrator.language.kernels import HERE
from orchestrator.project import AGENT, keep_others_out
from orchestrator.run.teardown import TeardownError, take_down

STDIN, STDOUT = 0, 1
PIECE = 65536  # bytes that are read at once
OWNER_S = 60.0  # s within which an owner without a client takes its lab down


def check() -> int:
    """Prints two results as JSON, for the plan on standard input. One is each kind of kernel with the needs
    that this machine does not meet. The other is the kernel that can carry the plan, with the plan's problems
    there, or the reason why no kernel can. Changes nothing; returns 0.
    """
    told = json.load(sys.stdin)
    plan, kernel = codec.build(Plan, told["plan"]), told["kernel"]
    found = host_facts()
    kinds = {kind: found.lacks(kind) for kind in found.kinds}
    answer: dict[str, Any] = {"kinds": kinds, "refused": None, "problems": []}
    wish = Wish(kernel, out=Path.home(), carried=True)
    try:
        choice = choose(plan, wish, made(HERE, plan, wish))
    except NoKernel as error:
        answer["refused"] = str(error)
    else:
        exceeded = [dataclasses.asdict(problem) for problem in choice.fit.problems]
        answer |= {"kernel": choice.kernel.name, "why": choice.why, "problems": exceeded}
    print(json.dumps(answer))  # noqa: T201  # its standard output is the answer
    return 0


def run(home: Path) -> int:
    """Starts the lab of `home` and owns it until its end; returns the exit status.

    Raises FileNotFoundError if the client has removed `home` meanwhile, FileExistsError if it has an owner.
    """
    with (home / OWNER).open("x") as file:
        json.dump(dataclasses.asdict(owned("owner", os.getpid())), file)
    start, plan = _start(home), codec.build(Plan, json.loads((home / LAUNCH).read_text())["plan"])
    (kernel,) = made(HERE, plan, Wish(start.kernel, carried=True))
    kernel.why = start.why
    launch = Launch(
        plan,
        Path(start.run_dir),
        state_root() / start.state,
        AGENT,
        start.scenario,
        start.keep,
        machine=start.machine,
    )
    return RemoteOwner(kernel.start(launch), launch.run_dir).run()


def _start(home: Path) -> Start:
    return codec.build(Start, json.loads((home / LAUNCH).read_text())["start"])


def down(home: Path) -> int:
    """Takes the lab of `home` down: requests its end, so that its results stay, and waits up to OWNER_S for
    its owner. Then ends the owner, and removes the rest by force. Returns 0. Does nothing to another lab of
    the same name.
    """
    if not (home / LAUNCH).exists():
        return 0  # the client gave up before it sent the task
    start = _start(home)
    if read_lab(state_root() / start.state).get("run_dir") == start.run_dir:
        take_down(start.state)
    owner = _owner(home)
    deadline = time.monotonic() + OWNER_S
    while owner is not None and owner.alive and time.monotonic() < deadline:
        time.sleep(0.05)  # waits until the owner has ended; the deadline is checked above
    if owner is not None:
        end([owner])
    if read_lab(state_root() / start.state).get("run_dir") == start.run_dir:
        take_down(start.state, politely=False)
    return 0


def _owner(home: Path) -> Owned | None:
    path = home / OWNER
    try:
        return codec.from_json(Owned, path.read_text())
    except (FileNotFoundError, ValueError):  # the owner never began, or ended while it wrote the file
        return None


def pack(home: Path) -> int:
    """Writes the run directory to standard output as a gzipped tar, empty if there is no directory."""
    run_dir = Path(_start(home).run_dir)
    with (
        gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        if run_dir.is_dir():
            tar.add(run_dir, ".")
    return 0


def text(home: Path, name: str) -> int:
    """Writes the present content of a file of the run directory to standard output, if the file exists."""
    file = Path(_start(home).run_dir) / name
    if file.exists():
        sys.stdout.buffer.write(file.read_bytes())
    return 0


def stream(home: Path, name: str) -> int:
    """Connects standard input and output to the Unix socket `name` of the lab's state directory."""
    bridge(state_root() / _start(home).state / name)
    return 0


def bridge(path: Path) -> None:
    """Connects to the Unix socket `path` and copies in both directions until either side ends.

    First writes an empty line to standard output, which shows the client that the socket has accepted.
    """
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        os.write(STDOUT, b"\n")
        while True:
            ready, _, _ = select.select([STDIN, line.fileno()], [], [])
            if line.fileno() in ready:
                if not (said := line.recv(PIECE)):
                    return
                while said:
                    said = said[os.write(STDOUT, said) :]
            if STDIN in ready:
                if not (typed := os.read(STDIN, PIECE)):
                    return
                line.sendall(typed)


def forget(home: Path) -> int:
    """Removes the lab's directory; renames it first, so that an owner that starts late finds nothing."""
    gone = home.with_name(f".{home.name}.gone")
    if home.is_dir():
        home.rename(gone)
    if gone.is_dir():
        shutil.rmtree(gone)
    return 0


VERBS: dict[str, Callable[..., int]] = {
    "run": run, "down": down, "pack": pack, "forget": forget, "text": text, "stream": stream,
}  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Runs the verb `argv[0]`; returns its exit status, or 1 after an expected error, which it prints."""
    keep_others_out()
    try:
        return check() if argv[0] == "check" else VERBS[argv[0]](Path(argv[1]), *argv[2:])
    except (KernelError, TeardownError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201  # ssh carries it home
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
