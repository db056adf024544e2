"""Applies a machine's startup script to the model of the machine; reports commands without effect, with
their line.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .linux.commands import act, bare
from .network import Machine
from .shell.commands import HARMLESS
from .shell.parsing import ShellError
from .shell.script import Shell
from .shell.values import NOT_KNOWN, UNKNOWN, Answer, known

LONGEST = 100  # characters shown of a command
TAGGED_BRIDGE = "is a bridge with VLANs, which cannot be taken over"
RENAMED = "renames an interface, which cannot be taken over"
RENAMED_REMEDY = "keep the name that the link gives it"
BRIDGE_REMEDY = "write a network for each VLAN"
# Options of ethtool that only show, or that set offloads, on which the network does not depend.
_SHOWS = frozenset((
    "-k", "-K", "-i", "-S", "-g", "-c", "-a", "-l", "-T", "--offload", "--features", "--show-features",
    "--driver", "--statistics",
))  # fmt: skip


@dataclass
class Startup:
    """Applies commands to one machine and collects what is left out.

    `place` turns a line number into its name in reports. `own` is called first with each command, and returns
    True for those that it applied itself.
    """

    machine: Machine
    hostname: str
    place: Callable[[int], str]
    own: Callable[[Sequence[str], int], bool] = lambda _words, _line: False
    left: list[str] = field(default_factory=list)
    # line, value, rule and remedy of each problem
    problems: list[tuple[int, str, str, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    _shell: Shell | None = field(default=None, init=False, repr=False)

    def script(
        self, text: str, variables: Mapping[str, str] | None = None, name: str = "sh", plain: bool = False
    ) -> None:
        """Follows a shell script, with `name` as its $0, and applies its commands; a ShellError becomes one
        of `problems`. plain: the shell is no bash.
        """
        shell = Shell(self._act, self._doubt, {"HOSTNAME": self.hostname, **(variables or {})}, self.files)
        shell.assumed, shell.plain = self._assumed, plain
        try:
            self._shell = shell
            shell.run(text, [name])
        except ShellError as error:
            self.problems.append((error.line, "", error.rule, "simplify the script there, or leave it out"))

    def command(
        self, words: Sequence[str], line: int = 0, variables: Mapping[str, str] | None = None
    ) -> None:
        """Applies one command without a shell; follows the text of `sh -c`, or of a file in `files`, as a
        script. Reports and problems get `line`.
        """
        shell = bare(words[0]) in ("sh", "bash", "ash", "dash")
        place, self.place = self.place, lambda _line: place(line)
        if shell and len(words) > 2 and words[1].startswith("-") and words[1].endswith("c"):
            self._of_line(line, words[2], variables, plain=bare(words[0]) != "bash")
        elif (name := words[1] if shell and len(words) > 1 else words[0]) in self.files:
            self._of_line(line, self.files[name], variables)
        else:
            self._act(words, line, "")
        self.place = place

    def _of_line(
        self, line: int, text: str, variables: Mapping[str, str] | None, plain: bool = False
    ) -> None:
        """Follows a script in one line of the file; its problems get that line."""
        before = len(self.problems)
        self.script(text, variables, plain=plain)
        self.problems[before:] = [(line, *rest) for _, *rest in self.problems[before:]]  # type: ignore[misc]

    def _act(self, words: Sequence[str], line: int, stdin: str) -> Answer | None:
        if not all(map(known, words)):
            self._leave(line, f"`{shown(words)}` is not run: the text at {_MARK} is not known")
            return NOT_KNOWN
        if self.own(words, line):
            return Answer()
        if (single := _singly(words, stdin, self.files)) is not None:
            answers = [self._act(one, line, "") for one in single]
            return answers[-1] if answers else Answer()
        if (kept := _without_mac(words)) != list(words):
            self._leave(line, f"the MAC in `{shown(words)}` is the plan's here")
            return self._act(kept, line, stdin)
        if _tagged(words):
            self.problems.append((line, shown(words), TAGGED_BRIDGE, BRIDGE_REMEDY))
            return Answer()
        if _renames(words):
            self.problems.append((line, shown(words), RENAMED, RENAMED_REMEDY))
            return Answer()
        before = repr(self.machine)
        if (status := act(self.machine, words)) is not None:
            # A command that lists depends on the machine, so its output is unknown; a command that changes
            # something has no output.
            if not status and bare(words[0]) == "tc" and "tbf" in words:
                self._leave(line, f"burst and queue of `{shown(words)}`: the link's own here")
            if not status and "bridge" in words and (timers := _TIMERS & set(words)):
                self._leave(line, f"{', '.join(sorted(timers))} in `{shown(words)}`: the lab's own here")
            if status and bare(words[0]) in ("brctl", "ovs-vsctl"):
                self._leave(line, f"`{shown(words)}` fails there, too: no such bridge or port")
            if status and bare(words[0]) == "tc":
                self._leave(line, f"`{shown(words)}` fails there, too: the interface has a root qdisc")
            if self._shell is not None and self._shell.paused and repr(self.machine) != before:
                self._shell.paused = False
                self._leave(line, f"`{shown(words)}` and what follows, after a `sleep`: at once here")
            listing = not status and repr(self.machine) == before and _lists(words)
            return NOT_KNOWN if listing else Answer(status)
        if not _silent(words):
            self._leave(line, f"`{shown(words)}` is not run")
        return NOT_KNOWN

    def _doubt(self, line: int, words: list[str]) -> None:
        self._leave(line, f"`{shown(words)}` is not run: whether it would run is not known")

    def _assumed(self, line: int, words: list[str]) -> None:
        if not _silent(words[0].split()):
            self._leave(line, f"`{shown(words)}` is taken as successful, for what follows it")

    def _leave(self, line: int, said: str) -> None:
        where = self.place(line)
        self.left.append(f"{where}: {said}" if where else said)


_MARK = "(?)"
_TIMERS = frozenset(("priority", "prio", "forward_delay", "hello_time", "max_age", "ageing_time"))
_LISTINGS = frozenset(
    ("show", "sh", "list", "ls", "lst", "get", "showmacs", "showstp", "list-br", "list-ports")
)


def _without_mac(words: Sequence[str]) -> list[str]:
    """Returns a command that gives an interface a MAC (`ip link set IF address MAC`, `ifconfig IF hw ether
    MAC`) without the MAC, if it does anything else; else the same words.
    """
    plain, given = list(words), [word for word in words if word != "dev"]
    if bare(words[0]) == "ip" and len(given) > 6 and "link".startswith(given[1]) and given[2][:1] == "s":
        word, count = "address", 1
    elif bare(words[0]) == "ifconfig" and len(given) > 5:
        word, count = "hw", 2
    else:
        return plain
    at = plain.index(word, 2) if word in plain[2:] else len(plain)
    return [*plain[:at], *plain[at + 1 + count :]]


def _singly(words: Sequence[str], stdin: str, files: Mapping[str, str]) -> list[list[str]] | None:
    """Returns the single commands of one that does several: `ip -batch FILE`, `sysctl A=1 B=2`, `sysctl -p
    [FILE]` of a file that the script wrote; None for any other command, or a text that is not known.
    """
    name, rest = bare(words[0]), list(words[1:])
    if name == "ip" and (flag := next((one for one in rest if one in ("-b", "-batch")), None)) is not None:
        at = rest.index(flag)
        place = rest[at + 1] if len(rest) > at + 1 else "-"
        text = stdin if place == "-" else files.get(place, UNKNOWN)
        if not text or not known(text):
            return None
        try:
            lines = [shlex.split(one, comments=True) for one in text.splitlines()]
        except ValueError:
            return None  # the quotes are not closed
        return [["ip", *one] for one in lines if one]
    if name != "sysctl":
        return None
    if rest[:1] in (["-p"], ["--load"], ["--system"]):
        text = files.get(rest[1] if len(rest) > 1 else "/etc/sysctl.conf", UNKNOWN)
        settings = [one for one in text.splitlines() if "=" in one and one.lstrip()[:1] not in ("#", ";")]
        return [["sysctl", "-w", "".join(one.split())] for one in settings] if known(text) else None
    given = [one for one in rest if "=" in one and one[:1] != "-"]
    return (
        [["sysctl", "-w", one] for one in given] if len(given) > 1 and " = " not in " ".join(rest) else None
    )


def _silent(words: Sequence[str]) -> bool:
    """Returns whether the network does not depend on a command: it is harmless, or one of ethtool that
    shows, or that sets offloads.
    """
    if bare(words[0]) == "ethtool":
        return len(words) <= 2 or words[1] in _SHOWS
    return bare(words[0]) in HARMLESS


def _lists(words: Sequence[str]) -> bool:
    """Returns whether a network command only lists: it has a word for that, or no more than a name."""
    return bool(_LISTINGS & set(words)) or len([word for word in words if word[:1] != "-"]) <= 2


def shown(words: Sequence[str]) -> str:
    """Returns a command as text for reports, with (?) for unknown text, shortened to LONGEST characters."""
    text = words[0] if len(words) == 1 else shlex.join(words)
    text = " ".join(text.replace(UNKNOWN, _MARK).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _renames(words: Sequence[str]) -> bool:
    """Returns whether a command is `ip link set IF name NAME`."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    sets = bare(words[0]) == "ip" and len(plain) > 3 and "link".startswith(plain[0])
    return sets and "set".startswith(plain[1]) and "name" in plain[2:-1] and "alias" not in plain


def _tagged(words: Sequence[str]) -> bool:
    """Returns whether a command sets VLANs on a bridge: by `bridge vlan` without `show` or `del`, by
    `ovs-vsctl` with VLAN options, or by `vlan_filtering 1`.
    """
    if bare(words[0]) == "bridge":
        return "vlan" in words and not {"show", "del"} & set(words)
    if bare(words[0]) == "ovs-vsctl":
        return any(word.startswith(("tag=", "trunks=", "vlan_mode=")) for word in words)
    return any(a == "vlan_filtering" and b in ("1", "on") for a, b in pairwise(words))
