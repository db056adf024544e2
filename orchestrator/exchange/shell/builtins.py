"""Follows the shell's own commands that change its variables, arguments and options, or leave the script."""

from __future__ import annotations

import re
from collections.abc import Callable

from .arithmetic import arithmetic
from .programs import program
from .state import Interpreter, LeaveError
from .values import NOT_KNOWN, UNKNOWN, Answer, known

Builtin = Callable[[Interpreter, list[str], int, str], Answer | None]
_READ_WORDS = "pdtnNui"  # options of `read` that take a word
_NAME = re.compile(r"[A-Za-z_]\w*")


def _leave(shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer | None:
    """Follows `exit`, `return`, `break` and `continue`. `return` outside of a function and of a file that
    another script reads is an error after which bash continues, and ends any other shell. In doubt, they
    are reported.
    """
    name, *rest = words
    if name == "return" and not shell.returnable and not shell.plain:
        return Answer(2)
    if shell.doubtful:
        shell.doubt(line, words)
    number = int(rest[0]) if rest and rest[0].isdigit() else None
    if name in ("break", "continue"):
        raise LeaveError(name, Answer(), max(1, number or 1))
    raise LeaveError(name, Answer(shell.status if number is None else number))


def _set(shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer:
    """Follows `set`: `-e` and its long form, and new arguments; other options have no effect here."""
    rest = words[1:]
    while rest and rest[0][:1] in ("-", "+") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        named = rest.pop(0) if word[1:].endswith("o") and rest else ""
        if named == "pipefail":
            shell.pipefail = word[0] == "-"
        if ("e" in word[1:] or named == "errexit") and shell.doubtful:
            shell.doubt(line, words)
        elif "e" in word[1:] or named == "errexit":
            shell.stops_at_errors = word[0] == "-"
    rest = rest[1:] if rest[:1] == ["-"] else rest  # a single - ends the options, too
    if rest or "--" in words[1:]:
        shell.words.arguments[1:] = rest
    return Answer()


def _shift(shell: Interpreter, words: list[str], _line: int, _stdin: str) -> Answer:
    number = int(words[1]) if words[1:] and words[1].isdigit() else 1
    if number > len(shell.words.arguments) - 1:
        return Answer(1)
    del shell.words.arguments[1 : 1 + number]
    return Answer()


def _trap(shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer:
    """Keeps the text of a trap for the script's end, and reports traps of errors and of every command; other
    signals do not come.
    """
    if len(words) > 2 and {"EXIT", "0"} & set(words[2:]) and shell.doubtful:
        shell.doubt(line, words)
    elif len(words) > 2 and {"EXIT", "0"} & set(words[2:]):
        shell.at_exit = "" if words[1] == "-" else words[1]
    if len(words) > 2 and words[1] not in ("-", "") and {"ERR", "DEBUG", "RETURN"} & set(words[2:]):
        shell.doubt(line, words)
    return Answer()


def _let(shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer:
    value = "0"
    for word in words[1:]:
        value = arithmetic(word, shell.variables, line)
    return Answer(int(value == "0") if known(value) else None)


def _read(shell: Interpreter, words: list[str], _line: int, stdin: str) -> Answer:
    """Follows `read`: splits the first line of the input at the characters of IFS into the variables; without
    names, REPLY gets it. The variable of `-a`, an array, is unknown, and so are all of an unknown input.
    """
    names, array, rest = [], "", words[1:]
    raw = False
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            names.append(word)
            continue
        raw = raw or "r" in word
        if word[-1] == "a" and rest:
            array = rest.pop(0)
        elif word[-1] in _READ_WORDS and rest:
            rest.pop(0)
    if not stdin and shell.fed is not None:
        stdin, mark, shell.fed = shell.fed.partition("\n")
        stdin += mark
    text = stdin.partition("\n")[0]
    text = text if raw else text.replace("\\", "")
    if array:
        shell.variables[array] = UNKNOWN
    parts = shell.words.split(text, len(names)) if names else []
    for number, one in enumerate(names or ([] if array else ["REPLY"])):
        shell.variables[one] = UNKNOWN if not known(stdin) else text if not names else parts[number]
    return Answer(0 if known(stdin) and stdin else 1 if shell.fed is not None and not stdin else None)


def _printf(shell: Interpreter, words: list[str], _line: int, stdin: str) -> Answer | None:
    if words[1:2] != ["-v"] or len(words) < 4:
        return None
    answer = program(["printf", *words[3:]], stdin, shell.variables, shell.files)
    shell.variables[words[2]] = UNKNOWN if answer is None else answer.output
    return Answer()


def _hostname(shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer | None:
    """Follows `hostname NAME`, which later calls of `hostname` print; None without a name."""
    if len(words) != 2 or words[1].startswith("-"):
        return None
    if shell.doubtful:
        shell.doubt(line, words)
    shell.variables["HOSTNAME"] = words[1]
    return Answer()


def _expr(_shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer | None:
    """Follows `expr A + B` of numbers, with `+`, `-`, `*`, `/` and `%`; None for other words."""
    numbers = all(re.fullmatch(r"-?\d+", word) for word in words[1::2])
    if len(words) != 4 or not numbers or words[2] not in ("+", "-", "*", "/", "%"):
        return None
    if words[2] in ("/", "%") and not int(words[3]):
        return Answer(2)
    value = arithmetic(" ".join(words[1:]), {}, line)
    return Answer(int(value == "0"), f"{value}\n") if known(value) else None


def _unknown(shell: Interpreter, words: list[str], line: int, _stdin: str) -> Answer:
    """Makes the variables that `mapfile`, `readarray` and `getopts` set unknown, and reports the command."""
    for word in words[1:]:
        if _NAME.fullmatch(word):
            shell.variables[word] = UNKNOWN
    shell.doubt(line, words)
    return NOT_KNOWN


BUILTINS: dict[str, Builtin] = {
    "exit": _leave, "return": _leave, "break": _leave, "continue": _leave, "set": _set, "shift": _shift,
    "hostname": _hostname, "expr": _expr, "trap": _trap, "let": _let, "read": _read, "printf": _printf,
    "mapfile": _unknown, "readarray": _unknown, "getopts": _unknown,
}  # fmt: skip
