"""Reads the quotas of accounts, and finds an exceeded quota. At any moment, a quota limits the amounts that
an account may reserve, and that its labs may take.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from orchestrator.language.problem import Problem, TopologyError
from orchestrator.language.scalars import Base, Size
from orchestrator.language.source import LARGEST_FILE, read_document
from orchestrator.reservations.model import GB, Amount, Reservation
from orchestrator.topology.validation import problems_of

VARIABLE = "VNET_QUOTAS"
USUAL = Path("/etc/vnet/quotas.yaml")
ROOT = 0


class Entry(Base):
    """The quota of an account; a key that is left out has no limit."""

    cores: float | None = Field(None, ge=0, description="Cores.")
    memory: Size | None = Field(None, description="Memory.")
    nics: int | None = Field(None, ge=0, description="NICs of the machine.")
    labs: int | None = Field(None, ge=0, description="Labs that run at a time.")


class File(Base):
    """The file of quotas."""

    default: Entry | None = Field(None, description="Accounts, other than root, that are not named.")
    accounts: dict[str, Entry] = Field(default_factory=dict, description="By the account's name.")


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that an account may have at one moment; None: no limit. Memory in bytes. `where`: the file
    that states it.
    """

    account: str
    where: str
    cores: float | None = None
    memory_bytes: int | None = None
    nics: int | None = None
    labs: int | None = None


def of(uid: int, account: str) -> Quota:
    """Returns the quota of an account; without limits if there is no file, and for root unless it is named.

    Raises TopologyError, with the file's line, for a file that cannot be read, is wrong, or can be written by
    others than root (unless VNET_QUOTAS names it).
    """
    path = Path(os.environ.get(VARIABLE) or USUAL)
    found = _read(path)
    entry = (
        found.accounts.get(account) or (found.default if uid != ROOT else None) or Entry.model_validate({})
    )
    return Quota(account, str(path), entry.cores, entry.memory, entry.nics, entry.labs)


def _read(path: Path) -> File:
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return File.model_validate({})
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise TopologyError([Problem(str(path), 0, "", "", rule, f"chmod 644 {path}")]) from None
    loose = about.st_uid != ROOT or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if loose and VARIABLE not in os.environ:
        rule = "can be written by others than root"
        remedy = f"chown root {path}; chmod 644 {path}"
        raise TopologyError([Problem(str(path), 0, "", "", rule, remedy)])
    document = read_document(str(path), content)
    try:
        return File.model_validate(document.data if document.data is not None else {})
    except ValidationError as error:
        raise TopologyError(problems_of(error, File, document)) from None


def over(quota: Quota, want: Amount, held: Sequence[Amount], labs: int = 0) -> list[str]:
    """Returns a sentence for each resource of which `want` and `held` together exceed the quota. labs: the
    number of the account's labs, including the new one; 0 if it does not matter.
    """
    found = []
    total = sum(one.cores for one in held) + want.cores
    if want.cores and quota.cores is not None and total > quota.cores:
        found.append(f"{want.cores:g} cores wanted, {total - want.cores:g} of {quota.cores:g} are taken")
    memory = sum(one.memory_bytes for one in held) + want.memory_bytes
    if want.memory_bytes and quota.memory_bytes is not None and memory > quota.memory_bytes:
        taken = (memory - want.memory_bytes) / GB
        of_all = f"{taken:.1f} of {quota.memory_bytes / GB:.1f} GB are taken"
        found.append(f"{want.memory_bytes / GB:.1f} GB of memory wanted, {of_all}")
    nics = sum(len(one.nics) for one in held) + len(want.nics)
    if want.nics and quota.nics is not None and nics > quota.nics:
        found.append(f"{len(want.nics)} NICs wanted, {nics - len(want.nics)} of {quota.nics} are taken")
    if labs and quota.labs is not None and labs > quota.labs:
        found.append(f"{labs - 1} of {quota.labs} labs run")
    return [f"quota of {quota.account} ({quota.where}): {text}" for text in found]


def exceeded(quota: Quota, new: Reservation, own: Iterable[Reservation]) -> list[str]:
    """Returns the resources that exceed the quota at the first such moment of a new reservation, with the
    account's own reservations at that time; an empty list if the quota is never exceeded.
    """
    mine = [one for one in own if one.uid == new.uid]
    later = (one.start_ns for one in mine if new.start_ns < one.start_ns < new.end_ns)
    for moment in sorted({new.start_ns, *later}):
        held = [one for one in mine if one.at(moment)]
        if found := over(quota, new.amount, [one.amount for one in held]):
            return found + [str(one) for one in held]
    return []
