"""vNET's program on a remote machine: `python -m orchestrator.campaign.remote VERB ...`.

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
import shutil
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract import codec
from contract.plan import Plan
from orchestrator.campaign.facts import facts
from orchestrator.campaign.hardware import nic_problems
from orchestrator.campaign.teardown import TeardownError, take_down
from orchestrator.kernel.choose import NoKernel, choose
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.fake import FakeKernel
from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.process import end
from orchestrator.kernel.protocol import KernelError, LabKernel, Launch, Missing
from orchestrator.kernel.remote.bridge import bridge
from orchestrator.kernel.remote.remote_lab import LAUNCH, OWNER, Start
from orchestrator.kernel.remote.remote_owner import RemoteOwner
from orchestrator.kernel.uml.kernel import UmlKernel
from orchestrator.lab.state import Owned, owned, read_lab, state_root
from orchestrator.plan.capacity import problems
from orchestrator.project import AGENT, keep_others_out

OWNER_S = 60.0  # an owner that is alone tears its lab down meanwhile


def check() -> int:
    """Prints which kernel of this machine can carry the plan, or what is missing; makes nothing."""
    told = json.load(sys.stdin)
    plan, kernel = codec.build(Plan, told["plan"]), told["kernel"]
    found = host_facts()
    kinds = {kind: found.lacks(kind) for kind in found.kinds}
    answer: dict[str, Any] = {"kinds": kinds, "refused": None, "problems": []}
    try:
        choice = choose(plan, kernel, _kernels(kernel))
    except NoKernel as error:
        answer["refused"] = str(error)
    else:
        name = choice.kernel.name
        against = nic_problems(plan) if name == "host" else []
        against += problems(plan, facts(name, Path.home()))
        answer |= {"kernel": name, "why": choice.why, "problems": [dataclasses.asdict(p) for p in against]}
    print(json.dumps(answer))  # noqa: T201  # its standard output is the answer
    return 0


def _kernels(wanted: str) -> list[LabKernel]:
    """The kernels of this machine; ignores missing images, since the client sends them."""
    return [FakeKernel()] if wanted == "fake" else [HostKernel(images=_brought), UmlKernel()]


def _brought(_plan: Plan) -> list[Missing]:
    return []


def run(home: Path) -> int:
    """Own the lab of `home`; FileNotFoundError where it was given up before it could begin."""
    with (home / OWNER).open("x") as file:
        json.dump(dataclasses.asdict(owned("owner", os.getpid())), file)
    start, plan = _start(home), codec.build(Plan, json.loads((home / LAUNCH).read_text())["plan"])
    kernel = choose(plan, start.kernel, _kernels(start.kernel)).kernel
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
