"""Tests that code copied to another machine needs only Python, libvirt's binding and jinja2 there."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator.kernel.remote.stage import CODE
from orchestrator.language.kernels import LOCAL

ROOT = Path(__file__).parents[2]
STARTS = ("orchestrator.run.remote", "orchestrator.lab.__main__", "orchestrator.kernel.uml.owner")
STARTS += ("orchestrator.kernel.uml.guest",)
STARTS += tuple(kind.place.partition(":")[0] for kind in LOCAL)  # modules that are loaded by name
THERE = {"libvirt", "jinja2"}


def file_of(module: str) -> Path | None:
    """Returns the source file of a module of this project; None for other modules."""
    path = ROOT.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.exists():
            return candidate
    return None


def imports(module: str, file: Path) -> Iterator[str]:
    """Yields every module that a file may import, also in functions, except those only for the
    type checker.
    """
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for statement in statements(ast.parse(file.read_text())):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            name = "." * statement.level + (statement.module or "")
            base = importlib.util.resolve_name(name, package)
            inner = [f"{base}.{alias.name}" for alias in statement.names]
            yield base
            yield from (one for one in inner if file_of(one) is not None)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from statements(child)


def reached() -> dict[str, str]:
    """Returns every module that the programs of the other machine may load, with the module that
    imports it.
    """
    found = dict.fromkeys(STARTS, "")
    waiting = list(STARTS)
    while waiting:
        module = waiting.pop()
        if (file := file_of(module)) is None:
            continue
        for name in imports(module, file):
            if name not in found:
                found[name] = module
                waiting.append(name)
    return found


def test_nothing_else_is_asked_for() -> None:
    tops = {module.partition(".")[0] for module in reached()}
    foreign = tops - set(sys.stdlib_module_names) - {"orchestrator", "capture", "contract"} - THERE
    asked = {module: by for module, by in reached().items() if module.partition(".")[0] in foreign}
    assert not asked, f"{asked}: there is none of that on a machine that was made ready for labs"


def test_all_of_ours_is_carried() -> None:
    ours = [file_of(module) for module in reached()]
    files = [str(file.relative_to(ROOT)) for file in ours if file is not None]
    assert [f for f in files if not f.startswith(tuple(f"{top}/" for top in CODE))] == []
    assert "orchestrator/lab/vm/handover.py" in files and "orchestrator/plan/steps.py" in files
