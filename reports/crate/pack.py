"""Packs a run or campaign with its metadata into one ZIP file, and checks such a file."""

from __future__ import annotations

import json
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contract import regular
from reports.crate.metadata import NAME, Stated, files, metadata, sha256, verdicts
from reports.study import Study, study_of_campaign, study_of_run

EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every entry, so that the same directory gives the same bytes

# Bounds of the unpacked content: measurements are packed 5 to 30 times smaller, a zip bomb 1,000 times.
# bytes; multiple of the crate's size; number of files
LEAST_BOUND, MOST_TIMES, MOST_FILES = 1 << 30, 200, 200_000


class CrateError(ValueError):
    """Raised if a file is no crate of vNET's; the text has the file, the mistake and the remedy."""


@dataclass(frozen=True)
class Checked:
    """The result of a comparison of a crate with its files: a sentence for each difference, and the numbers
    of files and verdicts that agree.
    """

    files: int
    verdicts: int
    differing: tuple[str, ...]

    @property
    def intact(self) -> bool:
        return not self.differing


def study_of(directory: Path) -> Study:
    """Returns the study in a directory of a run or campaign."""
    return (study_of_campaign if (directory / "cells.jsonl").exists() else study_of_run)(directory)


def pack(directory: Path, crate: Path, stated: Stated) -> int:
    """Writes the crate and returns its number of files. If writing fails, no part of the file remains."""
    made = json.dumps(metadata(study_of(directory), stated), indent=1) + "\n"
    listed = [path for path in files(directory) if str(path) != NAME]
    crate.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=crate.parent, delete=False) as unfinished:
        try:
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(zipfile.ZipInfo(NAME, EPOCH), made, zipfile.ZIP_DEFLATED)
                for path in listed:
                    _add(archive, directory, path)
            Path(unfinished.name).chmod(0o644)
            Path(unfinished.name).replace(crate)
        except BaseException:
            Path(unfinished.name).unlink(missing_ok=True)
            raise
    return len(listed)


def _add(archive: zipfile.ZipFile, directory: Path, path: Path) -> None:
    entry = zipfile.ZipInfo(path.as_posix(), EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    with regular.open_read(directory / path) as source, archive.open(entry, "w", force_zip64=True) as target:
        while block := source.read(1 << 20):
            target.write(block)


def check(crate: Path) -> Checked:
    """Checks the hash of each file of a crate, and judges its runs again; the verdicts must equal those in
    the crate. CrateError if the file is no crate.
    """
    with tempfile.TemporaryDirectory(prefix="vnet-crate-") as place:
        directory = Path(place)
        _unpack(crate, directory)
        try:
            graph = regular.read_json(directory / NAME)["@graph"]
            known = {one["@id"]: one for one in graph}
            listed = {str(key): str(one["sha256"]) for key, one in known.items() if one["@type"] == "File"}
            stated = [
                (one["propertyID"], one["name"], one["value"]) for one in known["./"]["variableMeasured"]
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CrateError(
                f"{crate}: {NAME}: is not one of vNET's ({error!r}); `vnet crate` makes one"
            ) from error
        differing = list(_files(directory, listed))
        if not differing:  # otherwise the verdicts would belong to other measurements
            differing = list(_verdicts(study_of(directory), stated))
    return Checked(len(listed), len(stated), tuple(differing))


def _unpack(crate: Path, directory: Path) -> None:
    try:
        with zipfile.ZipFile(crate) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > max(LEAST_BOUND, MOST_TIMES * crate.stat().st_size) or len(entries) > MOST_FILES:
                rule = f"has {len(entries):,} files of {size:,} bytes, packed into {crate.stat().st_size:,}"
                raise CrateError(f"{crate}: {rule}; do not trust it")
            for entry in entries:
                target = (directory / entry.filename).resolve()
                if not target.is_relative_to(directory.resolve()):
                    raise CrateError(f"{crate}: {entry.filename}: leads out of the crate; do not trust it")
            archive.extractall(directory)
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise CrateError(f"{crate}: cannot be read ({error}); name a file that `vnet crate` made") from error


def _files(directory: Path, listed: dict[str, str]) -> Iterator[str]:
    there = {path.as_posix() for path in files(directory)} - {NAME}
    yield from (f"{name}: is missing" for name in sorted(listed.keys() - there))
    yield from (f"{name}: is not listed in {NAME}" for name in sorted(there - listed.keys()))
    for name in sorted(listed.keys() & there):
        if sha256(directory / name) != listed[name]:
            yield f"{name}: was changed: its hash is not the one in {NAME}"


def _verdicts(study: Study, stated: list[tuple[str, str, str]]) -> Iterator[str]:
    now: dict[tuple[str, str], str] = {(one.of, one.name): one.verdict for one in verdicts(study)}
    then: dict[tuple[str, str], str] = {(of, name): word for of, name, word in stated}
    for key in dict.fromkeys((*then, *now)):
        before, after = then.get(key, "not there"), now.get(key, "not there")
        if before != after:
            yield f"{' '.join(key)}: {before} in the crate, {after} by this vNET"
