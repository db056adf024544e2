"""Makes ro-crate-metadata.json of a run or campaign: its files with their hashes, and how each run was made.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1): JSON-LD with one entity for each thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import regular
from contract.verdict import Judged
from reports.study import Study
from reports.verdicts import by_cell, of_study

NAME = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.1"
# directories that a crate leaves out: pages, which `vnet report` makes again, and logs of programs
LEFT_OUT = ("report", "raw")
TYPES = {".json": "application/json", ".parquet": "application/vnd.apache.parquet", ".svg": "image/svg+xml"}
TYPES |= {".pcap": "application/vnd.tcpdump.pcap", ".yaml": "application/yaml", ".csv": "text/csv"}
BLOCK = 1 << 20
Entity = dict[str, Any]


@dataclass(frozen=True)
class Stated:
    """Facts that only the person who packs a crate can give."""

    license: str
    published: str  # date of publication, in ISO format


def files(root: Path) -> Iterator[Path]:
    """Returns the files of a run or campaign that a crate holds, relative to its directory, in order."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not path.is_symlink() and not set(LEFT_OUT) & set(relative.parts[:-1]):
            yield relative


def sha256(path: Path) -> str:
    """Returns the SHA-256 of the file's bytes."""
    whole = hashlib.sha256()
    with regular.open_read(path) as file:
        while block := file.read(BLOCK):
            whole.update(block)
    return whole.hexdigest()


def verdicts(study: Study) -> list[Judged]:
    """Returns all verdicts on each run and on the whole study, judged now from its tables."""
    found = []
    for name, of in by_cell(study).items():
        prefix = "" if study.single else f"{name}: "
        found += [Judged(one.of, f"{prefix}{one.name}", one.verdict) for one in of]
    return [*found, *(Judged(one.of, one.name, one.verdict) for one in of_study(study))]


def metadata(study: Study, stated: Stated) -> Entity:
    """Returns the content of ro-crate-metadata.json."""
    listed = [path for path in files(study.root) if str(path) != NAME]
    parts = [_file(study.root, path) for path in listed]
    runs = [_action(study, number) for number in range(len(study.cells))]
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": study.title,
        "description": study.description or study.title,
        "datePublished": stated.published,
        "license": stated.license,
        "hasPart": [{"@id": part["@id"]} for part in parts],
        "mentions": [{"@id": run["@id"]} for run in runs],
        "variableMeasured": [_verdict(one) for one in verdicts(study)],
    }
    descriptor: Entity = {
        "@id": NAME,
        "@type": "CreativeWork",
        "conformsTo": {"@id": PROFILE},
        "about": {"@id": "./"},
    }
    return {"@context": f"{PROFILE}/context", "@graph": [descriptor, root, *parts, *runs]}


def _file(root: Path, path: Path) -> Entity:
    return {
        "@id": path.as_posix(),
        "@type": "File",
        "contentSize": str((root / path).stat().st_size),
        "encodingFormat": TYPES.get(path.suffix, "application/octet-stream"),
        "sha256": sha256(root / path),
    }


def _action(study: Study, number: int) -> Entity:
    """Returns the entity of a run: its state, whether it is suspect, its seed and kernel, and the hashes of
    its programs and images.
    """
    cell = study.cells[number]
    made = cell.run.manifest
    inputs = made.inputs or made.versions
    said: dict[str, object] = {
        "state": made.state,
        "suspect": "yes" if made.suspect else "no",
        "seed": made.seed,
        "time": made.time,
        "kernel": dict(made.kernel).get("release"),
    }
    said |= {f"parameter {name}": value for name, value in made.parameters.items()}
    said |= {f"input {name}": value for name, value in inputs.items()}
    return {
        "@id": f"#run-{number + 1}",
        "@type": "CreateAction",
        "name": cell.name,
        "result": {"@id": f"{cell.run.path.relative_to(study.root).as_posix()}/".removeprefix("./")},
        "object": list(_values(said.items())),
    }


def _values(said: Iterable[tuple[str, object]]) -> Iterator[Entity]:
    for name, value in said:
        if value not in (None, ""):
            yield {"@type": "PropertyValue", "name": name, "value": str(value)}


def _verdict(one: Judged) -> Entity:
    return {"@type": "PropertyValue", "name": one.name, "propertyID": one.of, "value": one.verdict}
