"""Imports the nested shells of a Mahimahi command, alone in a file or in a script, as one link with their
impairments between two nodes. The uplink goes from the inner end, `client`, to the outer one, `server`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from .files import utf8
from .network import Machine, Network, Origin, Wire, name_of
from .shell.parsing import ShellError
from .shell.script import Shell
from .shell.values import Answer, known

TOOL = "Mahimahi"
CLIENT, SERVER = "client", "server"
SHELLS = ("mm-delay", "mm-loss", "mm-link", "mm-onoff", "mm-meter", "mm-webrecord", "mm-webreplay")
SIDES = {"uplink": "forward", "downlink": "reverse"}
_NUMBER = re.compile(r"\d+(\.\d+)?")
_PACKETS = re.compile(r"packets=(\d+)")


def read(path: Path) -> Network:
    """Returns the network of the first command with Mahimahi shells in the file. Raises TopologyError with
    the line of a part that cannot be imported, or if there is no such command.
    """
    return _Reader(path).network()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._commands: list[tuple[int, list[str]]] = []
        self._sides: dict[str, dict[str, Any]] = {"forward": {}, "reverse": {}}
        self._delay_ms = 0.0
        self._passed = {"forward": 1.0, "reverse": 1.0}  # shares of packets that pass the losses
        self._network = Network(name_of(path.stem, set()), f"{TOOL}, {path.name}", source=str(path))

    def network(self) -> Network:
        self._run()
        if not self._commands:
            raise self._refused(
                0, "has no command with a shell of Mahimahi", "name a script with mm-delay or mm-link"
            )
        line, words = self._commands[0]
        for more, _ in self._commands[1:]:
            self._leave(more, "another command with shells: the first is taken")
        if not all(map(known, words)):
            raise self._refused(
                line, "has a word that is not known here", "write the number or the file's name itself"
            )
        self._shells(line, words)
        self._join(line)
        return self._network

    def _run(self) -> None:
        def act(words: Sequence[str], line: int, _stdin: str) -> Answer | None:
            if words[0].rpartition("/")[2] in SHELLS:
                self._commands.append((line, list(words)))
                return Answer()
            self._leave(line, f"`{shlex.join(words)[:80]}` is not run")
            return None

        shell = Shell(act, lambda line, words: self._leave(line, f"`{' '.join(words)[:80]}` may run or not"))
        try:
            shell.run(utf8(self._path))
        except ShellError as error:
            raise self._refused(error.line, error.rule, "name a script, or a file with the command") from None

    def _refused(self, line: int, rule: str, remedy: str, value: str = "") -> TopologyError:
        return TopologyError([Problem(str(self._path), line, "", value, rule, remedy)])

    def _leave(self, line: int, said: str) -> None:
        self._network.left.append(f"line {line}: {said}")

    def _shells(self, line: int, words: list[str]) -> None:
        """Applies mm-delay, mm-loss, mm-link and mm-meter, from the outermost; refuses other shells. The
        first word that is no shell begins the inner program, which is reported as left out.
        """
        waiting = list(words)
        while waiting and waiting[0].rpartition("/")[2] in SHELLS:
            name = waiting.pop(0).rpartition("/")[2]
            if name == "mm-delay":
                self._delay_ms += self._number(line, name, waiting)
            elif name == "mm-loss":
                self._loss(line, waiting)
            elif name == "mm-link":
                waiting = self._link(line, waiting)
            elif name == "mm-meter":
                waiting = [one for one in waiting if not one.startswith("--meter")]
                self._leave(line, "mm-meter: a report has every link's rates")
            else:
                rule = f"{name} cannot be taken over"
                raise self._refused(
                    line, rule, "shells that can be: mm-delay, mm-loss, mm-link", " ".join(words)[:60]
                )
        if any(re.search(rf"\b{name}\b", word) for word in waiting for name in SHELLS):
            rule, remedy = "has shells within its program", "write them in front of the program"
            raise self._refused(line, rule, remedy, shlex.join(waiting)[:60])
        if waiting:
            self._leave(line, f"`{shlex.join(waiting)[:80]}` is not run: give {CLIENT} its software")

    def _number(self, line: int, name: str, waiting: list[str]) -> float:
        text = waiting.pop(0) if waiting else ""
        if not _NUMBER.fullmatch(text):
            raise self._refused(line, f"{name} has no number", f"write for example {name} 20", text)
        return float(text)

    def _loss(self, line: int, waiting: list[str]) -> None:
        side = SIDES.get(waiting.pop(0) if waiting else "")
        share = self._number(line, "mm-loss uplink", waiting)
        if side is None or share > 1:
            raise self._refused(
                line, "mm-loss has no direction, or more than all", "write mm-loss uplink 0.1"
            )
        self._passed[side] *= 1 - share

    def _link(self, line: int, waiting: list[str]) -> list[str]:
        """Applies the two traces of mm-link, and the options before or after them, and reports options
        without a counterpart; returns the remaining words. Refuses another number of traces, and a second
        mm-link.
        """
        traces: list[str] = []
        repeat, rest = True, list(waiting)
        while rest and (rest[0].startswith("--") or len(traces) < 2):
            word = rest.pop(0)
            if word == "--":
                break
            if not word.startswith("--"):
                traces.append(word)
            elif word == "--once":
                repeat = False
            elif (found := re.fullmatch(r"--(uplink|downlink)-queue(-args)?=(.*)", word)) is not None:
                self._queue(line, SIDES[found[1]], bool(found[2]), found[3])
            else:
                self._leave(line, f"{word}: no counterpart")
        if len(traces) != 2 or any("trace" in side for side in self._sides.values()):
            raise self._refused(
                line, "has not one mm-link with two traces", "write mm-link UPLINK DOWNLINK once"
            )
        for side, trace in zip(self._sides.values(), traces, strict=True):
            side["trace"] = {"file": str((self._path.parent / trace).absolute()), "repeat": repeat}
        return rest

    def _queue(self, line: int, side: str, arguments: bool, text: str) -> None:
        if not arguments and text not in ("infinite", "droptail"):
            self._leave(line, f"the queue {text}: a queue that drops its last packet stands for it")
        elif arguments and (found := _PACKETS.fullmatch(text.strip("\"' "))) is not None:
            self._sides[side]["limit"] = int(found[1])
        elif arguments:
            self._leave(line, f"the queue's {text}: no counterpart")

    def _join(self, line: int) -> None:
        for side, quantities in self._sides.items():
            if self._delay_ms:
                quantities["delay"] = f"{self._delay_ms:g} ms"
            if self._passed[side] < 1:
                quantities["loss"] = f"{100 * (1 - self._passed[side]):.10g} %"
        forward, reverse = self._sides["forward"], self._sides["reverse"]
        sides = {"both": forward} if forward == reverse else {k: v for k, v in self._sides.items() if v}
        origin = Origin(str(self._path), line)
        for name in (CLIENT, SERVER):
            self._network.machines[name] = Machine(name, origin=origin)
        ends = ((CLIENT, "eth0"), (SERVER, "eth0"))
        self._network.wires.append(Wire(ends, impairments=sides if forward or reverse else {}, origin=origin))
        self._network.changed.append("the shells' links in a row are one link here, from client to server")
