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
SHELLS = (
    "mm-delay", "mm-loss", "mm-link", "mm-onoff", "mm-intermittent", "mm-meter", "mm-webrecord",
    "mm-webreplay",
)  # fmt: skip
SIDES = {"uplink": "forward", "downlink": "reverse"}
# Options of mm-link (frontend/linkshell.cc), and whether they take a value.
OPTIONS = {
    "uplink-log": True, "downlink-log": True, "once": False, "meter-uplink": False, "meter-downlink": False,
    "meter-uplink-delay": False, "meter-downlink-delay": False, "meter-all": False, "uplink-queue": True,
    "downlink-queue": True, "uplink-queue-args": True, "downlink-queue-args": True,
}  # fmt: skip
SHORT = {"-u": "uplink-log", "-d": "downlink-log"}
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE]-?\d{1,2})?")
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
        self._passed = {"forward": 1.0, "reverse": 1.0}  # shares of packets that are not lost
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
        """Applies the two traces of mm-link and its options, which getopt takes from anywhere before `--`,
        also in shortened form; reports options without a counterpart. Returns the remaining words. Refuses an
        unknown option, another number of traces, and a second mm-link.
        """
        plain: list[str] = []
        repeat, rest = True, list(waiting)
        sized: set[str] = set()
        while rest:
            word = rest.pop(0)
            if word == "--":
                break
            if not word.startswith("-") or word == "-":
                plain.append(word)
                continue
            name, value = self._option(line, word, rest)
            side = SIDES.get(name.partition("-")[0], "")
            if name == "once":
                repeat = False
            elif "-queue" in name:
                sized |= {side} if name.endswith("-args") else set()
                self._queue(line, side, name.endswith("-args"), value)
            else:
                self._leave(line, f"{word}: no counterpart")
        if len(plain) < 2 or any("trace" in side for side in self._sides.values()):
            raise self._refused(
                line, "has not one mm-link with two traces", "write mm-link UPLINK DOWNLINK once"
            )
        for way, trace in zip(self._sides.values(), plain, strict=False):
            way["trace"] = {"file": str((self._path.parent / trace).absolute()), "repeat": repeat}
        for link in [link for link, side in SIDES.items() if side not in sized]:
            self._network.changed.append(
                f"line {line}: the queue of the {link} has no end there; here the link's own limit"
            )
        return [*plain[2:], *rest]

    def _option(self, line: int, word: str, rest: list[str]) -> tuple[str, str]:
        """Returns an option's whole name and its value, which is in the word or the next of `rest`, as
        getopt_long reads it. Refuses an option that mm-link has not, and one without its value.
        """
        given, sign, value = word[2:].partition("=")
        if not word.startswith("--"):
            given, value = SHORT.get(word[:2], "?"), word[2:]
            sign = value
        found = [given] if given in OPTIONS else [one for one in OPTIONS if one.startswith(given)]
        wrong = len(found) != 1 or (sign and not OPTIONS[found[0]])
        if wrong or (OPTIONS[found[0]] and not sign and not rest):
            remedy = "write -- before the program, or mend the option"
            raise self._refused(line, "is no option of mm-link", remedy, word[:60])
        if OPTIONS[found[0]] and not sign:
            value = rest.pop(0)
        return found[0], value

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
