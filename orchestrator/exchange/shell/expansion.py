"""Expands words as a shell does: variables, substitutions, arithmetic, braces, splitting into fields."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from .arithmetic import arithmetic
from .parsing import ShellError, line_of, text_of
from .values import UNKNOWN, known

MOST_FIELDS = 10_000  # largest number of fields of one word, so that {1..9999999} is refused
BREAK, NOTHING = "\ufdd1", "\ufdd2"  # noncharacters: the end of a field within quotes, and no field at all
_GLOB = re.compile(r"[*?]|\[[^\]]+\]")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_WORD = re.compile(r"""\$\{(\w+):?[-+=](['"]).*\2\}""", re.DOTALL)
_LETTERS = re.compile(r"([a-zA-Z])\.\.([a-zA-Z])")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*|-?\d+\.\.-?\d+(?:\.\.-?\d+)?|[a-zA-Z]\.\.[a-zA-Z])\}")
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_PARAMETER = re.compile(r"\$(?:\{(\d+|[?#])\}|([\d?#]))")
_QUOTED = re.compile(r'\\([$`"\\\n])')
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


# Variables that each shell, or bash, has by itself.
_OF_SHELLS = frozenset((
    "?", "$", "!", "-", "_", "RANDOM", "SRANDOM", "SECONDS", "PWD", "OLDPWD", "HOME", "USER", "LOGNAME",
    "PATH", "UID", "EUID", "PPID", "GROUPS", "FUNCNAME", "LINENO", "SHLVL", "SHELL", "TERM", "LANG",
    "BASH", "BASHPID", "BASHOPTS", "BASH_VERSION", "BASH_SOURCE", "BASH_LINENO", "BASH_COMMAND",
    "BASH_SUBSHELL", "OSTYPE", "HOSTTYPE", "MACHTYPE", "EPOCHSECONDS", "EPOCHREALTIME", "DIRSTACK",
    "PIPESTATUS", "BASH_REMATCH", "SHELLOPTS", "OPTIND", "TMPDIR",
))  # fmt: skip


class _Literal(str):
    """Text of the script itself, which is no result of an expansion."""


class Expansion:
    """Expands words in one shell; `run` returns the output of a substituted command."""

    def __init__(self, variables: dict[str, str], run: Callable[[Node], str]) -> None:
        self.variables, self.arguments, self._run = variables, [""], run
        self._in_string = False  # whether an expansion stands in double quotes
        self.open_ended = False  # whether an unknown file may have set any variable
        self.plain: Callable[[], bool] = lambda: False  # returns whether the shell is one other than bash

    def fields(self, node: Node) -> list[str]:
        """Returns the fields into which one word of the script expands: unquoted parts are split at the
        characters of IFS, and braces are expanded; no field if it expands to nothing unquoted. A pattern of
        file names is UNKNOWN.
        """
        pieces = list(self._pieces(node))
        found, quoted_fields = (
            [""],
            {0} if any(quoted and text != BREAK for text, quoted in pieces) else set(),
        )
        for text, quoted in pieces:
            if isinstance(text, _Literal):
                first, *others = [_GLOB.sub(UNKNOWN, text)]  # only what is expanded is split
            else:
                first, *others = text.split(BREAK) if quoted else self._split(_GLOB.sub(UNKNOWN, text))
            found[-1] += first
            found += others
            quoted_fields |= set(range(len(found) - len(others), len(found))) if quoted else set()
        kept = [one for number, one in enumerate(found) if one or number in quoted_fields]
        source = text_of(node)
        if re.search(r"\{[^{}]*\{[^{}]*,|\$\w+\{[^{}]*(,|\.\.)", source):
            kept = [UNKNOWN]  # braces within braces, and braces that are expanded before a variable
        elif any(text for text, quoted in pieces if not quoted) and _BRACES.search(source):
            kept = [UNKNOWN] if self.plain() else [word for one in kept for word in _braces(one, node)]
        return kept

    def _split(self, text: str) -> list[str]:
        """Splits unquoted text into fields, the first and the last of which may be empty."""
        return re.split("|".join(one for one in (self._separator(), BREAK) if one), text)

    def _separator(self) -> str:
        """Returns a regular expression for what separates fields: one sign of IFS with the blanks of IFS
        around it, or blanks alone; "" without any.
        """
        marks = self.variables.get("IFS", " \t\n")
        blanks = re.escape("".join(one for one in marks if one.isspace()))
        signs = re.escape("".join(one for one in marks if not one.isspace()))
        around = f"[{blanks}]*" if blanks else ""
        ways = [f"{around}[{signs}]{around}"] if signs else []
        return "|".join([*ways, f"[{blanks}]+"] if blanks else ways)

    def split(self, text: str, most: int) -> list[str]:
        """Splits the line that `read` has read into `most` texts at the characters of IFS, the last with the
        rest, and empty ones where the line has fewer.
        """
        blanks = "".join(one for one in self.variables.get("IFS", " \t\n") if one.isspace())
        text = text.strip(blanks) if blanks else text
        separator = self._separator()
        parts = re.split(separator, text, maxsplit=most - 1) if separator and most > 1 else [text]
        return [*parts, *[""] * (most - len(parts))]

    def text(self, node: Node) -> str:
        """Returns the expansion of a word as one text, as in an assignment."""
        return "".join(text for text, _ in self._pieces(node)).replace(BREAK, " ")

    def pattern(self, node: Node) -> str:
        """Returns the expansion of a pattern, in which quoted signs stand for themselves."""
        pieces = ((text.replace(BREAK, " "), quoted) for text, quoted in self._pieces(node))
        return "".join(glob.escape(text) if quoted else text for text, quoted in pieces)

    def _pieces(self, node: Node) -> Iterator[tuple[str, bool]]:
        """Yields the parts of a word, each with whether it is quoted and so not split."""
        match node.type:
            case "string" | "translated_string":
                text = self._string(node)
                yield from [] if text == NOTHING else [(text.replace(NOTHING, ""), True)]
            case "raw_string":
                yield text_of(node)[1:-1], True
            case "ansi_c_string":
                yield (
                    _ESCAPE.sub(lambda found: _ANSI.get(found[1], found[1]), text_of(node)[2:-1]),
                    True,
                )
            case "concatenation" | "command_name":
                for child in node.children:
                    yield from self._pieces(child)
            case "brace_expression":
                yield _Literal(text_of(node)), False
            case "simple_expansion" | "expansion":
                text = self._variable(node)
                given = _WORD.fullmatch(text_of(node))  # a quoted word in place of a variable is not split
                yield text, given is not None and text != self.value(given[1])
            case "command_substitution" if "\\`" in text_of(node):
                yield UNKNOWN, True  # a substitution within one, both in backquotes
            case "command_substitution":
                yield self._run(node).rstrip("\n"), False
            case "arithmetic_expansion":
                yield self._arithmetic(node), False
            case "process_substitution" | "array":
                yield UNKNOWN, True
            case _:
                text = _ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text_of(node))
                quoted = "\\" in text_of(node)
                text = "~" + UNKNOWN if text.startswith("~") or re.search(r"[=:]~", text) else text
                yield (text if quoted else _Literal(text)), quoted

    def _string(self, node: Node) -> str:
        """Returns the expansion of a string in double quotes; keeps the blanks that the grammar omits
        between its parts.
        """
        content, start = node.text or b"", node.start_byte
        at, found = 1 + content.find(b'"'), ""
        for child in node.children:
            if child.type in (
                "simple_expansion",
                "expansion",
                "command_substitution",
                "arithmetic_expansion",
            ):
                found += _unquoted(content[at : child.start_byte - start])
                if text_of(child) in ("$@", "${@}"):
                    found += BREAK.join(self.arguments[1:]) if self.arguments[1:] else NOTHING
                elif text_of(child) in ("$*", "${*}"):
                    found += self.variables.get("IFS", " ")[:1].join(self.arguments[1:])
                else:
                    outer, self._in_string = self._in_string, child.type == "expansion"
                    found += "".join(text for text, _ in self._pieces(child)).replace(BREAK, " ")
                    self._in_string = outer
                at = child.end_byte - start
        return found + _unquoted(content[at:-1])

    def _arithmetic(self, node: Node) -> str:
        source = re.sub(r"^\$\(\(|\)\)$|^\$\[|\]$", "", text_of(node))
        source = _PARAMETER.sub(lambda found: f" {self.value(found[1] or found[2])}", source)
        return arithmetic(source, self.variables, line_of(node))

    def _variable(self, node: Node) -> str:
        text = text_of(node)
        name = text[1:].strip("{}")
        if text.startswith("${"):
            return self._operated(node, text[2:-1])
        if name[:1].isdigit():  # $10 is $1, and a 0
            return self.value(name[0]) + name[1:]
        return self.value(name)

    def value(self, name: str) -> str:
        """Returns a variable's value, an argument's by its number, all arguments for `@` or `*`, or their
        number for `#`, the last status for `?`. If it is not set: UNKNOWN for a variable that each shell has,
        such as PWD, and "" for others.
        """
        if name.isdigit():
            return self.arguments[int(name)] if int(name) < len(self.arguments) else ""
        if name in ("@", "*"):
            return BREAK.join(self.arguments[1:])
        if name == "#":
            return str(len(self.arguments) - 1)
        if name == "IFS":
            return self.variables.get(name, " \t\n")
        if name in _OF_SHELLS:
            return self.variables.get(name, UNKNOWN)
        return self.variables.get(name, UNKNOWN if self.open_ended else "")

    def _operated(self, node: Node, inside: str) -> str:
        """Returns the expansion of `${NAME}` with or without an operator, such as `${NAME:-word}`; `=` also
        sets the variable. Returns UNKNOWN for another form or an unknown value.
        """
        if inside == "#":
            return self.value("#")
        if found := re.fullmatch(r"#(\w+)", inside):
            value = self.value(found[1])
            return str(len(value)) if known(value) else UNKNOWN
        found = re.fullmatch(r"(\w+|[@*#?])(?:(:?[-=+?]|%%?|##?|//?|\^\^?|,,?|:)(.*))?", inside, re.DOTALL)
        if found is None:
            return UNKNOWN
        name, operator, rest = found[1], found[2], found[3] or ""
        value = self.value(name)
        if operator is None:
            return value
        right = self._right(node, rest)
        if operator.lstrip(":") in ("-", "=", "+", "?"):
            absent = value == "" if operator[0] == ":" else name not in self.variables and not value
            if operator[-1] == "+":
                return "" if absent else right
            if operator[-1] == "=" and absent:
                self.variables[name] = right
            return right if absent else value
        return _changed(value, operator, right) if known(value) and known(right) else UNKNOWN

    def _right(self, node: Node, rest: str) -> str:
        """Returns the text behind the operator, expanded; UNKNOWN if a text with `$` or a backquote has
        several parts.
        """
        if "$" not in rest and "`" not in rest:
            return rest.strip('"' if self._in_string else "\"'")
        named = [child for child in node.named_children[1:] if child.type != "variable_name"]
        return "".join(self.text(child) for child in named) if len(named) == 1 else UNKNOWN


def _unquoted(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    return _QUOTED.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def _changed(value: str, operator: str, right: str) -> str:
    """Returns the value as the operator of `${NAME...}` changes it: a prefix or suffix removed, a part
    replaced, upper or lower case, or a substring. Returns UNKNOWN for a replacement by a pattern with
    wildcards, and for a substring whose bounds are no numbers.
    """
    match operator[0]:
        case "%":
            ends = range(len(value), -1, -1) if operator == "%" else range(len(value) + 1)
            return next((value[:end] for end in ends if fnmatch.fnmatchcase(value[end:], right)), value)
        case "#":
            starts = range(len(value) + 1) if operator == "#" else range(len(value), -1, -1)
            return next(
                (value[start:] for start in starts if fnmatch.fnmatchcase(value[:start], right)), value
            )
        case "/":
            old, _, new = right.partition("/")
            if set(old) & set("*?["):
                return UNKNOWN
            if old[:1] in ("#", "%") and operator == "/":  # only at the beginning, or at the end
                at_start, bare = old[0] == "#", old[1:]
                if not (value.startswith(bare) if at_start else value.endswith(bare)):
                    return value
                return new + value[len(bare) :] if at_start else value[: len(value) - len(bare)] + new
            return value.replace(old, new, -1 if operator == "//" else 1)
        case "^":
            return value.upper() if operator == "^^" else value[:1].upper() + value[1:]
        case ",":
            return value.lower() if operator == ",," else value[:1].lower() + value[1:]
    start, _, length = right.partition(":")
    if not re.fullmatch(r" ?-?\d+", start) or (length and not length.isdigit()):
        return UNKNOWN
    return value[int(start) :][: int(length) if length else None]


def _braces(word: str, node: Node) -> list[str]:
    """Expands braces: `a{1,2}` to a1 and a2, `{1..3}` to 1, 2 and 3. Raises ShellError if there are more than
    MOST_FIELDS words.
    """
    if re.search(r"\{[^{},]*(\$[^{},]*\.\.|\.\.[^{},]*\$)", text_of(node)):
        return [word]  # bash does not expand a range that contains a variable
    waiting, found = [word], []
    while waiting:
        one = waiting.pop(0)
        if (braces := _BRACES.search(one)) is None:
            found.append(one)
            continue
        inside = list(itertools.islice(_alternatives(braces[1]), MOST_FIELDS + 1))
        if len(inside) + len(waiting) + len(found) > MOST_FIELDS:
            raise ShellError(line_of(node), f"expands to more than {MOST_FIELDS} words")
        waiting = [one[: braces.start()] + text + one[braces.end() :] for text in inside] + waiting
    return found


def _alternatives(inside: str) -> Iterator[str]:
    if letters := _LETTERS.fullmatch(inside):
        first, last = map(ord, letters.groups())
        yield from map(chr, range(first, last + 1) if first <= last else range(first, last - 1, -1))
        return
    if (found := _RANGE.fullmatch(inside)) is None:
        yield from inside.split(",")
        return
    width = max(map(len, found.groups()[:2])) if re.match(r"-?0\d|.*\.\.-?0\d", inside) else 0
    first, last, step = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    for number in range(first, last + 1, step) if first <= last else range(first, last - 1, -step):
        yield f"{number:0{width}d}" if width else str(number)
