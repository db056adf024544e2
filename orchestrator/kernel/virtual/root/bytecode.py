"""Compiles the Python files of a closed root, so that no program in the lab compiles what it imports."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from orchestrator.images.cpio import Entry
from orchestrator.kernel.protocol import KernelError

SCRIPT = Path(__file__).with_name("compile_files.py")
TAG = "import importlib.util as u, sys; print(u.MAGIC_NUMBER.hex(), sys.implementation.cache_tag)"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}


def compiled(entries: Iterable[Entry], interpreter: str, kept: Path) -> list[Entry]:
    """Returns entries in __pycache__ with the bytecode of all `.py` entries that have a source file, as the
    Python `interpreter` compiles it. kept: directory that keeps the bytecode for later roots.

    Leaves out files that do not compile. Raises KernelError if the interpreter fails.
    """
    files = [entry for entry in entries if entry.path.endswith(".py")]
    if not files:
        return []
    kept.mkdir(parents=True, exist_ok=True)
    magic, tag = _run([interpreter, "-S", "-s", "-B", "-c", TAG]).split()
    found, missing = [], []
    for entry in files:
        if entry.source is None:
            continue
        text = entry.source.read_bytes()
        name = hashlib.sha256(f"{magic} {entry.path}\n".encode() + text).hexdigest()
        above, _, last = f"/{entry.path}".rpartition("/")
        place = f"{above}/__pycache__/{last.removesuffix('.py')}.{tag}.pyc".lstrip("/")
        found.append(Entry(place, 0o100644, source=kept / name))
        if not (kept / name).exists():
            missing.append([str(entry.source), str(kept / name), f"/{entry.path}"])
    if missing:
        _run([interpreter, "-S", "-s", "-B", str(SCRIPT)], json.dumps(missing))
    return [one for one in found if one.source is not None and one.source.exists()]


def _run(argv: list[str], given: str = "") -> str:
    done = subprocess.run(
        argv, input=given, capture_output=True, text=True, env=ENVIRONMENT, check=False, cwd="/"
    )
    if done.returncode != 0:
        raise KernelError(f"{argv[0]}: bytecode for the closed root cannot be made: {done.stderr.strip()}")
    return done.stdout
