"""Lists every package, file, command and module that a plan's programs name, each with the topology's key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from contract.plan import Node, Plan, Process

TIMELINE = "timeline"
# Shells and interpreters whose argument after -c is a script.
SHELLS = ("sh", "bash", "dash")
_TOKEN = re.compile(r"&&|\|\||[;|&\n(){}`]|[^\s;|&(){}<>\"'`$=,]+")
_SEPARATORS = frozenset(["&&", "||", ";", "|", "&", "\n", "(", "{", "`"])
# Commands that start another command, which follows them; options and numbers in between are skipped.
_PREFIXES = (
    "exec time nohup timeout env nice ionice taskset xargs command eval stdbuf setsid chrt strace ! "
    "if then else elif fi while until do done esac"
)
_BEFORE = frozenset(_PREFIXES.split())
# Those of these commands that start the next word if they have no options.
_STARTS = frozenset(["exec", "env", "nohup", "setsid", "time", "timeout"])
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"(?:^|(?<=[\s;|&(]))[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s;|&($`]*)", re.MULTILINE)
_PATH = re.compile(r"/[^\s'\"`;|&<>()$=:,\\]+")
_IMPORT = re.compile(r"^\s*(?:import\s+([\w., \t]+)|from\s+(\w[\w.]*)\s+import\b)", re.MULTILINE)
_LIBRARY = re.compile(r"\blib[\w+.-]+\.so(?:\.\d+)+")
_COMMAND = re.compile(r"[A-Za-z_][\w.+-]*")
_PLAIN = re.compile(r"[\w./+:=-]+")  # a word that a shell leaves unchanged
_FUNCTION = re.compile(r"([\w.+-]+)\s*\(\s*\)")
# Built-in commands of a shell (dash(1), bash(1)), which need no file of that name.
_OWN_WORDS = (
    ". : [ [[ alias bg break builtin case cd chdir continue declare echo eval exit export false fc fg for "
    "function getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read "
    "readarray readonly return select set shift shopt source suspend test times trap true type typeset "
    "ulimit umask unalias unset wait"
)
OWN_WORDS = frozenset(_OWN_WORDS.split())


Kind = Literal["package", "path", "program", "file", "command", "module", "library", "libraries"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that a plan needs in its closed root.

    name: of a package, file, command, module or library. kind: a `program` is a path that is executed, a
    `file` one that must exist, `libraries` a directory of libraries. key: the topology key that names it, or
    a word for the lab's own. must: True if the lab is refused when this machine lacks it. remedy: the command
    that installs it, "" if unknown.
    """

    name: str
    kind: Kind
    key: str
    must: bool = False
    remedy: str = ""

    @property
    def shown(self) -> bool:
        """True for a path that is needed with its whole content: one of a node's `mounts`, or the directory
        of a program that belongs to no package.
        """
        return self.kind == "path" and self.must


def of_plan(plan: Plan) -> list[Wanted]:
    """Returns everything that the nodes and `run` events of a plan name, in the plan's order, each once.
    Skips programs of container images.
    """
    found: dict[tuple[str, str], Wanted] = {}
    groups = Counter(node.group for node in plan.nodes)
    for node in plan.nodes:
        if not node.image:  # a node with an image runs the programs of the image
            alone = groups[node.group] == 1 and node.group == node.name
            for one in _of_node(node, f"{'nodes' if alone else 'groups'}.{node.group}"):
                found.setdefault((one.kind, one.name), one)
    for event in plan.events:
        if event.action == "run":
            for one in _of_argv(event.args["argv"], f"{TIMELINE}.{event.label}"):
                found.setdefault((one.kind, one.name), one)
    return list(found.values())


def _of_node(node: Node, place: str) -> Iterator[Wanted]:
    # The import is here, because the doctor, which lacks pydantic, loads this module.
    from orchestrator.software.registry import KINDS

    for mode, paths in (("read", node.mounts_read), ("write", node.mounts_write)):
        for path in paths:
            yield Wanted(path, "path", f"{place}.mounts.{mode}", must=True)
    for software in node.software:
        at = f"{place}.software.{software.name}"
        for program in KINDS[software.kind].programs:
            if program.package:
                yield Wanted(program.package, "package", at)
            kind: Kind = "file" if program.name.startswith("/") else "command"
            kind = "library" if _LIBRARY.fullmatch(program.name) else kind
            yield Wanted(program.name, kind, at, must=True, remedy=program.install)
            if program.directory:
                yield Wanted(program.directory, "path", at, must=True)
        if software.process is not None:
            yield from _of_process(software.process, at, own=software.kind == "command")


def _of_process(process: Process, at: str, own: bool) -> Iterator[Wanted]:
    """Yields the needs of a process: libraries, commands, paths, and the programs that its files call.

    own: True if the topology file itself names the command, and so has a key for each of its parts.
    """
    key = {name: f"{at}.{name}" if own else at for name in ("command", "ready", "env", "files")}
    for directory in process.env.get("LD_LIBRARY_PATH", "").split(":"):
        if directory.startswith("/"):
            yield Wanted(directory.rstrip("/"), "libraries", key["env"])
    made = {one.path for one in process.files}
    elsewhere = "PATH" in process.env  # the closed root does not search a PATH that the program sets itself
    for argv, place in ((process.argv, key["command"]), (process.ready.command or (), key["ready"])):
        for one in _of_argv(argv, place) if argv else ():
            given = one.name in made or (elsewhere and one.kind == "command")
            yield replace(one, must=one.must and not given)
    for text in process.env.values():
        yield from _paths(text, key["env"])
    for one_file in process.files:
        yield from of_script(one_file.path, one_file.content, key["files"])


def _of_argv(argv: tuple[str, ...] | list[str], key: str) -> Iterator[Wanted]:
    program = argv[0]
    if program.startswith("/"):
        yield Wanted(program, "program", key, must=True)
    elif "/" not in program:
        yield Wanted(program, "command", key, must=True)
    name = program.rpartition("/")[2]
    script = _after(argv, "-c")
    if name in SHELLS and script is not None:
        yield from commands(script, key, begins=True)
    if name in _STARTS:
        yield from commands(" ".join(takewhile(_PLAIN.fullmatch, argv)), key, begins=True)
    if name.startswith("python"):
        module = _after(argv, "-m")
        if script is not None:
            yield from modules(script, key)
        if module is not None:
            yield Wanted(module.partition(".")[0], "module", key)
    for word in argv[1:]:
        yield from _paths(word, key)


def of_script(name: str, text: str, key: str) -> Iterator[Wanted]:
    """Yields a script's interpreter, and the commands that a shell script calls or the modules that a Python
    script imports.
    """
    first = text.partition("\n")[0]
    words = tuple(first[2:].split()) if first.startswith("#!") else ()
    said = ""
    if words:
        program, bare = interpreter_of(words)
        said = bare or program.rpartition("/")[2]
        yield Wanted(program, "program", key, must=True)
        if bare:
            yield Wanted(bare, "command", key, must=True)
    if name.endswith(".py") or said.startswith("python"):
        yield from modules(text, key)
    elif name.endswith(".sh") or said in SHELLS:
        yield from commands(text, key)
        yield from _paths(text, key)


def interpreter_of(words: tuple[str, ...]) -> tuple[str, str]:
    """Returns the program after `#!`, and the command that it starts if it is `env` (else "")."""
    if not words[0].endswith("/env"):
        return words[0], ""
    return words[0], next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")


def commands(text: str, key: str, begins: bool = False) -> Iterator[Wanted]:
    """Yields the words of a shell script that stand in the place of a command, except its own functions and
    the shell's built-in commands.

    begins: True if the script's first command must exist, including one after `env`, `timeout 5` and the
    like.
    """
    own = OWN_WORDS.union(_FUNCTION.findall(text))
    wanted, first = True, begins
    for word in _TOKEN.findall(_ASSIGNMENT.sub(" ", _COMMENT.sub("", text))):
        if word in _SEPARATORS:
            wanted = True
        elif not wanted or word in _BEFORE:
            first = first and word in _STARTS
            continue
        elif _COMMAND.fullmatch(word):
            if word not in own:
                yield Wanted(word, "command", key, must=first)
            wanted = word in SHELLS
        elif word.startswith("/"):
            yield Wanted(word, "program", key, must=first)
            wanted = False
        elif word[0].isdigit():  # the argument is a duration
            continue
        elif not word.startswith("-"):
            wanted = False
        first = False


def modules(text: str, key: str) -> Iterator[Wanted]:
    """Yields the modules that a Python script imports, by their first names, and the shared libraries that it
    names.
    """
    for several, one in _IMPORT.findall(text):
        for name in (several or one).split(","):
            yield Wanted(name.split()[0].partition(".")[0], "module", key)
    for name in _LIBRARY.findall(text):  # such as ctypes.CDLL("libzmq.so.5")
        yield Wanted(name, "library", key)


def _paths(text: str, key: str) -> Iterator[Wanted]:
    for path in _PATH.findall(text):
        yield Wanted(path.rstrip("/") or "/", "path", key)


def _after(argv: tuple[str, ...] | list[str], option: str) -> str | None:
    """Returns the argument after an option of an interpreter, also at the end of a cluster such as -uc; None
    without that option.
    """
    for at, word in enumerate(argv[1:-1], start=1):
        if not word.startswith("-"):
            return None
        if word == option or (not word.startswith("--") and word.endswith(option[1])):
            return argv[at + 1]
    return None
