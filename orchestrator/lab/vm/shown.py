"""Mounts files of an image read-only below the lab's state directory, where QEMU's account can read them.

Images are in the home of the user of vNET, which QEMU's account cannot enter. libvirt changes the owner of a
machine's files to QEMU's account; a read-only mount prevents that.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from orchestrator.images import Image, rests_on
from orchestrator.lab import mounts
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.account import Account


class Shown:
    """The read-only mounts of a lab. `close` removes them, or teardown after a crash does."""

    def __init__(self, state_dir: Path, account: Account) -> None:
        self._top, self._account = state_dir / "images", account
        self._files: dict[Path, Path] = {}

    def image(self, image: Image) -> Image:
        """Mounts the image's files and returns the image with paths that QEMU's account can read. Raises
        LabError if the account cannot read a file, or a disk depends on another file.
        """
        kernel, initrd, disk = map(self._file, (image.kernel, image.initrd, image.disk))
        return replace(image, kernel=kernel, initrd=initrd, disk=disk)

    def _file(self, path: Path | None) -> Path | None:
        if path is None:
            return None
        path = path.resolve()
        if path not in self._files:
            if backing := rests_on(path):
                raise LabError(
                    f"image {path}: rests on another file, {backing}, which its machines do not see: "
                    f"qemu-img convert -O qcow2 {path} whole.qcow2, and name that"
                )
            self._files[path] = self._show(path)
        return self._files[path]

    def _show(self, path: Path) -> Path:
        place = self._top / hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        for directory in (self._top, place):
            directory.mkdir(exist_ok=True)
            self._account.enters(directory)
        shown = place / path.name
        shown.touch()
        mounts.show(path, shown)
        if not self._account.reads(shown):
            raise LabError(
                f"image {path}: {self._account.name}, the account that QEMU runs as, may not read it: "
                f"chmod o+r {path}"
            )
        return shown

    def close(self) -> None:
        for mount in mounts.below(self._top):
            mounts.unmount(mount)
