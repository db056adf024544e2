"""Makes a small Debian in a directory: packages with files, dependencies and scripts, as dpkg stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.kernel.virtual.root.dpkg import Database


@dataclass
class Debian:
    """A Debian in the directory `root`, to which packages are added one by one."""

    root: Path
    _status: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in (
            "usr/bin",
            "usr/sbin",
            "usr/lib",
            "etc",
            "var/lib/dpkg/info",
            "var/lib/dpkg/alternatives",
        ):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib"):
            (self.root / name).symlink_to(f"usr/{name}")

    def install(self, name: str, files: Mapping[str, str], script: str = "", **fields: str) -> None:
        """Adds a package of version 1 whose files are all programs; `fields` are further fields of its status
        paragraph.
        """
        for path, text in files.items():
            self.put(path, text)
        info = self.root / "var/lib/dpkg/info"
        (info / f"{name}.list").write_text("/.\n" + "".join(f"{path}\n" for path in files))
        (info / f"{name}.postinst").write_text(script)
        more = {"Status": "install ok installed", "Architecture": "amd64", "Version": "1"}
        more |= {key.replace("_", "-"): value for key, value in fields.items()}
        self._status.append("\n".join([f"Package: {name}", *(f"{k}: {v}" for k, v in more.items())]))
        (self.root / "var/lib/dpkg/status").write_text("\n\n".join(self._status) + "\n")

    def put(self, path: str, text: str, mode: int = 0o755) -> Path:
        """Writes a file that belongs to no package."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)
        return place

    @property
    def database(self) -> Database:
        """Returns the package database in its present state."""
        return Database(self.root)
