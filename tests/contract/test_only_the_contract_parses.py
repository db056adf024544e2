"""Tests that files of a run directory are parsed only inside the contract; all other code uses its types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from contract import rundir, seal

ROOT = Path(__file__).parents[2]
PACKAGES = ("orchestrator", "capture", "reports", "vnet", "bench")
FILES = (rundir.PLAN, rundir.MANIFEST, rundir.PROOF, rundir.VERDICTS, seal.NAME, "events.jsonl")
CALLS = ("loads(", "from_json(", "read_json(")
NAMES = {"PLAN", "MANIFEST", "PROOF", "VERDICTS"}  # constants of contract.rundir
ALLOWED = {
    "vnet/run.py:manifest",  # the Python API gives users the manifest as the file has it
    "orchestrator/images/oci/archive.py:_docker",  # Docker's manifest.json
}


def parses(function: ast.AST) -> bool:
    """Returns whether the function itself parses JSON."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    names = {ast.unparse(call).rpartition(".")[2] for call in calls}
    return bool({f"{name}(" for name in names} & set(CALLS))


def named(function: ast.AST) -> bool:
    """Returns whether the function names a file of a run directory, outside its docstring."""
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.endswith(FILES) and " " not in node.value:
                return True
        elif isinstance(node, ast.Attribute) and node.attr in NAMES and ast.unparse(node.value) == "rundir":
            return True
    return False


def found(source: str) -> Iterator[str]:
    """Returns the functions that parse a file of a run directory, by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parses(node) and named(node):
            yield node.name


def test_nobody_else_parses_a_file_of_a_run_directory() -> None:
    offenders = {
        f"{file.relative_to(ROOT).as_posix()}:{name}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for text in [file.read_text()]
        if any(call in text for call in CALLS)
        for name in found(text)
    }
    assert offenders == ALLOWED, "read it by the contract's types: manifest.load, rundir.read_proof"


def test_the_test_finds_one() -> None:
    lines = ["def seed(run):", '    return json.loads((run / "manifest.json").read_text())["seed"]']
    assert list(found("\n".join(lines))) == ["seed"]
