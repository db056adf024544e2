"""Runs the parts of a test run, whatever the result of each, and shows at the end all that failed.

`python tests/parts.py [[--side-by-side N] 'NAME: COMMAND' ...] ...`

Each command runs in bash, one after the other; those after `--side-by-side N` run N at the same time, in
their order, once all before them have ended. The exit status is 1 if one of them failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Thread
from typing import TextIO

OPTION = "--side-by-side"
# seconds for which the output is still read after a command's end: a process that the command left may keep
# it open
OPEN_S = 2.0
# number of last lines shown of a failed part whose output names no failed tests, such as a compiler's errors
SHOWN = 30
PYTEST_ENDS = re.compile(r"^=*\s*((?:\d+ [a-z]+, )*\d+ [a-z]+) in [0-9.]+s")  # "5 passed, 1 skipped in 3.2s"
RUST_ENDS = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
FAILED = re.compile(r"^(?:FAILED|ERROR) |^test .* FAILED$|^    [\w:]+ stdout ----$")
WORDS = {"error": "errors", "warning": "warnings"}  # pytest writes the singular for one


@dataclass(frozen=True)
class Part:
    """A command and its name."""

    name: str
    command: str


@dataclass(frozen=True)
class Group:
    """Parts of which `workers` run at the same time."""

    workers: int
    parts: list[Part]


@dataclass(frozen=True)
class Ended:
    """The result of a part: its status, its seconds and all lines that it printed."""

    part: Part
    status: int
    seconds: float
    lines: tuple[str, ...]


def parse(word: str) -> Part:
    """Parses `NAME: COMMAND`; ValueError if the word has another form."""
    name, colon, command = word.partition(": ")
    if not colon or not command.strip():
        raise ValueError(f'{word!r} is no part; write "NAME: COMMAND"')
    return Part(name, command)


def groups(words: list[str]) -> list[Group]:
    """Returns the parts in groups; each `--side-by-side N` begins a new group."""
    found, rest = [Group(1, [])], iter(words)
    for word in rest:
        if word == OPTION:
            found.append(Group(int(next(rest, "")), []))
        else:
            found[-1].parts.append(parse(word))
    return [group for group in found if group.parts]


def run(part: Part, show: bool) -> Ended:
    """Runs a part and returns its result; with `show` its lines are printed as they come, else all when it
    has ended.
    """
    began = time.monotonic()
    lines: list[str] = []
    if not show:
        # The text is printed in one write, because parts begin at the same time.
        print(f"tests: {part.name} begins\n", end="", flush=True)
    argv = ["bash", "-euo", "pipefail", "-c", part.command]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout is not None
    reader = Thread(target=read, args=(process.stdout, lines, show), daemon=True)
    reader.start()
    status = process.wait()
    reader.join(OPEN_S)
    if not show and lines:
        print("\n".join([f"tests: {part.name}:", *lines]), flush=True)
    return Ended(part, status, time.monotonic() - began, tuple(lines))


def read(output: TextIO, lines: list[str], show: bool) -> None:
    for line in output:
        lines.append(line.rstrip("\n"))
        if show:
            print(line, end="", flush=True)


def counts(ended: Ended) -> Counter[str]:
    """Returns the numbers of tests that passed, failed and so on, from the closing lines of pytest and cargo.

    Only the first closing line of pytest counts, because tests/run.sh runs failed tests once more after it.
    If the part passed all the same, the failed tests passed then.
    """
    found: Counter[str] = Counter()
    pytests = [ends for line in ended.lines if (ends := PYTEST_ENDS.match(line))]
    for number, word in (entry.split() for ends in pytests[:1] for entry in ends[1].split(", ")):
        found[WORDS.get(word, word)] += int(number)
    for ends in filter(None, map(RUST_ENDS.match, ended.lines)):
        found.update(dict(zip(("passed", "failed", "skipped"), map(int, ends.groups()), strict=True)))
    if not ended.status and "failed" in found:
        found["failed among others and passed alone"] = found.pop("failed")
    return +found


def failures(ended: Ended) -> list[str]:
    """Returns the lines that name failures; the last lines if none does."""
    named = list(dict.fromkeys(line.strip() for line in ended.lines if FAILED.search(line)))
    return named or list(ended.lines[-SHOWN:])


def summary(all_ended: list[Ended]) -> str:
    """Returns the failures of each part, one line for each part, and all counts together."""
    lines = []
    for ended in all_ended:
        if ended.status:
            lines += [f"tests: {ended.part.name} failed with status {ended.status}:"]
            lines += [f"  {line}" for line in failures(ended)]
    width = max(len(ended.part.name) for ended in all_ended)
    for ended in all_ended:
        word = "FAILED" if ended.status else "passed"
        lines.append(
            f"tests: {ended.part.name:{width}}  {word}  {ended.seconds:5.0f} s  {say(counts(ended))}"
        )
    return "\n".join(line.rstrip() for line in lines)


def say(found: Counter[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in found.items())


def main(words: list[str]) -> int:
    began = time.monotonic()
    all_ended: list[Ended] = []
    for group in groups(words):
        with ThreadPoolExecutor(group.workers) as pool:
            all_ended += pool.map(lambda part, show=group.workers == 1: run(part, show), group.parts)
    print(summary(all_ended))
    total = sum(map(counts, all_ended), Counter[str]())
    failed = [ended.part.name for ended in all_ended if ended.status]
    verdict = f"failed: {', '.join(failed)}; " if failed else ""
    print(f"tests: {verdict}{say(total) or 'no tests'} in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
