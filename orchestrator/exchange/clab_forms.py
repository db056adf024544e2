"""Parses forms of containerlab's files that are no plain YAML: variables of the environment, variables of
containerlab, and commands of stages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .files import script

# Keys of a node in which containerlab replaces its own variables (core/config.go).
MAGIC = frozenset(("startup-config", "binds", "exec", "stages"))
STAGES = ("create", "create-links", "configure", "healthy", "exit")  # stages of a node's life, in their order
DEEPEST = 20  # largest depth of defaults inside defaults
# `$$`, or a variable with an operator and a word that has no variable within itself.
_WORD = re.compile(r"\$\$|\$\{(\w+)(:?[-=+])((?:[^${}\n]|\$(?![{$]))*)\}")
_ESCAPED = "\0"  # stands for `$$` until all variables are replaced


def with_defaults(content: bytes) -> tuple[bytes, list[str]]:
    """Returns the file with variables of the environment replaced, and one report line for each variable and
    value: `${NAME:-TEXT}` and `${NAME:=TEXT}` by TEXT, `${NAME:+TEXT}` by nothing, `$$` by `$`. Other
    variables stay, as in containerlab for those that are not set; the environment of this process does not
    count. Returns content that is not UTF-8, or that has a NUL, unchanged.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content, []
    if _ESCAPED in text:
        return content, []
    said: dict[str, None] = {}

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return _ESCAPED
        word = "" if found[2].endswith("+") else found[3]
        said[f'${{{found[1]}}} of the environment is its default "{word}" here'] = None
        return word

    for _ in range(DEEPEST):
        text, count = _WORD.subn(value, text)
        if not count:
            break
    return text.replace(_ESCAPED, "$").encode(), sorted(said)


class Bound(dict[str, str]):
    """The texts of the scripts (*.sh) that a node's `binds` mount into it, by their path in the node.
    Keeps which of them are read.
    """

    def __init__(self, directory: Path, binds: Sequence[str]) -> None:
        super().__init__()
        self._binds, self._read, self._absent = binds, set[str](), set[str]()
        for bind in binds:
            outside, to = _ends(bind)
            file = directory / outside
            if file.suffix == ".sh" and file.is_file():
                self[to] = script(file)
            elif not file.exists():
                self._absent.add(bind)

    def __getitem__(self, place: str) -> str:
        self._read.add(place)
        return super().__getitem__(place)

    def get(self, place: str, default: Any = None) -> Any:
        """Returns the text of a file in the node, or the default."""
        self._read.add(place)
        return super().get(place, default)

    def unused(self) -> list[str]:
        """Returns a report line for each bind that no command of the node has read."""
        return [
            f"{bind:.100}: {'not there' if bind in self._absent else 'no command reads it here'}"
            for bind in self._binds
            if _ends(bind)[1] not in self._read or bind in self._absent
        ]


def _ends(bind: str) -> tuple[str, str]:
    """Returns the path outside of the node, and the one inside, of `OUTSIDE:INSIDE[:MODE]`."""
    outside, _, to = bind.partition(":")
    return outside, to.partition(":")[0]


def magic(value: Any, lab: str, node: str) -> Any:
    """Returns a value of a node with containerlab's variables of the lab and the node replaced, in all texts
    of lists and mappings.
    """
    if isinstance(value, list):
        return [magic(one, lab, node) for one in value]
    if isinstance(value, dict):
        return {key: magic(one, lab, node) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    folder = f"clab-{lab}"
    for name, text in (
        ("NodeName", node), ("NodeDir", f"{folder}/{node}"), ("LabName", folder), ("Dir", folder),
    ):  # fmt: skip
        value = value.replace(f"__clab{name}__", text)
    return value


def _runs(listed: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Returns the commands of a stage's `exec` as mappings, from a list of mappings or from lists under their
    phases; and the parts that are neither.
    """
    if isinstance(listed, dict):
        phases = [
            (key, one) for key, some in listed.items() for one in (some if isinstance(some, list) else [some])
        ]
        return [{"command": one, "phase": phase} for phase, one in phases], []
    some = listed if isinstance(listed, list) else [] if listed is None else [listed]
    return [one for one in some if isinstance(one, dict)], [one for one in some if not isinstance(one, dict)]


def of_stages(stages: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns (stage, command) for the commands that a node's stages run in its container, in the order of
    the stages, those of entering a stage first; and a report line on everything else of the stages.
    """
    commands: list[tuple[str, str]] = []
    said: list[str] = []
    given = stages if isinstance(stages, dict) else {}
    if stages is not None and not isinstance(stages, dict):
        said.append("no mapping")
    for stage in [*STAGES, *(name for name in given if name not in STAGES)]:
        keys = given.get(stage)
        own = keys if isinstance(keys, dict) else {}
        if keys is not None and (not isinstance(keys, dict) or stage not in STAGES):
            said.append(f"{stage}: no counterpart")
        said += [f"{stage}.{key}: no counterpart" for key in own if key != "exec"]
        runs, wrong = _runs(own.get("exec"))
        said += [f"{stage}.exec: no command ({one!s:.60})" for one in wrong]
        for phase in ("on-enter", "on-exit"):
            for run in runs:
                if run.get("phase", "on-enter") != phase:
                    continue
                command = run.get("command", "")
                if not isinstance(command, str):
                    said.append(f"{stage}: a command that is no text")
                    continue
                if run.get("target", "container") != "container" or stage not in STAGES or stage == "exit":
                    said.append(f"{stage}: `{command[:80]}` is not run")
                else:
                    commands.append((stage, command))
    return commands, said
