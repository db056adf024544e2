"""vNET's program on a remote machine: `python -m orchestrator.run.remote VERB ...`.

Started over ssh by kernel/remote from a copy of this code; standard library only. `check` reads
{plan, kernel} and answers whether a lab can be there; `run HOME` is its owner
(kernel/remote/remote_owner.py); `down HOME` takes it away, `pack HOME` writes its run directory as a tar,
`forget HOME` removes what is left of it; `text HOME FILE` and `stream HOME SOCKET` are for looking into it
while it runs. HOME is the lab's directory on this machine (kernel/remote/remote_lab.py).
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
PIECE = 65536  # bytes read at once
OWNER_S = 60.0  # an owner that is alone tears its lab down meanwhile


def check() -> int:
    """Prints which kernel of this machine can carry the plan, or what is missing; makes nothing."""
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
    """Own the lab of `home`; FileNotFoundError where it was given up before it could begin."""
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
    """End the lab of `home`, in order if it can: what it measured stays. No other of that name is touched."""
    if not (home / LAUNCH).exists():
        return 0  # it was given up before it received its task
    start = _start(home)
    if read_lab(state_root() / start.state).get("run_dir") == start.run_dir:
        take_down(start.state)
    owner = _owner(home)
    deadline = time.monotonic() + OWNER_S
    while owner is not None and owner.alive and time.monotonic() < deadline:
        time.sleep(0.05)  # the subject is the owner's end, the deadline stands above
    if owner is not None:
        end([owner])
    if read_lab(state_root() / start.state).get("run_dir") == start.run_dir:
        take_down(start.state, politely=False)
    return 0


def _owner(home: Path) -> Owned | None:
    path = home / OWNER
    try:
        return codec.from_json(Owned, path.read_text())
    except (FileNotFoundError, ValueError):  # never begun, or cut short in its first moment
        return None


def pack(home: Path) -> int:
    """The run directory as a tar on standard output; empty where nothing was written."""
    run_dir = Path(_start(home).run_dir)
    with (
        gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        if run_dir.is_dir():
            tar.add(run_dir, ".")
    return 0


def text(home: Path, name: str) -> int:
    """A file of the run directory as it is now, on standard output; nothing where there is none."""
    file = Path(_start(home).run_dir) / name
    if file.exists():
        sys.stdout.buffer.write(file.read_bytes())
    return 0


def stream(home: Path, name: str) -> int:
    """Standard input and output joined to a Unix socket of the state directory."""
    bridge(state_root() / _start(home).state / name)
    return 0


def bridge(path: Path) -> None:
    """Copies both ways until either side ends; first sends an empty line, which shows that the socket
    accepted.
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
    """Removes the lab's directory, so that a late owner finds nothing."""
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
    """Runs one verb; prints an expected error as one line on standard error."""
    keep_others_out()
    try:
        return check() if argv[0] == "check" else VERBS[argv[0]](Path(argv[1]), *argv[2:])
    except (KernelError, TeardownError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201  # ssh carries it home
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
