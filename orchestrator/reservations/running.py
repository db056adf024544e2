"""Records the labs that run on this machine in the directory of reservations, by account, so that accounts
see one another's labs and quotas count them. A record holds while its process lives.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from contract.plan import Plan
from orchestrator.lab.state import processes, start_ticks, state_root
from orchestrator.language.dates import date_text
from orchestrator.plan.nics import nic_uses
from orchestrator.plan.placement.demand import NOTHING, demand
from orchestrator.reservations import files, store
from orchestrator.reservations.model import Amount, ReservationError

SUFFIX = ".lab"
MOST = 1000  # largest number of recorded labs; further files are ignored


@dataclass(frozen=True, slots=True)
class RunningLab:
    """A lab with its account, its planned needs, its process, and the path of its state directory."""

    lab: str
    uid: int
    account: str
    amount: Amount
    pid: int
    start_ticks: int
    since_ns: int
    state_dir: str

    def __str__(self) -> str:
        return f"lab {self.lab} of {self.account}: {self.amount}, since {date_text(self.since_ns)}"


def amount(plan: Plan) -> Amount:
    """Returns the needs of a lab: memory of its nodes in bytes, the cores that they reserve (at least one),
    and the NICs by the names in its file.
    """
    total = sum((demand(node, (), None) for node in plan.nodes), NOTHING)
    return Amount(max(1.0, total.cores), total.memory_bytes, tuple(use.asked for use in nic_uses(plan)))


def every(root: Path | None = None) -> list[RunningLab]:
    """Returns the labs of all accounts, sorted by start; removes records of ended labs if it may. Ignores
    files that are not records.
    """
    return sorted(_every(root or store.directory()), key=lambda one: (one.since_ns, one.lab))


def _every(root: Path) -> Iterator[RunningLab]:
    try:
        paths = sorted(path for path in root.iterdir() if path.name.endswith(SUFFIX))[:MOST]
    except OSError:  # there is no directory, or it is closed to this account
        return
    for path in paths:
        try:
            one = _read(path)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if start_ticks(one.pid) == one.start_ticks:
            yield one
        elif one.uid == os.geteuid() or os.geteuid() == 0:
            path.unlink(missing_ok=True)


def _read(path: Path) -> RunningLab:
    uid, data = files.read(path)
    asked = data["amount"]
    nics = tuple(str(nic) for nic in asked["nics"])
    lab, state_dir = str(data["lab"]), str(data["state_dir"])
    if not all(text.isprintable() for text in (*nics, lab, state_dir)):  # the texts are printed on a terminal
        raise ValueError
    wanted = Amount(float(asked["cores"]), int(asked["memory_bytes"]), nics)
    if not (0 <= wanted.cores < 1e6 and 0 <= wanted.memory_bytes < 2**60 and 0 < data["since_ns"] < 2**63):
        raise ValueError
    return RunningLab(
        lab, uid, store.name_of(uid), wanted, int(data["pid"]), int(data["start_ticks"]),
        int(data["since_ns"]), state_dir,
    )  # fmt: skip


def enter(plan: Plan, state_dir: Path, root: Path) -> None:
    """Records a lab that this process begins; does nothing if the directory does not exist. The caller holds
    the directory's lock. Raises ReservationError if the record cannot be written.
    """
    if root.is_dir():
        ticks = start_ticks(os.getpid())
        assert ticks is not None  # this process lives, so it has a start time
        uid = store.account()
        name = plan.lab
        one = RunningLab(
            name, uid, store.name_of(uid), amount(plan), os.getpid(), ticks, time.time_ns(), str(state_dir)
        )
        _write(root / f"{name}.{os.getpid()}{SUFFIX}", one)


def _write(path: Path, one: RunningLab) -> None:
    kept = {key: value for key, value in asdict(one).items() if key not in ("uid", "account")}
    try:
        path.unlink(missing_ok=True)
        files.write(path, one.uid, kept)
    except OSError as error:
        text = f"{path}: cannot be written: {error.strerror}; other accounts would not see the lab"
        raise ReservationError(f"{text}; make room there, or `chmod 1777 {path.parent}`") from error


def hand_over(lab: str, state_dir: Path, root: Path | None = None) -> None:
    """Binds the record of a lab that this process began to the lab's own process. The record then holds while
    the lab's process lives.
    """
    root = root or store.directory()
    path = root / f"{lab}.{os.getpid()}{SUFFIX}"
    owner = next((one for one in processes(state_dir) if one.role == "lab" and one.alive), None)
    if owner is None or not path.exists():
        return
    with store.locked(root):
        one = _read(path)
        changed = {**asdict(one), "amount": one.amount, "pid": owner.pid, "start_ticks": owner.start_ticks}
        _write(path, RunningLab(**changed))


def leave(lab: str, state_dir: Path, root: Path | None = None) -> None:
    """Removes the records of a lab that has ended, if this account may."""
    root = root or store.directory()
    for path in root.glob(f"{lab}.*{SUFFIX}"):
        # there is no record, or it belongs to another account
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if _read(path).state_dir == str(state_dir):
                path.unlink(missing_ok=True)


def of_another(lab: str) -> RunningLab | None:
    """Returns the record of the lab of that name among the labs of this state directory if another account
    began it. None for root itself. Also None for an ordinary account, whose state directory has only its own
    labs. A record of this account outweighs those of others, because any account may write records.
    """
    us = store.account()
    if us == 0 or os.geteuid() != 0:
        return None
    where = str(state_root() / lab)
    here = [one for one in every() if one.state_dir == where]
    return None if any(one.uid == us for one in here) else next(iter(here), None)
