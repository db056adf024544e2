"""Tests that no short file has only one importer; such a file is a part of the importer."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHORT = 40


def modules() -> dict[str, Path]:
    """Returns every module of the product by its name."""
    tops = ("orchestrator", "capture", "reports", "vnet", "contract", "bench")
    files = [file for top in tops for file in (ROOT / top).rglob("*.py")]
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return {name.removesuffix(".__init__"): file for name, file in zip(names, files, strict=True)}


def imports(name: str, file: Path, known: dict[str, Path]) -> Iterator[str]:
    """Returns the modules that a file imports, at any place."""
    package = (name if file.name == "__init__.py" else name.rpartition(".")[0]).split(".")
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = (f"{base}.{alias.name}" for alias in node.names)
            yield from (one if one in known else base for one in inner)


def pieces() -> set[str]:
    """Returns the short modules that only one module imports."""
    known, importers = modules(), defaultdict[str, set[str]](set)
    for name, file in known.items():
        for wanted in imports(name, file, known):
            importers[wanted].add(name)
    return {
        name
        for name, file in known.items()
        if file.name != "__init__.py" and len(file.read_text().splitlines()) < SHORT
        if len(importers[name]) == 1
    }


def test_no_piece_is_a_file_of_its_own() -> None:
    found = pieces()
    assert not found, f"{sorted(found)}: write each into the one file that imports it"
