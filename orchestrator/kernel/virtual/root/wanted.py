"""What a plan's programs are: every file and command that it names, each with the topology's key for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from orchestrator.model import Node, Plan, Process

# Shells and interpreters whose argument after -c is a script of theirs.
SHELLS = ("sh", "bash", "dash")
_TOKEN = re.compile(r"&&|\|\||[;|&\n(){}`]|[^\s;|&(){}<>\"'`$=,]+")
_SEPARATORS = frozenset(["&&", "||", ";", "|", "&", "\n", "(", "{", "`"])
# After these words comes another command; options and numbers between are passed over.
_PREFIXES = (
    "exec time nohup timeout env nice ionice taskset xargs command eval stdbuf setsid chrt strace ! "
    "if then else elif fi while until do done esac"
)
_BEFORE = frozenset(_PREFIXES.split())
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"(?:^|(?<=[\s;|&(]))[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s;|&($`]*)", re.MULTILINE)
_PATH = re.compile(r"/[^\s'\"`;|&<>()$=:,\\]+")
_IMPORT = re.compile(r"^\s*(?:import\s+([\w., \t]+)|from\s+(\w[\w.]*)\s+import\b)", re.MULTILINE)
_LIBRARY = re.compile(r"\blib[\w+.-]+\.so(?:\.\d+)+")
_COMMAND = re.compile(r"[A-Za-z_][\w.+-]*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """`name`: of a package, file, command, module or library. `key`: the topology's, or whose it is.

    `must`: whether the lab is refused where nothing on this machine brings it.
    """

    name: str
    kind: Literal["package", "path", "command", "module", "library"]
    key: str
    must: bool = False


def of_plan(plan: Plan) -> list[Wanted]:
    """Everything that the nodes of a plan name, in the plan's order, each once."""
    found: dict[tuple[str, str], Wanted] = {}
    for node in plan.nodes:
        if not node.image:  # its programs are its image's
            for one in _of_node(node):
                found.setdefault((one.kind, one.name), one)
    for number, event in enumerate(plan.events):
        if event.action == "run":
            for one in _of_argv(event.args["argv"], f"events.{number}.run"):
                found.setdefault((one.kind, one.name), one)
    return list(found.values())


def _of_node(node: Node) -> Iterator[Wanted]:
    from orchestrator.software.registry import KINDS  # the doctor, which has no pydantic, loads this module

    place = f"nodes.{node.name}"
    for mode, paths in (("read", node.mounts_read), ("write", node.mounts_write)):
        for path in paths:
            yield Wanted(path, "path", f"{place}.mounts.{mode}", must=True)
    for software in node.software:
        at = f"{place}.software.{software.name}"
        for program in KINDS[software.kind].programs:
            yield Wanted(program.package, "package", at)
        if software.process is not None:
            yield from _of_process(software.process, at)


def _of_process(process: Process, at: str) -> Iterator[Wanted]:
    yield from _of_argv(process.argv, f"{at}.command")
    if process.ready.command:
        yield from _of_argv(process.ready.command, f"{at}.ready.command")
    for text in process.env.values():
        yield from _paths(text, f"{at}.env")
    for one in process.files:
        yield from of_script(one.path, one.content, f"{at}.files")


def _of_argv(argv: tuple[str, ...] | list[str], key: str) -> Iterator[Wanted]:
    program = argv[0]
    if program.startswith("/"):
        yield Wanted(program, "path", key, must=True)
    elif "/" not in program:
        yield Wanted(program, "command", key, must=True)
    name = program.rpartition("/")[2]
    script = _after(argv, "-c")
    if name in SHELLS and script is not None:
        yield from commands(script, key)
    if name.startswith("python"):
        module = _after(argv, "-m")
        if script is not None:
            yield from modules(script, key)
        if module is not None:
            yield Wanted(module.partition(".")[0], "module", key)
    for word in argv[1:]:
        yield from _paths(word, key)


def of_script(name: str, text: str, key: str) -> Iterator[Wanted]:
    """What a script calls: a shell's commands, Python's modules."""
    first = text.partition("\n")[0]
    interpreter = first[2:].split() if first.startswith("#!") else []
    if interpreter:
        yield Wanted(interpreter[0], "path", key, must=True)
        if interpreter[0].endswith("/env") and len(interpreter) > 1:
            yield Wanted(interpreter[-1], "command", key, must=True)
    said = interpreter[-1].rpartition("/")[2] if interpreter else ""
    if name.endswith(".py") or said.startswith("python"):
        yield from modules(text, key)
    elif name.endswith(".sh") or said in SHELLS:
        yield from commands(text, key)
        yield from _paths(text, key)


def commands(text: str, key: str) -> Iterator[Wanted]:
    """The words of a shell's script that stand where a command does."""
    wanted = True
    for word in _TOKEN.findall(_ASSIGNMENT.sub(" ", _COMMENT.sub("", text))):
        if word in _SEPARATORS:
            wanted = True
        elif not wanted or word in _BEFORE:
            continue
        elif _COMMAND.fullmatch(word):
            yield Wanted(word, "command", key)
            wanted = word in SHELLS
        elif not (word.startswith("-") or word[0].isdigit()):
            wanted = False


def modules(text: str, key: str) -> Iterator[Wanted]:
    """The modules of Python that a script imports, by their first names, and the libraries that it names."""
    for several, one in _IMPORT.findall(text):
        for name in (several or one).split(","):
            yield Wanted(name.split()[0].partition(".")[0], "module", key)
    for name in _LIBRARY.findall(text):  # ctypes.CDLL("libzmq.so.5")
        yield Wanted(name, "library", key)


def _paths(text: str, key: str) -> Iterator[Wanted]:
    for path in _PATH.findall(text):
        yield Wanted(path.rstrip("/") or "/", "path", key)


def _after(argv: tuple[str, ...] | list[str], option: str) -> str | None:
    """The argument after an option of an interpreter; None where it has none (clusters such as -uc count)."""
    for at, word in enumerate(argv[1:-1], start=1):
        if not word.startswith("-"):
            return None
        if word == option or (not word.startswith("--") and word.endswith(option[1])):
            return argv[at + 1]
    return None
