"""Tests that no module imports itself through others: Python modules by any import, files of the agent by
`use`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import networkx as nx
from test_small_files import ROOT, imports, modules

AGENT = ROOT / "images" / "agent" / "src"
PATH = re.compile(r"\b((?:crate|super|self)(?:::\w+)+)(?:::\{(.*?)\}\s*;)?", re.DOTALL)
FIRST = re.compile(r"(?:^|,)\s*(\w+)")
File = tuple[str, ...]


def circles(edges: Iterator[tuple[object, object]]) -> list[list[object]]:
    graph = nx.DiGraph((one, other) for one, other in edges if one != other)
    return [sorted(found, key=str) for found in nx.strongly_connected_components(graph) if len(found) > 1]


def python() -> Iterator[tuple[object, object]]:
    known = modules()
    for name, file in known.items():
        yield from ((name, wanted) for wanted in imports(name, file, known) if wanted in known)


def rust(files: dict[File, str]) -> Iterator[tuple[object, object]]:
    """Returns pairs of a file and another one that it names; files above or below it are left out, since a
    file and its parts are one thing.
    """
    for file, text in files.items():
        code = re.sub(r"//.*", "", text).split("#[cfg(test)]")[0]
        for path, inner in PATH.findall(code):
            for end in FIRST.findall(inner) if inner else [""]:
                wanted = named(file, [*path.split("::"), end], files)
                if wanted[: len(file)] != file and file[: len(wanted)] != wanted:
                    yield file, wanted


def named(file: File, words: list[str], files: dict[File, str]) -> File:
    """Returns the file of a path: the longest beginning that is the path of a file."""
    base = () if words[0] == "crate" else file
    while words and words[0] in ("crate", "self", "super"):
        base = base[:-1] if words.pop(0) == "super" else base
    whole = (*base, *words)
    return next((whole[:n] for n in range(len(whole), 0, -1) if whole[:n] in files), ())


def agent() -> dict[File, str]:
    """Returns the text of each file of the agent by the path of its module, without tests."""
    found = {file.relative_to(AGENT).with_suffix("").parts: file.read_text() for file in AGENT.rglob("*.rs")}
    names = {parts: parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts for parts in found}
    return {names[parts]: text for parts, text in found.items() if "tests" not in parts and names[parts]}


def test_no_python_module_imports_itself() -> None:
    assert circles(python()) == []


def test_no_file_of_the_agent_uses_itself() -> None:
    assert circles(rust(agent())) == []


def test_a_circle_of_rust_files_is_found() -> None:
    files = {("a",): "use crate::b::{One, Two};", ("b",): "fn f() { super::a::g() }"}
    assert circles(rust(files)) == [[("a",), ("b",)]]
