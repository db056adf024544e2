"""Keeps reservations on this machine: one file each in a directory in which every account may write and
delete only its own files (mode 1777, as /tmp). The file's owner is the account that has the reservation.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from orchestrator.language.dates import date_text
from orchestrator.reservations import files, quotas
from orchestrator.reservations.model import Amount, Reservation, ReservationError, clashes, starts

MOST = 1000  # largest number of reservations on a machine
LOCK_S = 5.0
MODE = 0o1777
SUFFIX = ".json"


def directory() -> Path:
    """Returns VNET_RESERVATIONS, else /var/lib/vnet/reservations: one for all accounts."""
    return Path(os.environ.get("VNET_RESERVATIONS") or "/var/lib/vnet/reservations")


def account() -> int:
    """Returns the user id of the account that reserves and runs; behind sudo, it is the account that called
    sudo.
    """
    caller = os.environ.get("SUDO_UID", "")
    return int(caller) if os.geteuid() == 0 and caller.isdigit() else os.geteuid()


def name_of(uid: int) -> str:
    """Returns an account's name, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def machine() -> Amount:
    """Returns the cores and the memory of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Amount(float(len(os.sched_getaffinity(0))), memory)


def read(root: Path) -> tuple[list[Reservation], list[str]]:
    """Returns the reservations in a directory, by start, and a sentence for each other file. Both are
    empty if there is no directory; raises ReservationError if it holds more than MOST files.
    """
    try:
        names = sorted(path.name for path in root.iterdir() if path.name.endswith(SUFFIX))
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise ReservationError(f"{root}: cannot be read: {error.strerror}") from error
    if len(names) > MOST:
        raise ReservationError(f"{root}: more than {MOST} reservations; remove some as root")
    found, wrong = [], []
    for name in names:
        try:
            found.append(_read(root / name))
        except FileNotFoundError:
            continue  # ended meanwhile
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            wrong.append(f"{root / name}: no reservation ({type(error).__name__}); its owner may remove it")
    return sorted(found, key=lambda one: (one.start_ns, one.name)), wrong


def _read(path: Path) -> Reservation:
    whose, data = files.read(path)
    amount = data["amount"]
    cores, memory = float(amount["cores"]), int(amount["memory_bytes"])
    nics, note = tuple(str(nic) for nic in amount["nics"]), str(data["note"])
    start, end = int(data["start_ns"]), int(data["end_ns"])
    if not (0 <= cores < 1e6 and 0 <= memory < 2**60 and 0 < start < end < 2**63):
        raise ValueError
    if not all(text.isprintable() for text in (*nics, note)):  # the texts are printed on a terminal
        raise ValueError
    return Reservation(path.stem, whose, name_of(whose), Amount(cores, memory, nics), start, end, note)


def add(
    root: Path, new: Reservation, have: Amount, queue: bool, quota: quotas.Quota | None = None
) -> Reservation:
    """Keeps a reservation under a new name and returns it. It must fit into the machine's amount `have`
    together with the others, and into its account's quota. If it does not fit and `queue` is true, it is
    moved to the first time at which it fits; otherwise ReservationError is raised, with the accounts, amounts
    and ends of the others. Removes own reservations that have ended.
    """
    quota = quota or quotas.Quota(new.account, "")
    with locked(root):
        others, _ = read(root)
        _tidy(root, others, new.uid)
        placed = _placed(new, have, others, queue, quota)
        return _write(root, replace(placed, name=f"r{secrets.token_hex(3)}"))


def _placed(
    new: Reservation, have: Amount, others: list[Reservation], queue: bool, quota: quotas.Quota
) -> Reservation:
    def against(one: Reservation, beside: list[Reservation]) -> list[str]:
        return quotas.exceeded(quota, one, beside) or clashes(one, have, beside)

    if alone := quotas.over(quota, new.amount, []):
        raise ReservationError(f"reserve: {'; '.join(alone)}; reserve less, or ask root for more")
    if alone := clashes(new, have, []):
        raise ReservationError(f"reserve: this machine never has it: {'; '.join(alone)}; reserve less")
    if not (found := against(new, others)):
        return new
    length = new.end_ns - new.start_ns
    moved = (replace(new, start_ns=at, end_ns=at + length) for at in starts(new, others))
    # The reservation fits at the latest when the last other reservation ends.
    free = next(one for one in moved if not against(one, others))
    if queue:
        return free
    when = date_text(-(-free.start_ns // 10**9) * 10**9)
    raise ReservationError(f"reserve: {'; '.join(found)}; free from {when}: --queue takes it then")


def _write(root: Path, one: Reservation) -> Reservation:
    final = root / f"{one.name}{SUFFIX}"
    kept = {"amount": asdict(one.amount), "start_ns": one.start_ns, "end_ns": one.end_ns, "note": one.note}
    try:
        files.write(final, one.uid, kept)
    except OSError as error:
        raise ReservationError(
            f"{final}: cannot be written: {error.strerror}; nothing is reserved"
        ) from error
    return one


def _tidy(root: Path, others: list[Reservation], uid: int) -> None:
    """Removes an account's ended reservations, and the files of an `add` that was killed."""
    now = time.time_ns()
    for one in others:
        if one.uid == uid and one.end_ns <= now:
            (root / f"{one.name}{SUFFIX}").unlink(missing_ok=True)
    for part in root.glob(f".{uid}.*.part"):
        if part.lstat().st_uid == uid or os.geteuid() == 0:
            part.unlink(missing_ok=True)


def end(root: Path, name: str, uid: int) -> Reservation:
    """Removes a reservation of an account and returns it; ReservationError if there is none or another has
    it.
    """
    with locked(root):
        found = next((one for one in read(root)[0] if one.name == name), None)
        if found is None:
            raise ReservationError(f"reserve: {name}: no such reservation; `vnet reserve ls` lists them")
        if found.uid != uid:
            raise ReservationError(f"reserve: {found}: only {found.account} ends it")
        (root / f"{name}{SUFFIX}").unlink(missing_ok=True)
        return found


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """Holds the directory's lock, which the kernel drops when its holder dies; root also makes the directory.
    Raises ReservationError after 5 s, or if there is no directory in which all accounts may write.
    """
    remedy = f"`install -d -m 1777 {root}` as root makes it"
    try:
        if os.geteuid() == 0 and not root.exists():
            root.mkdir(parents=True)
            root.chmod(MODE)
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ReservationError(f"{root}: {error.strerror}; {remedy}") from error
    try:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    text = f"{root}: another process has held the lock for {LOCK_S:g} s; try again"
                    raise ReservationError(text) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)
