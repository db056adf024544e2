"""A file that one other imports, and that is short, is a piece of it: no new one appears.

Not counted: the module of a kind that a table names (one file, one line), and one that is imported only where
it is needed, so that a command need not load it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHORT = 40
TABLES = ("registry", "checks", "checks.__init__")  # the last part of their names
# Those that are left; the list may only become shorter.
LEFT = {
    "orchestrator.images.tiny",
    "orchestrator.lab.stacks",
}


def modules() -> dict[str, Path]:
    """Every module of the product, by its name."""
    tops = ("orchestrator", "capture", "reports", "vnet", "contract")
    files = [file for top in tops for file in (ROOT / top).rglob("*.py")]
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return {name.removesuffix(".__init__"): file for name, file in zip(names, files, strict=True)}


def imports(name: str, file: Path, known: dict[str, Path]) -> Iterator[tuple[str, bool]]:
    """The modules that a file imports, each with whether that is when it is loaded itself."""
    package = (name if file.name == "__init__.py" else name.rpartition(".")[0]).split(".")
    for node, late in statements(ast.parse(file.read_text()).body):
        if isinstance(node, ast.Import):
            yield from ((alias.name, not late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = (f"{base}.{alias.name}" for alias in node.names)
            yield from ((one if one in known else base, not late) for one in inner)


def statements(body: list[ast.stmt], late: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Every statement, and whether it is inside a function."""
    for node in body:
        yield node, late
        inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for field in ("body", "orelse", "finalbody", "handlers"):
            for inner in getattr(node, field, []):
                yield from statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner], inside)


def pieces() -> set[str]:
    """The short modules that one module imports when it is loaded."""
    known, importers = modules(), defaultdict[str, dict[str, bool]](dict)
    for name, file in known.items():
        for wanted, at_once in imports(name, file, known):
            importers[wanted][name] = at_once or importers[wanted].get(name, False)
    return {
        name
        for name, file in known.items()
        if file.name != "__init__.py" and len(file.read_text().splitlines()) < SHORT
        for by in [importers[name]]
        if len(by) == 1 and all(by.values()) and not next(iter(by)).endswith(TABLES)
    }


def test_no_new_piece_is_a_file_of_its_own() -> None:
    found = pieces()
    assert not found - LEFT, f"{sorted(found - LEFT)}: write each into the one file that imports it"
    assert not LEFT - found, f"{sorted(LEFT - found)}: are none any more; take them off the list"
