"""Determines the account of QEMU: libvirt's own account, with a group that no machine of another lab has.

A guest that took control of its QEMU has only that account's rights. So it can neither enter the directory of
another lab nor inspect processes of another lab's group.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchestrator.lab.errors import LabError
from orchestrator.project import PACKAGES

NAMES = ("libvirt-qemu", "qemu")  # account names of Debian and Fedora
# Group numbers that no distribution and no container runtime assigns (systemd's UIDS-GIDS.md: unused).
GROUPS_FROM = 0x7000_0000


@dataclass(frozen=True, slots=True)
class Account:
    """A user id with a lab's own group id; `groups` are the user's other groups, such as that of /dev/kvm."""

    name: str
    user: int
    group: int
    groups: tuple[int, ...]

    @property
    def label(self) -> str:
        """The account's label in libvirt's format; in numbers, since the group has no name."""
        return f"+{self.user}:+{self.group}"

    def enters(self, directory: Path) -> None:
        """Lets the account enter the directory, without listing or writing it; closes it to all others but
        root.
        """
        os.chown(directory, 0, self.group)
        directory.chmod(0o710)

    def owns(self, file: Path) -> None:
        """Makes the account the owner of the file; no other account but root may read or write it."""
        os.chown(file, self.user, self.group)
        file.chmod(0o600)

    def reads(self, path: Path) -> bool:
        """Returns whether the account may read the file (or list the directory) at this path."""
        return self._may("-r", path)

    def passes(self, directory: Path) -> bool:
        """Returns whether the account may enter the directory."""
        return self._may("-x", directory)

    def _may(self, what: str, path: Path) -> bool:
        asked = subprocess.run(
            ["test", what, str(path)], cwd="/", user=self.user, group=self.group,
            extra_groups=self.groups, check=False,
        )  # fmt: skip
        return asked.returncode == 0


def known() -> pwd.struct_passwd | None:
    """Returns this machine's libvirt account (libvirt-qemu or qemu); None if it has neither."""
    for name in NAMES:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


def of_lab(state_dir: Path) -> Account:
    """Returns libvirt's account with a group id derived from the lab's state directory; raises LabError if
    this machine has no libvirt account.
    """
    user = known()
    if user is None:
        raise LabError(
            f"virtual machines: there is no account {NAMES[0]}, which QEMU runs as; {PACKAGES} vm makes it"
        )
    number = int.from_bytes(hashlib.sha256(os.fsencode(state_dir)).digest()[:3])
    groups = tuple(os.getgrouplist(user.pw_name, user.pw_gid))
    return Account(user.pw_name, user.pw_uid, GROUPS_FROM + number, groups)


def insist_on_a_way(account: Account, place: Path, other: str) -> None:
    """Raises LabError if QEMU's account cannot enter a directory above `place`; `other` names the setting
    that chooses another place.
    """
    for directory in reversed(place.parents):
        if not account.passes(directory):
            raise LabError(
                f"{directory}: is closed to {account.name}, the account that QEMU runs as: chmod o+x "
                f"{directory}, or choose another {other}"
            )
