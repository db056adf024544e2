"""Computes the output of programs that depends only on their words, their input and the files that the script
wrote: echo, printf, seq, hostname, cat, tee, grep, cut, tr, basename.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence

from .values import UNKNOWN, Answer, known

MOST_NUMBERS = 10_000  # largest number of numbers that `seq` may print
QUIET = frozenset(
    [
        "sleep",
        "wait",
        "shopt",
        "ulimit",
        "umask",
        "readonly",
        "clear",
        "stty",
        "tput",
        "date",
        "mkdir",
        "touch",
        "chmod",
        "chown",
        "cd",
        "pushd",
        "popd",
        "true",
        ":",
        "logger",
        "rm",
    ]
)
Program = Callable[[Sequence[str], str], Answer]


def program(
    words: Sequence[str], stdin: str, variables: Mapping[str, str], files: MutableMapping[str, str]
) -> Answer | None:
    """Returns the status and output of a program whose output depends only on its words, its input and the
    script's files; success without output for a program in QUIET; None for any other program. `tee` changes
    `files`. The answer of a known program with other options is unknown.
    """
    name, *rest = words
    name = name.removeprefix("/usr").removeprefix("/bin/")
    if name in QUIET:
        return Answer()
    if name == "false":
        return Answer(1)
    if name in ("hostname", "uname") and rest in ([], ["-s"], ["-n"]):
        return (
            Answer(0, variables.get("HOSTNAME", UNKNOWN) + "\n")
            if rest != ["-s"] or name == "hostname"
            else Answer(0, "Linux\n")
        )
    if name == "cat" and all(one in files or one == "-" for one in rest):
        return Answer(
            0, "".join(files[one] for one in rest if one != "-") if rest not in ([], ["-"]) else stdin
        )
    if name == "cat" and rest == ["/etc/hostname"]:
        return Answer(0, variables.get("HOSTNAME", UNKNOWN) + "\n")
    if name == "tee" and rest:
        for place in (one for one in rest if not one.startswith("-")):
            if place.startswith("/proc/sys"):
                return None
            files[place] = (files.get(place, "") if "-a" in rest else "") + stdin
        return Answer(0, stdin)
    if (run := _PROGRAMS.get(name)) is not None:
        return run(rest, stdin)
    return None


def _echo(words: Sequence[str], _stdin: str) -> Answer:
    plain = list(words)
    while plain and re.fullmatch(r"-[neE]+", plain[0]):
        plain.pop(0)
    text = " ".join(plain)
    if any("e" in one for one in words[: len(words) - len(plain)]):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    end = "" if any("n" in one for one in words[: len(words) - len(plain)]) else "\n"
    return Answer(0, text + end)


def _printf(words: Sequence[str], _stdin: str) -> Answer:
    if not words:
        return Answer(1)
    shape, values = words[0].replace("\\n", "\n").replace("\\t", "\t"), list(words[1:])
    found = re.sub(r"%[sd]", lambda _: values.pop(0) if values else "", shape)
    return Answer(0, UNKNOWN if values or "%" in found else found)


def _seq(words: Sequence[str], _stdin: str) -> Answer:
    numbers = [int(one) for one in words if re.fullmatch(r"-?\d+", one)]
    if len(numbers) != len(words) or not 1 <= len(numbers) <= 3:
        return Answer(None, UNKNOWN)
    first, step, last = (
        (1, 1, *numbers)
        if len(numbers) == 1
        else (numbers[0], 1, numbers[1])
        if len(numbers) == 2
        else numbers
    )
    listed = range(first, last + (1 if step > 0 else -1), step or 1)
    if len(listed) > MOST_NUMBERS:
        return Answer(None, UNKNOWN)
    return Answer(0, "".join(f"{one}\n" for one in listed))


def _grep(words: Sequence[str], stdin: str) -> Answer:
    """Returns the answer of `grep [-q] WORD` on known text; an unknown answer for a pattern or other
    options.
    """
    plain = [one for one in words if one not in ("-q", "-E", "-F")]
    if (
        len(plain) != 1
        or not known(stdin)
        or re.search(r"[\\.*^$\[+?()|]", plain[0])
        or plain[0].startswith("-")
    ):
        return Answer(None, UNKNOWN)
    lines = [line for line in stdin.splitlines() if plain[0] in line]
    return Answer(int(not lines), "" if "-q" in words else "".join(f"{line}\n" for line in lines))


def _cut(words: Sequence[str], stdin: str) -> Answer:
    joined = " ".join(words)
    found = re.fullmatch(r"-d ?(\S) -f ?(\d+)", joined)
    characters = re.fullmatch(r"-c ?(\d*)(-?)(\d*)", joined)
    if not known(stdin) or not (found or characters):
        return Answer(None, UNKNOWN)
    if found:
        parts = [line.split(found[1]) for line in stdin.splitlines()]
        index = int(found[2]) - 1
        return Answer(0, "".join((part[index] if index < len(part) else "") + "\n" for part in parts))
    assert characters is not None
    first = int(characters[1] or 1) - 1
    last = int(characters[3]) if characters[3] else (None if characters[2] else first + 1)
    return Answer(0, "".join(line[first:last] + "\n" for line in stdin.splitlines()))


def _tr(words: Sequence[str], stdin: str) -> Answer:
    """Returns the answer of `tr -d SET`, of `tr -dc SET`, or of `tr` from one set to another of equal length;
    otherwise, or for unknown input, an unknown answer.
    """
    if not known(stdin):
        return Answer(None, UNKNOWN)
    sets = [
        re.sub(r"(\w)-(\w)", lambda f: "".join(map(chr, range(ord(f[1]), ord(f[2]) + 1))), one)
        for one in words
    ]
    if len(sets) == 2 and sets[0] == "-d" and "[" not in sets[1]:
        return Answer(0, stdin.translate({ord(c): None for c in sets[1]}))
    if len(sets) == 3 and sets[0] in ("-dc", "-cd") and "[" not in sets[2]:
        return Answer(0, "".join(c for c in stdin if c in sets[2].replace("\\n", "\n")))
    if len(sets) == 2 and len(sets[0]) == len(sets[1]) and "[" not in sets[0]:
        return Answer(0, stdin.translate(str.maketrans(sets[0], sets[1])))
    return Answer(None, UNKNOWN)


def _basename(words: Sequence[str], _stdin: str) -> Answer:
    """Returns the answer of `basename PATH [SUFFIX]`; an unknown answer for other words."""
    if not 1 <= len(words) <= 2 or words[0].startswith("-"):
        return Answer(None, UNKNOWN)
    name = words[0].rstrip("/").rpartition("/")[2] or "/"
    suffix = words[1] if len(words) > 1 else ""
    return Answer(0, f"{name.removesuffix(suffix) if name != suffix else name}\n")


_PROGRAMS: dict[str, Program] = {
    "echo": _echo, "printf": _printf, "seq": _seq, "grep": _grep, "cut": _cut, "tr": _tr,
    "basename": _basename,
}  # fmt: skip
