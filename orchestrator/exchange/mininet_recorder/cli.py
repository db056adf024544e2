"""Follows Mininet's command line in a script: a person's commands are not known, those of a file are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .said import leave, pause, script_directory
from .waiting import all_passed, passed

# Commands that only test or show the network.
_SHOW = frozenset((
    "nodes", "net", "dump", "intfs", "links", "ports", "help", "status", "time", "noecho", "xterm", "x",
    "gterm",
))  # fmt: skip
_TESTS = frozenset((
    "pingall", "pingpair", "pingallfull", "pingpairfull", "iperf", "iperfudp", "wait",
))  # fmt: skip


class CLI:
    """Mininet's command line. Without a file nobody types, and it returns; scripts derive classes from it."""

    prompt = "mininet> "

    def __init__(
        self, mininet: Any = None, stdin: Any = None, script: Any = None, cmd: Any = None, **_keys: Any
    ) -> None:
        self.mn = mininet
        if script is not None:
            self._file(str(script))
        elif cmd is not None:
            self._line(str(cmd))
        elif stdin is not None:
            leave("what CLI reads from stdin is not done")
        pause()
        all_passed()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *words, **_keys: leave(f"CLI.{name}({', '.join(map(str, words)):.60}) is not done")

    def _file(self, name: str) -> None:
        place = Path(name) if Path(name).is_absolute() else script_directory() / name
        try:
            lines = place.read_text("utf-8", "replace").splitlines()
        except OSError:
            leave(f"the commands of {name:.80}, which cannot be read, are not done")
            return
        for line in lines:
            self._line(line.partition("#")[0].strip())

    def _line(self, text: str) -> None:
        """Follows one command: NODE COMMAND, `link A B up|down`, `source FILE`; reports others that act."""
        name, _, rest = text.partition(" ")
        words = rest.split()
        if name in ("", "exit", "quit", "EOF") or name in _SHOW:
            return
        if name == "link" and len(words) == 3:
            self.mn.configLinkStatus(*words)
        elif name == "source" and words:
            self._file(words[0])
        elif self.mn is not None and name in self.mn.nameToNode:
            self.mn.nameToNode[name].cmd(" ".join(self._address(one) for one in words))
        elif name in _TESTS:
            pause()
            leave(f"the command `{text:.60}` of Mininet's command line is not done")
        elif name == "sh" and words[:1] == ["sleep"] and words[1:] and words[1].isdigit():
            pause()
            passed(float(words[1]))
        else:
            leave(f"the command `{text:.60}` of Mininet's command line is not done")

    def _address(self, word: str) -> str:
        """Returns the address of a node for its name, as Mininet's command line does."""
        node = self.mn.nameToNode.get(word)
        return str(node.IP()) or word if node is not None and hasattr(node, "IP") else word
