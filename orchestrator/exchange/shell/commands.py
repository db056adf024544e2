"""Follows simple commands: assignments, functions, builtins, programs, and output into files."""

from __future__ import annotations

from tree_sitter import Node

from .builtins import BUILTINS
from .parsing import ShellError, line_of, parsed, text_of
from .programs import program
from .state import Interpreter, LeaveError
from .tests import test
from .values import NOT_KNOWN, UNKNOWN, Answer, known, status_of

HARMLESS = frozenset({
    "echo", "printf", "sleep", "true", ":", "wait", "set", "shopt", "ulimit", "umask", "trap", "exit",
    "return", "break", "continue", "local",
})  # fmt: skip
# Programs that run the command after them, with the letters of their options that take a word.
PREFIXES = {
    "sudo": "ugCDRThp", "doas": "uC", "command": "", "builtin": "", "exec": "a", "nohup": "", "eval": "",
    "time": "fo", "env": "uC", "nice": "n", "ionice": "cn", "timeout": "ks", "setsid": "", "stdbuf": "ioe",
}  # fmt: skip
SHELLS = ("sh", "bash", "ash", "dash", "/bin/sh", "/bin/bash", "/bin/ash")
FILE_TESTS = ("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S", "-v")


def command(shell: Interpreter, node: Node, stdin: str = "") -> Answer:
    """Follows a simple command of the script: calls it with its expanded words; a here-string replaces
    `stdin`. Assignments before it are its own environment; without words they stay, and the status is that of
    the last substitution in them.
    """
    words = [word for child in _words(node) for word in shell.words.fields(child)]
    given = [child for child in node.children if child.type == "variable_assignment"]
    for child in node.children:
        if child.type == "herestring_redirect":
            stdin = "".join(shell.words.text(one) for one in child.named_children) + "\n"
    if not words:
        answers = [assign(shell, one) for one in given]
        return answers[-1] if answers else Answer()
    names = [text_of(name) for one in given if (name := one.child_by_field_name("name")) is not None]
    with shell.own_environment(names):
        for one in given:
            assign(shell, one)
        return call(shell, words, line_of(node), stdin)


def call(shell: Interpreter, words: list[str], line: int, stdin: str) -> Answer:
    """Follows a command as `_called` does, with `stdin` as the input of all commands inside of it."""
    if not stdin:
        return _called(shell, words, line, shell.fed if shell.fed and words[0] != "read" else "")
    before, shell.fed = shell.fed, stdin
    try:
        return _called(shell, words, line, stdin)
    finally:
        shell.fed = before


def _called(shell: Interpreter, words: list[str], line: int, stdin: str) -> Answer:
    """Follows a command with expanded words: a function, a nested script, a builtin, or a program with
    known output; any other is passed to `shell.act`, or in doubt only reported to `shell.doubt`.

    Returns its answer, NOT_KNOWN if that is not known. Raises LeaveError for exit, return, break and
    continue.
    """
    name, *rest = words
    line = shell.outer or line
    if name in PREFIXES and rest:
        if name == "eval":
            return _nested(shell, " ".join(rest), [], line)
        if name == "command" and rest[0] in ("-v", "-V"):
            return NOT_KNOWN  # whether a program exists is not known
        assigned, inner = _unwrapped(name, rest)
        given = {key: value for key, sign, value in (one.partition("=") for one in assigned) if sign}
        with shell.own_environment(list(given)):
            shell.variables |= given
            done = call(shell, inner, line, stdin) if inner else Answer()
        if name == "exec":
            raise LeaveError("exit", done)
        return done
    if name in shell.functions and name in shell.uncertain:
        shell.doubt(line, words)
        with shell.in_doubt():
            _function(shell, name, words)
        return NOT_KNOWN
    if name in shell.functions:
        return _function(shell, name, words)
    if name in SHELLS and (rest or stdin) and (answer := _shell(shell, name, rest, line, stdin)) is not None:
        return answer
    if name in (".", "source") and rest:
        return _sourced(shell, rest, line)
    if (own := _file(shell, name)) is not None:
        return _child(shell, shell.files[own], words, line, plain=False)
    if name == "tee" and rest and rest[-1].startswith("/proc/sys/"):
        return write(shell, rest[-1], ">", Answer(0, stdin), line)
    if name in BUILTINS and (answer := BUILTINS[name](shell, words, line, stdin)) is not None:
        return answer
    if name in ("test", "[", "[["):
        inner = rest[:-1] if name != "test" and rest[-1:] in (["]"], ["]]"]) else rest
        return status_of(file_test(shell, inner) if inner[:1] and inner[0] in FILE_TESTS else test(inner))
    if shell.doubtful and name == "tee":
        for place in (one for one in rest if not one.startswith("-")):
            write(shell, place, ">", Answer(0, stdin), line)
        return NOT_KNOWN
    if (answer := program(words, stdin, shell.variables, shell.files)) is not None:
        shell.paused = shell.paused or (name.rpartition("/")[2] == "sleep" and not shell.doubtful)
        return answer
    if shell.doubtful:
        shell.doubt(line, words)
        return NOT_KNOWN
    return shell.act(words, line, stdin) or NOT_KNOWN


def file_test(shell: Interpreter, words: list[str]) -> bool | None:
    """Returns True for a test by -e, -f or -s of a file that the script has written; None for any other."""
    return True if len(words) == 2 and words[1] in shell.files and words[0] in ("-e", "-f", "-s") else None


def _unwrapped(name: str, words: list[str]) -> tuple[list[str], list[str]]:
    """Returns (assignments of `env`, the command's words) from the words after one of PREFIXES, without its
    options and the time of `timeout`.
    """
    rest, given = list(words), []
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        option = rest.pop(0)
        if option == "--":
            break
        if len(option) == 2 and option[1] in PREFIXES[name] and rest:
            rest.pop(0)
    while name in ("env", "sudo") and rest and rest[0].partition("=")[0].isidentifier() and "=" in rest[0]:
        given.append(rest.pop(0))
    return given, rest[1:] if name == "timeout" else rest


def _shell(shell: Interpreter, name: str, rest: list[str], line: int, stdin: str) -> Answer | None:
    """Follows `sh -c TEXT`, `sh FILE` of a file that the script wrote, and a shell that reads `stdin`; None
    for anything else.
    """
    options = ""
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        options += rest.pop(0)[1:]
    plain = not name.endswith("bash")
    if "c" in options and rest:
        return _child(shell, rest[0], rest[1:] or [name], line, plain, "e" in options)
    if rest and (own := _file(shell, rest[0])) is not None:
        return _child(shell, shell.files[own], rest, line, plain, "e" in options)
    if stdin and (not rest or "s" in options):
        return _child(shell, stdin, [name, *rest], line, plain, "e" in options)
    return None


def _file(shell: Interpreter, name: str) -> str | None:
    """Returns the key of a file that the script wrote, by a path that names it; None if there is none."""
    if name in shell.files:
        return name if "/" in name else None
    bare = name.removeprefix("./")
    return next((one for one in (bare, f"/{bare}") if "/" in name and one in shell.files), None)


def _child(
    shell: Interpreter, text: str, arguments: list[str], line: int, plain: bool, stops: bool = False
) -> Answer:
    """Follows a script in a shell of its own, which has the exported variables only, and no functions.
    plain: it is no bash. stops: it stops at errors.
    """
    before = shell.plain, shell.returnable
    with shell.own_variables(), shell.own_state():
        for name in shell.variables.keys() - shell.exported - {"?"}:
            del shell.variables[name]
        shell.functions.clear()
        shell.stops_at_errors, shell.plain, shell.returnable = stops, plain, 0
        try:
            return _nested(shell, text, arguments, line, ends=True)
        finally:
            shell.plain, shell.returnable = before


def _sourced(shell: Interpreter, rest: list[str], line: int) -> Answer:
    """Follows `. FILE` of a file that the script wrote. Reports another one, which may set any variable."""
    own = rest[0] if rest[0] in shell.files else _file(shell, rest[0])
    if own is None:
        shell.words.open_ended = True
        shell.doubt(line, [".", *rest])
        return NOT_KNOWN
    shell.returnable += 1
    try:
        return _nested(shell, shell.files[own], rest if rest[1:] else [], line)
    finally:
        shell.returnable -= 1


def _nested(shell: Interpreter, text: str, arguments: list[str], line: int, *, ends: bool = False) -> Answer:
    """Follows the text of `sh -c`, of `eval` or of a written file as a script, whose lines count as `line`.
    `return` ends it, and with `ends` also `exit`. Reports a text that is partly unknown as doubtful and does
    not follow it.
    """
    if not known(text):
        shell.doubt(line, [text])
        return NOT_KNOWN
    before, shell.words.arguments = shell.words.arguments, arguments or shell.words.arguments
    outer, shell.outer = shell.outer, line
    try:
        return shell.whole(parsed(text)) if ends else shell.block(parsed(text).children)
    except ShellError as error:
        raise ShellError(line, error.rule) from None
    except LeaveError as left:
        if left.word != "return" and not ends:
            raise
        return left.answer
    finally:
        shell.words.arguments, shell.outer = before, outer


def _function(shell: Interpreter, name: str, words: list[str]) -> Answer:
    before, shell.words.arguments = shell.words.arguments, list(words)
    shell.returnable += 1
    try:
        with shell.own_locals():
            return shell.statement(shell.functions[name])
    except LeaveError as left:
        if left.word == "exit":
            raise
        return left.answer
    finally:
        shell.words.arguments = before
        shell.returnable -= 1


def assign(shell: Interpreter, node: Node) -> Answer:
    """Follows one assignment, `NAME=VALUE` or `NAME+=VALUE`; its status is that of the last substituted
    command in the value, else 0. The value of an array or of a variable with attributes is unknown.
    """
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    shell.substituted = 0
    text = shell.words.text(value) if value is not None else ""
    key = text_of(name) if name is not None else ""
    if "+=" in text_of(node)[: len(key) + 2]:
        text = shell.variables.get(key, "") + text
    bare = key.partition("[")[0]
    shell.variables[bare] = UNKNOWN if bare != key or bare in shell.opaque else text
    return Answer(shell.substituted)


def assignments(shell: Interpreter, node: Node) -> Answer:
    """Follows the assignments of one line, also those of `export`, `readonly`, `local` and `declare`."""
    word = text_of(node.children[0]) if node.type == "declaration_command" else ""
    flags = "".join(text_of(one)[1:] for one in node.named_children if text_of(one).startswith("-"))
    for child in node.named_children:
        place = child.child_by_field_name("name") if child.type == "variable_assignment" else child
        name = text_of(place) if place is not None else ""
        if name.startswith("-"):
            continue
        if word == "local" or (word in ("declare", "typeset") and "g" not in flags):
            shell.localize(name)
        if set("iaAnlu") & set(flags):
            shell.opaque.add(name)
        if word == "export" or "x" in flags:
            shell.exported.add(name)
        if child.type == "variable_assignment":
            assign(shell, child)
    return Answer()


def unset(shell: Interpreter, node: Node) -> Answer:
    """Follows `unset`: removes the variables that it names, and with `-f` the functions."""
    for child in node.named_children:
        shell.variables.pop(text_of(child), None)
        if text_of(node).split()[1:2] == ["-f"]:
            shell.functions.pop(text_of(child), None)
    return Answer()


def define(shell: Interpreter, node: Node) -> Answer:
    """Follows the definition of a function."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        shell.functions[text_of(name)] = body
        shell.uncertain.discard(text_of(name))
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
