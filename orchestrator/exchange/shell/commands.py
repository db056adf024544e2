"""Follows simple commands: assignments, functions, builtins, programs, and output into files."""

from __future__ import annotations

from tree_sitter import Node

from .parsing import ShellError, line_of, parsed, text_of
from .programs import program
from .state import Interpreter, LeaveError
from .tests import test
from .values import NOT_KNOWN, UNKNOWN, Answer, known, status_of

HARMLESS = frozenset({
    "echo", "printf", "sleep", "true", ":", "wait", "set", "shopt", "ulimit", "umask", "trap", "exit",
    "return", "break", "continue", "local",
})  # fmt: skip
FILE_TESTS = ("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S", "-v")


def command(shell: Interpreter, node: Node, stdin: str = "") -> Answer:
    """Follows a simple command of the script: makes its assignments, which stay, and then calls the command
    with its expanded words; a here-string replaces `stdin`. Returns success if there are only assignments.
    """
    words = [word for child in _words(node) for word in shell.words.fields(child)]
    given = [child for child in node.children if child.type == "variable_assignment"]
    for one in given:
        assign(shell, one)
    for child in node.children:
        if child.type == "herestring_redirect":
            stdin = "".join(shell.words.text(one) for one in child.named_children) + "\n"
    return call(shell, words, line_of(node), stdin) if words else Answer()


def call(shell: Interpreter, words: list[str], line: int, stdin: str) -> Answer:
    """Follows a command with expanded words: a function, a nested script, a builtin, or a program with
    known output; any other is passed to `shell.act`, or in doubt only reported to `shell.doubt`.

    Returns its answer, NOT_KNOWN if that is not known. Raises LeaveError for exit, return, break and
    continue.
    """
    name, *rest = words
    line = shell.outer or line
    if name in ("sudo", "command", "builtin", "exec", "nohup", "eval", "time", "env") and rest:
        if name == "eval":
            return _nested(shell, " ".join(rest), [], line)
        return call(shell, rest, line, stdin)
    if name in shell.functions:
        return _function(shell, name, words)
    if name in ("sh", "bash", "ash", "dash", "/bin/sh", "/bin/bash", "/bin/ash") and rest:
        if rest[0].startswith("-") and rest[0].endswith("c") and len(rest) > 1:
            with shell.own_variables():
                return _nested(shell, rest[1], rest[2:] or [name], line)
        if rest[0] in shell.files:
            return _nested(shell, shell.files[rest[0]], rest, line)
    if name == "tee" and rest and rest[-1].startswith("/proc/sys/"):
        return write(shell, rest[-1], ">", Answer(0, stdin), line)
    if name in ("exit", "return", "break", "continue"):
        raise LeaveError(name, Answer(_number(rest, shell.status)))
    if name in ("shift",):
        del shell.words.arguments[1 : 1 + (_number(rest, 1) or 1)]
        return Answer()
    if name in ("test", "[", "[["):
        inner = rest[:-1] if name != "test" and rest[-1:] in (["]"], ["]]"]) else rest
        return status_of(file_test(shell, inner) if inner[:1] and inner[0] in FILE_TESTS else test(inner))
    if name == "read":
        first = stdin.partition("\n")[0]
        names = [one for one in rest if not one.startswith("-")]
        parts = first.split(None, len(names) - 1) if names else []
        for one, part in zip(names, [*parts, *[""] * len(names)], strict=False):
            shell.variables[one] = part
        return Answer(0 if known(stdin) and stdin else None)
    if (answer := program(words, stdin, shell.variables, shell.files)) is not None:
        return answer
    if shell.doubtful:
        shell.doubt(line, words)
        return NOT_KNOWN
    return shell.act(words, line, stdin) or NOT_KNOWN


def file_test(shell: Interpreter, words: list[str]) -> bool | None:
    """Returns True for a test by -e, -f or -s of a file that the script has written; None for any other."""
    return True if len(words) == 2 and words[1] in shell.files and words[0] in ("-e", "-f", "-s") else None


def _nested(shell: Interpreter, text: str, arguments: list[str], line: int) -> Answer:
    """Follows the text of `sh -c`, of `eval` or of a written file as a script, whose lines count as `line`,
    and which `exit` and `return` end. Reports a text that is partly unknown as doubtful and does not follow
    it.
    """
    if not known(text):
        shell.doubt(line, [text])
        return NOT_KNOWN
    before, shell.words.arguments = shell.words.arguments, arguments or shell.words.arguments
    outer, shell.outer = shell.outer, line
    try:
        return shell.block(parsed(text).children)
    except ShellError as error:
        raise ShellError(line, error.rule) from None
    except LeaveError as left:
        return left.answer
    finally:
        shell.words.arguments, shell.outer = before, outer


def _function(shell: Interpreter, name: str, words: list[str]) -> Answer:
    before, shell.words.arguments = shell.words.arguments, words
    try:
        return shell.statement(shell.functions[name])
    except LeaveError as left:
        if left.word == "exit":
            raise
        return left.answer
    finally:
        shell.words.arguments = before


def assign(shell: Interpreter, node: Node) -> Answer:
    """Follows one assignment, `NAME=VALUE` or `NAME+=VALUE`."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    text = shell.words.text(value) if value is not None else ""
    key = text_of(name) if name is not None else ""
    if "+=" in text_of(node)[: len(key) + 2]:
        text = shell.variables.get(key, "") + text
    shell.variables[key] = text
    return Answer()


def assignments(shell: Interpreter, node: Node) -> Answer:
    """Follows the assignments of one line, also those of `export` and `local`."""
    for child in node.named_children:
        if child.type == "variable_assignment":
            assign(shell, child)
    return Answer()


def unset(shell: Interpreter, node: Node) -> Answer:
    """Follows `unset`: removes the variables that it names; functions stay."""
    for child in node.named_children:
        shell.variables.pop(text_of(child), None)
    return Answer()


def define(shell: Interpreter, node: Node) -> Answer:
    """Follows the definition of a function."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        shell.functions[text_of(name)] = body
    return Answer()


def write(shell: Interpreter, place: str, sign: str, answer: Answer, line: int) -> Answer:
    """Writes a command's output into the script's file `place`, after its content if `sign` has `>>`, and
    returns the status without output. Discards output to /dev/null and the standard streams; output to
    /proc/sys becomes a call of `sysctl -w`. In doubt, it reports the output, and the file becomes unknown.
    """
    if place in ("/dev/null", "/dev/stderr", "/dev/stdout", "&2", "&1", "2"):
        return Answer(answer.status)
    if place.startswith("/proc/sys/"):
        setting = place.removeprefix("/proc/sys/").replace("/", ".")
        return call(shell, ["sysctl", "-w", f"{setting}={answer.output.strip()}"], line, "")
    if shell.doubtful:
        shell.doubt(line, [">", place])
        shell.files[place] = UNKNOWN
    else:
        shell.files[place] = (shell.files.get(place, "") if ">>" in sign else "") + answer.output
    return Answer(answer.status)


def _words(node: Node) -> list[Node]:
    """Returns the name and the arguments of a command."""
    return [
        child
        for number, child in enumerate(node.children)
        if node.field_name_for_child(number) in ("name", "argument")
    ]


def _number(words: list[str], default: int | None) -> int | None:
    return int(words[0]) if words and words[0].isdigit() else default
