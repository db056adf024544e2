"""Follows a shell script's commands in order: conditions, loops, functions; unknown values stay unknown.

If the result of a condition is unknown, it follows both branches without acting, and reports each command
that would act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tree_sitter import Node

from .arithmetic import arithmetic
from .expansion import Expansion
from .parsing import ShellError, line_of, parsed, text_of
from .programs import program
from .tests import opposite, test
from .values import NOT_KNOWN, UNKNOWN, Act, Answer, known, matches, status_of

MOST_STEPS = 20_000  # commands of one script, those of its loops counted each time
DEEPEST = 60  # functions and constructs within one another
HARMLESS = frozenset(
    [
        "echo",
        "printf",
        "sleep",
        "true",
        ":",
        "wait",
        "set",
        "shopt",
        "ulimit",
        "umask",
        "trap",
        "exit",
        "return",
        "break",
        "continue",
        "local",
    ]
)
Report = Callable[[int, list[str]], None]


class LeaveError(Exception):
    """Raised by exit, return, break and continue."""

    def __init__(self, word: str, answer: Answer) -> None:
        super().__init__(word)
        self.word, self.answer = word, answer


@dataclass
class Shell:
    """The shell of one machine; `act` applies its commands, `doubt` receives those that may not run."""

    act: Act
    doubt: Report
    variables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # that the script has written
    assumed: Report | None = None  # commands taken as successful, since others depend on it

    def __post_init__(self) -> None:
        self.words = Expansion(self.variables, self._output)
        self.functions: dict[str, Node] = {}
        self.status: int | None = 0
        self._steps = self._depth = 0
        self.doubtful = False
        self._outer: int | None = None  # the line of `sh -c` while its text runs

    def run(self, text: str, arguments: list[str] | None = None) -> Answer:
        """Follows a script and returns its answer; ShellError with the line that cannot be followed."""
        self.words.arguments = arguments or ["sh"]
        try:
            return self._block(parsed(text).children)
        except LeaveError as left:
            return left.answer
        except RecursionError:
            raise ShellError(1, "is nested too deep") from None

    def _output(self, node: Node) -> str:
        """Returns the output of a substituted command, which runs in a subshell."""
        children = [child for child in node.children if child.is_named]
        with self._own_variables():
            try:
                return self._block(children).output
            except LeaveError as left:
                return left.answer.output

    @contextmanager
    def _own_variables(self) -> Iterator[None]:
        before = dict(self.variables)
        try:
            yield
        finally:
            self.variables.clear()
            self.variables.update(before)

    @contextmanager
    def _in_doubt(self) -> Iterator[None]:
        """Marks commands in the block as possibly not run: they have no effect, and variables that they set
        become unknown.
        """
        was, before = self.doubtful, dict(self.variables)
        self.doubtful = True
        try:
            yield
        except LeaveError:
            pass  # the rest of this branch; what comes after it is taken as run
        finally:
            self.doubtful = was
            for name in self.variables.keys() | before.keys():
                if self.variables.get(name) != before.get(name):
                    self.variables[name] = UNKNOWN

    def _block(self, nodes: list[Node]) -> Answer:
        answer, output = Answer(), ""
        for node in nodes:
            if node.is_named and node.type not in ("comment", "heredoc_body"):
                answer = self._statement(node)
                output += answer.output
                self.status = answer.status
        return Answer(answer.status, output)

    def _statement(self, node: Node) -> Answer:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ShellError(line_of(node), f"runs more than {MOST_STEPS} commands")
        self._depth += 1
        if self._depth > DEEPEST:
            raise ShellError(line_of(node), f"calls or nests more than {DEEPEST} deep")
        try:
            return _STATEMENTS.get(node.type, Shell._other)(self, node)
        finally:
            self._depth -= 1

    def _other(self, node: Node) -> Answer:
        self.doubt(line_of(node), [text_of(node)[:60]])
        return NOT_KNOWN

    # Simple commands

    def _command(self, node: Node, stdin: str = "") -> Answer:
        words = [word for child in _words(node) for word in self.words.fields(child)]
        given = [child for child in node.children if child.type == "variable_assignment"]
        for one in given:
            self._assign(one)
        for child in node.children:
            if child.type == "herestring_redirect":
                stdin = "".join(self.words.text(one) for one in child.named_children) + "\n"
        return self._call(words, line_of(node), stdin) if words else Answer()

    def _call(self, words: list[str], line: int, stdin: str) -> Answer:
        name, *rest = words
        line = self._outer or line
        if name in ("sudo", "command", "builtin", "exec", "nohup", "eval", "time", "env") and rest:
            if name == "eval":
                return self._nested(" ".join(rest), [], line)
            return self._call(rest, line, stdin)
        if name in self.functions:
            return self._function(name, words)
        if name in ("sh", "bash", "ash", "dash", "/bin/sh", "/bin/bash", "/bin/ash") and rest:
            if rest[0].startswith("-") and rest[0].endswith("c") and len(rest) > 1:
                with self._own_variables():
                    return self._nested(rest[1], rest[2:] or [name], line)
            if rest[0] in self.files:
                return self._nested(self.files[rest[0]], rest, line)
        if name == "tee" and rest and rest[-1].startswith("/proc/sys/"):
            return self._write(rest[-1], ">", Answer(0, stdin), line)
        if name in ("exit", "return", "break", "continue"):
            raise LeaveError(name, Answer(_number(rest, self.status)))
        if name in ("shift",):
            del self.words.arguments[1 : 1 + (_number(rest, 1) or 1)]
            return Answer()
        if name in ("test", "[", "[["):
            inner = rest[:-1] if name != "test" and rest[-1:] in (["]"], ["]]"]) else rest
            return status_of(self._file_test(inner) if inner[:1] and inner[0] in _FILE else test(inner))
        if name == "read":
            first = stdin.partition("\n")[0]
            names = [one for one in rest if not one.startswith("-")]
            parts = first.split(None, len(names) - 1) if names else []
            for one, part in zip(names, [*parts, *[""] * len(names)], strict=False):
                self.variables[one] = part
            return Answer(0 if known(stdin) and stdin else None)
        if (answer := program(words, stdin, self.variables, self.files)) is not None:
            return answer
        if self.doubtful:
            self.doubt(line, words)
            return NOT_KNOWN
        return self.act(words, line, stdin) or NOT_KNOWN

    def _file_test(self, words: list[str]) -> bool | None:
        return True if len(words) == 2 and words[1] in self.files and words[0] in ("-e", "-f", "-s") else None

    def _nested(self, text: str, arguments: list[str], line: int) -> Answer:
        """Follows the text of `sh -c` or `eval` as a script, whose lines count as the command's line."""
        if not known(text):
            self.doubt(line, [text])
            return NOT_KNOWN
        before, self.words.arguments = self.words.arguments, arguments or self.words.arguments
        outer, self._outer = self._outer, line
        try:
            return self._block(parsed(text).children)
        except ShellError as error:
            raise ShellError(line, error.rule) from None
        except LeaveError as left:
            return left.answer
        finally:
            self.words.arguments, self._outer = before, outer

    def _function(self, name: str, words: list[str]) -> Answer:
        before, self.words.arguments = self.words.arguments, words
        try:
            return self._statement(self.functions[name])
        except LeaveError as left:
            if left.word == "exit":
                raise
            return left.answer
        finally:
            self.words.arguments = before

    def _assign(self, node: Node) -> Answer:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        text = self.words.text(value) if value is not None else ""
        key = text_of(name) if name is not None else ""
        if "+=" in text_of(node)[: len(key) + 2]:
            text = self.variables.get(key, "") + text
        self.variables[key] = text
        return Answer()

    def _assignments(self, node: Node) -> Answer:
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child)
        return Answer()

    def _unset(self, node: Node) -> Answer:
        for child in node.named_children:
            self.variables.pop(text_of(child), None)
        return Answer()

    def _define(self, node: Node) -> Answer:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[text_of(name)] = body
        return Answer()

    # Redirections and pipes

    def _redirected(self, node: Node) -> Answer:
        body, stdin = node.child_by_field_name("body"), ""
        targets: list[tuple[str, str]] = []
        for redirect in node.children_by_field_name("redirect"):
            if redirect.type == "heredoc_redirect":
                stdin = self._heredoc(redirect)
                targets += [
                    (one.children[0].type, self.words.text(place))
                    for one in redirect.named_children
                    if one.type == "file_redirect" and (place := one.child_by_field_name("destination"))
                ]
            elif redirect.type == "herestring_redirect":
                stdin = "".join(self.words.text(one) for one in redirect.named_children) + "\n"
            elif (place := redirect.child_by_field_name("destination")) is not None:
                numbers = [text_of(one) for one in redirect.children if one.type == "file_descriptor"]
                sign = next(one.type for one in redirect.children if not one.is_named)
                if numbers in ([], ["1"]) or sign == "<":
                    targets.append((sign, self.words.text(place)))
        for sign, place_text in targets:
            if sign == "<":
                stdin = self.files.get(place_text, UNKNOWN)
        answer = self._fed(body, stdin) if body is not None else Answer()
        for sign, place_text in targets:
            if sign in (">", ">>", ">|", "&>", "&>>"):
                answer = self._write(place_text, sign, answer, line_of(node))
        return answer

    def _heredoc(self, node: Node) -> str:
        start = next((text_of(one) for one in node.children if one.type == "heredoc_start"), "")
        body = next((one for one in node.children if one.type == "heredoc_body"), None)
        if body is None:
            return ""
        text = self._heredoc_text(body, quoted=any(c in start for c in "'\"\\"))
        if any(one.type == "<<-" for one in node.children):
            text = "\n".join(line.lstrip("\t") for line in text.split("\n"))
        return text

    def _heredoc_text(self, body: Node, quoted: bool) -> str:
        content, at, found = body.text or b"", 0, ""
        if not quoted and b"`" in content:
            return UNKNOWN
        for child in [] if quoted else body.named_children:
            if child.type != "heredoc_content":
                found += content[at : child.start_byte - body.start_byte].decode("utf-8", "replace")
                found += self.words.text(child)
                at = child.end_byte - body.start_byte
        return found + content[at:].decode("utf-8", "replace")

    def _write(self, place: str, sign: str, answer: Answer, line: int) -> Answer:
        """Writes output into a file; output to /proc/sys becomes a setting of the kernel."""
        if place in ("/dev/null", "/dev/stderr", "/dev/stdout", "&2", "&1", "2"):
            return Answer(answer.status)
        if place.startswith("/proc/sys/"):
            setting = place.removeprefix("/proc/sys/").replace("/", ".")
            return self._call(["sysctl", "-w", f"{setting}={answer.output.strip()}"], line, "")
        if self.doubtful:
            self.doubt(line, [">", place])
            self.files[place] = UNKNOWN
        else:
            self.files[place] = (self.files.get(place, "") if ">>" in sign else "") + answer.output
        return Answer(answer.status)

    def _fed(self, node: Node, stdin: str) -> Answer:
        if node.type == "command":
            return self._command(node, stdin)
        if node.type == "while_statement" and stdin:
            return self._while(node, stdin)
        return self._statement(node)

    def _pipeline(self, node: Node) -> Answer:
        answer = Answer()
        with self._own_variables():
            for number, child in enumerate(node.named_children):
                if child.type == "redirected_statement" and number:
                    answer = self._statement(child)  # its input is a file's
                else:
                    answer = self._fed(child, answer.output) if number else self._statement(child)
        return answer

    # Conditions and loops

    def _list(self, node: Node) -> Answer:
        left, right = node.named_children[0], node.named_children[-1]
        sign = next(child.type for child in node.children if child.type in ("&&", "||"))
        first = self._statement(left)
        if first.status is None:
            return self._after_unknown(left, sign, right, first)
        if (first.status == 0) != (sign == "&&"):
            return first
        second = self._statement(right)
        return Answer(second.status, first.output + second.output)

    def _after_unknown(self, left: Node, sign: str, right: Node, first: Answer) -> Answer:
        """Follows `&&` and `||` after an unknown status: a program counts as successful, a test makes the
        rest doubtful.
        """
        if left.type in ("command", "list", "redirected_statement", "pipeline") and not _is_test(left):
            if sign == "||":
                with self._in_doubt():
                    self._statement(right)
                return Answer(None, first.output)
            if self.assumed is not None and not self.doubtful:
                self.assumed(line_of(left), [text_of(left)])
            return self._statement(right)
        with self._in_doubt():
            self._statement(right)
        return NOT_KNOWN

    def _negated(self, node: Node) -> Answer:
        answer = self._statement(node.named_children[-1])
        return status_of(None if answer.status is None else answer.status != 0)

    def _test(self, node: Node) -> Answer:
        if text_of(node).startswith("(("):
            value = arithmetic(text_of(node)[2:-2], self.variables, line_of(node))
            return status_of(value != "0" if known(value) else None)
        inner = [child for child in node.children if child.is_named]
        return status_of(self._holds(inner[0], text_of(node).startswith("[[")) if inner else False)

    def _holds(self, node: Node, patterns: bool) -> bool | None:
        match node.type:
            case "unary_expression" if node.children[0].type == "!":
                return opposite(self._holds(node.children[-1], patterns))
            case "parenthesized_expression":
                return self._holds(node.named_children[0], patterns)
            case "binary_expression":
                return self._binary(node, patterns)
            case "unary_expression":
                words = [text_of(node.children[0]), self.words.text(node.children[-1])]
                return self._file_test(words) if words[0] in _FILE else test(words)
            case "negated_command" | "test_command" | "command":
                answer = self._statement(node)
                return None if answer.status is None else answer.status == 0
        return test([self.words.text(node)])

    def _binary(self, node: Node, patterns: bool) -> bool | None:
        left, sign, right = node.children[0], text_of(node.children[1]), node.children[-1]
        if sign in ("&&", "||", "-a", "-o"):
            a, b = self._holds(left, patterns), self._holds(right, patterns)
            return test([_word(a), sign, _word(b)]) if None not in (a, b) else _mixed(a, b, sign)
        if patterns and right.type in ("string", "raw_string"):
            patterns = False
        return test([self.words.text(left), sign, self.words.text(right)], patterns)

    def _if(self, node: Node) -> Answer:
        condition, body, rest = _parts(node)
        answer = self._block(condition)
        if answer.status is None:
            for branch in [body, *[one.children for one in rest]]:
                with self._in_doubt():
                    self._block(branch)
            return NOT_KNOWN
        if answer.status == 0:
            return self._block(body)
        for number, clause in enumerate(rest):
            if clause.type == "else_clause":
                return self._block(clause.children)
            inner_condition, inner_body, _ = _parts(clause)
            inner = self._block(inner_condition)
            if inner.status == 0:
                return self._block(inner_body)
            if inner.status is None:
                for branch in [inner_body, *[one.children for one in rest[number + 1 :]]]:
                    with self._in_doubt():
                        self._block(branch)
                return NOT_KNOWN
        return Answer()

    def _case(self, node: Node) -> Answer:
        value_node = node.child_by_field_name("value")
        value = self.words.text(value_node) if value_node is not None else ""
        undecided = False
        for item in [child for child in node.named_children if child.type == "case_item"]:
            patterns = item.children_by_field_name("value")
            found = [matches(value, self.words.text(one)) for one in patterns]
            body = [child for child in item.named_children if child not in patterns]
            if True in found and not undecided:
                return self._block(body)
            if True in found or None in found:
                undecided = True
                with self._in_doubt():
                    self._block(body)
        return NOT_KNOWN if undecided else Answer()

    def _for(self, node: Node) -> Answer:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        name, given = text_of(variable) if variable is not None else "", node.children_by_field_name("value")
        listed = any(child.type == "in" for child in node.children)
        values = [w for one in given for w in self.words.fields(one)] if listed else self.words.arguments[1:]
        if not all(map(known, values)):
            self.variables[name] = UNKNOWN
            with self._in_doubt():
                self._block(body.children if body is not None else [])
            return NOT_KNOWN
        return self._rounds(body, lambda: bool(values) and self._next(name, values), "")

    def _next(self, name: str, values: list[str]) -> bool:
        self.variables[name] = values.pop(0)
        return True

    def _while(self, node: Node, stdin: str = "") -> Answer:
        until = node.children[0].type == "until"
        condition, body = node.children_by_field_name("condition"), node.child_by_field_name("body")
        words = [text_of(one) for one in condition if one.is_named]
        if words in (["true"], [":"], ["1"]) or (until and words == ["false"]):
            with self._in_doubt():  # it goes on beside the lab, or ends by what nothing here knows
                self._block(body.children if body is not None else [])
            return NOT_KNOWN
        if stdin:
            return self._reading(condition, body, stdin)

        def again() -> bool | None:
            status = self._block(condition).status
            return None if status is None else (status == 0) != until

        return self._rounds(body, again, "")

    def _reading(self, condition: list[Node], body: Node | None, stdin: str) -> Answer:
        """Follows `while read NAME` over the lines of known text."""
        command = next((one for one in condition if one.type == "command"), None)
        if command is None or not text_of(command).startswith("read") or not known(stdin):
            with self._in_doubt():
                self._block(body.children if body is not None else [])
            return NOT_KNOWN
        lines = stdin.splitlines()

        def again() -> bool:
            return bool(lines) and self._command(command, lines.pop(0) + "\n") is not None

        return self._rounds(body, again, "")

    def _rounds(self, body: Node | None, again: Callable[[], bool | None], output: str) -> Answer:
        children = body.children if body is not None else []
        while goes := again():
            try:
                output += self._block(children).output
            except LeaveError as left:
                if left.word == "break":
                    break
                if left.word != "continue":
                    raise
        if goes is None:
            with self._in_doubt():
                self._block(children)
            return NOT_KNOWN
        return Answer(0, output)

    def _c_for(self, node: Node) -> Answer:
        parts = [node.child_by_field_name(key) for key in ("initializer", "condition", "update", "body")]
        first, condition, update, body = parts
        line = line_of(node)
        if first is not None:
            arithmetic(text_of(first), self.variables, line)
        started = False

        def again() -> bool | None:
            nonlocal started
            if started and update is not None:
                arithmetic(text_of(update), self.variables, line)
            started = True
            value = arithmetic(text_of(condition), self.variables, line) if condition is not None else "1"
            return value != "0" if known(value) else None

        return self._rounds(body, again, "")

    def _group(self, node: Node) -> Answer:
        if text_of(node).startswith("(("):
            return self._test(node)
        return self._block(node.children)

    def _subshell(self, node: Node) -> Answer:
        with self._own_variables():
            try:
                return self._block(node.children)
            except LeaveError as left:
                return left.answer


_FILE = ("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S", "-v")
_STATEMENTS: dict[str, Callable[[Shell, Node], Answer]] = {
    "command": Shell._command, "redirected_statement": Shell._redirected, "list": Shell._list,
    "pipeline": Shell._pipeline, "negated_command": Shell._negated, "test_command": Shell._test,
    "if_statement": Shell._if, "case_statement": Shell._case, "for_statement": Shell._for,
    "while_statement": Shell._while, "c_style_for_statement": Shell._c_for,
    "function_definition": Shell._define,
    "compound_statement": Shell._group, "do_group": Shell._group, "subshell": Shell._subshell,
    "variable_assignment": Shell._assign, "variable_assignments": Shell._assignments,
    "declaration_command": Shell._assignments, "unset_command": Shell._unset,
}  # fmt: skip


def _words(node: Node) -> list[Node]:
    """Returns the name and the arguments of a command."""
    return [
        child
        for number, child in enumerate(node.children)
        if node.field_name_for_child(number) in ("name", "argument")
    ]


def _parts(node: Node) -> tuple[list[Node], list[Node], list[Node]]:
    """Returns the condition, the body and the following clauses of an `if` or `elif`."""
    children = list(node.children)
    then = next(i for i, child in enumerate(children) if child.type == "then")
    clauses = [child for child in children if child.type in ("elif_clause", "else_clause")]
    body = [child for child in children[then + 1 :] if child not in clauses]
    return children[1:then], body, clauses


def _is_test(node: Node) -> bool:
    while node.type in ("list", "redirected_statement") and node.named_children:
        node = node.named_children[-1 if node.type == "list" else 0]
    return node.type == "test_command" or text_of(node).split(None, 1)[:1] in (["test"], ["["])


def _number(words: list[str], default: int | None) -> int | None:
    return int(words[0]) if words and words[0].isdigit() else default


def _word(holds: bool | None) -> str:
    return "1" if holds else ""


def _mixed(a: bool | None, b: bool | None, sign: str) -> bool | None:
    decided = sign in ("||", "-o")
    return decided if decided in (a, b) else None
