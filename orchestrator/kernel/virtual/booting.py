"""Defines the settings from which the owner of a lab in virtual time boots its guest, and the files in the
guest's stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LAB_ARCHIVE = "lab.cpio"  # path below raw/ of the archive with the files of this lab only


@dataclass(frozen=True, slots=True)
class VirtualBoot:
    """Everything that the owner process needs to run one guest.

    stage: paths by their names in the kernel's working directory.
    """

    lab: str
    argv: tuple[str, ...]
    env: dict[str, str]
    run_dir: str
    state_dir: str
    stage: dict[str, str]
    stall_s: float
    until_ns: int  # latest lab time (ns) at which a scenario of this plan can end


def lay_out(boot_: VirtualBoot, stage: Path) -> None:
    """Makes links to the files of `boot_.stage` in the kernel's working directory `stage`."""
    for name, target in boot_.stage.items():
        (stage / name).symlink_to(target)
