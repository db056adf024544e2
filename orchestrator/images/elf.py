"""Collects a program and its libraries from this machine, so that it runs in any guest of the same
processor.
"""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.images.errors import ImageError
from orchestrator.images.run import run

_LINE = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x", re.MULTILINE)
_LOADER = re.compile(r"ld-linux[^/]*\.so\.\d+$")


def with_libraries(program: Path) -> dict[str, bytes]:
    """Returns the program (`vnet-agent`), its loader (`ld.so`) and its libraries as file name -> content."""
    found = {m["name"] or Path(m["path"]).name: Path(m["path"]) for m in _LINE.finditer(_listed(program))}
    loaders = [name for name in found if _LOADER.search(name)]
    if not loaders:
        raise ImageError(f"{program}: its dynamic loader is unknown; is it a Linux program of this machine?")
    files = {name: path.read_bytes() for name, path in found.items() if name not in loaders}
    return {"vnet-agent": program.read_bytes(), "ld.so": found[loaders[0]].read_bytes(), **files}


def _listed(program: Path) -> str:
    return run(["ldd", program], why=f"{program.name}: libraries")
