"""Writes and checks seal.json: the SHA-256 of all files that figures are made from, so that later changes
are found.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from contract import regular

NAME = "seal.json"
WRITTEN = ("plan.json", "manifest.json", "proof.json")  # by the lab
SEALED = (*WRITTEN, "summary.json", "verdicts.json")
PATTERNS = ("*.parquet", "packets/*.parquet", "connections/*.parquet")
RECORDS = (
    "raw/*.csv",
    "raw/events.jsonl",
    "pcap/*.pcap",
    "pcap/*.pcap.zst",
)  # records from which tables are made


def seal(run_dir: Path, records: bool = True) -> None:
    """Writes seal.json with the SHA-256 of each present file: plan, manifest, proof, summary, verdicts and
    tables. Includes the files in raw/ and pcap/ if `records` is true.
    """
    patterns = PATTERNS + RECORDS if records else PATTERNS
    found = sorted({path for pattern in patterns for path in run_dir.glob(pattern)})
    names = [name for name in SEALED if (run_dir / name).is_file()]
    _write(run_dir, {name: _digest(run_dir / name) for name in names + [_name(run_dir, p) for p in found]})


def lift(run_dir: Path, name: str) -> None:
    """Removes a file's digest from the seal, before the file is rewritten. After a crash before `renew` the
    file then has no digest in place of a wrong one. Does nothing without a readable seal.
    """
    try:
        known = _read(run_dir)
    except (OSError, ValueError):
        return
    _write(run_dir, {sealed: digest for sealed, digest in known.items() if sealed != name})


def renew(run_dir: Path, names: Iterable[str]) -> None:
    """Stores the digests of files that were rewritten in the seal. Does nothing without a readable seal."""
    try:
        known = _read(run_dir)
    except (OSError, ValueError):
        return
    _write(run_dir, known | {name: _digest(run_dir / name) for name in names})


def altered(run_dir: Path) -> tuple[str, ...]:
    """Returns the names of summary, verdicts, plan, manifest, proof and tables that were changed or added
    since the run was sealed; empty if the run never had a seal.

    Returns only seal.json if the seal was damaged or removed. Other removed files do not count.
    """
    if not sealed(run_dir) and _was_sealed(run_dir):
        return (NAME,)
    return _changed(run_dir, SEALED, PATTERNS)


def altered_since(run_dir: Path) -> tuple[str, ...]:
    """Returns the result of `altered`, but reads the files only if one is newer than the seal or the seal is
    gone. So it does not find a change that also sets the file's time back.
    """
    try:
        sealed_ns = (run_dir / NAME).stat().st_mtime_ns
    except OSError:
        return altered(run_dir)
    found = [run_dir / name for name in SEALED] + [p for one in PATTERNS for p in run_dir.glob(one)]
    return altered(run_dir) if any(_later(path, sealed_ns) for path in found) else ()


def _later(path: Path, than_ns: int) -> bool:
    try:
        return path.lstat().st_mtime_ns > than_ns
    except FileNotFoundError:
        return False


def altered_records(run_dir: Path) -> tuple[str, ...]:
    """Returns the names of the files that a reduction reads (plan, manifest, proof, raw/ and pcap/) that were
    changed or added since the run was sealed; empty without a seal, seal.json for a damaged one.

    If the seal covers no file of raw/ or pcap/, added files do not count.
    """
    return _changed(run_dir, WRITTEN, RECORDS)


def _changed(run_dir: Path, names: tuple[str, ...], patterns: tuple[str, ...]) -> tuple[str, ...]:
    try:
        known = _read(run_dir)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError):
        return (NAME,)
    changed = []
    for name, digest in sorted(known.items()):
        if name in names or _matches(name, patterns):
            with contextlib.suppress(FileNotFoundError):
                if _digest(run_dir / name) != digest:
                    changed.append(name)
    there = {_name(run_dir, path) for pattern in patterns for path in run_dir.glob(pattern)}
    covers = patterns == PATTERNS or any(_matches(name, patterns) for name in known)
    return (*changed, *sorted(there - known.keys() if covers else ()))


def _was_sealed(run_dir: Path) -> bool:
    """Returns True if the manifest states that a reduction sealed the run; False for an unreadable one."""
    try:
        found = regular.read_json(run_dir / "manifest.json")
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("sealed") is True


def digests(run_dir: Path) -> dict[str, str]:
    """Returns the SHA-256 of each sealed file as it was when it was sealed; empty without a readable seal."""
    try:
        return _read(run_dir)
    except (OSError, ValueError):
        return {}


def sealed(run_dir: Path) -> bool:
    """Returns True if the run has a seal.json."""
    return (run_dir / NAME).is_file()


def _read(run_dir: Path) -> dict[str, str]:
    found = regular.read_json(run_dir / NAME)
    names = isinstance(found, dict) and all(_inside(name) for name in found)
    if not names or not all(isinstance(digest, str) for digest in found.values()):
        raise ValueError(f"{NAME} is no seal")
    return {str(name): str(digest) for name, digest in found.items()}


def _inside(name: str) -> bool:
    """Returns True if a name may be in a seal: a file of a run directory that is sealed. Rejecting others
    keeps a seal from leading to files elsewhere.
    """
    return name in SEALED or (_matches(name, PATTERNS + RECORDS) and ".." not in name)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(Path(name).match(pattern) for pattern in patterns)


def _write(run_dir: Path, digests: dict[str, str]) -> None:
    regular.write(run_dir / NAME, json.dumps(digests, indent=1) + "\n", durable=True)


def _digest(path: Path) -> str:
    try:
        with regular.open_read(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise
    except OSError:  # a directory, a link or a pipe is in the file's place: not the sealed file
        return ""


def _name(run_dir: Path, path: Path) -> str:
    return path.relative_to(run_dir).as_posix()


def digest(path: Path) -> str:
    """Returns the hexadecimal SHA-256 of a file; OSError if it cannot be read."""
    with regular.open_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
