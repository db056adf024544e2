"""Holds the state of a shell that follows a script: variables, functions, files, and doubt about commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tree_sitter import Node

from .expansion import Expansion
from .parsing import ShellError, line_of, parsed
from .values import UNKNOWN, Act, Answer

MOST_STEPS = 20_000  # largest number of commands of one script; each turn of a loop counts
# Statements whose error ends a script after `set -e`; in others, a statement within them does.
_SIMPLE = (
    "command", "pipeline", "subshell", "test_command", "redirected_statement", "variable_assignment",
)  # fmt: skip
DEEPEST = 60  # largest depth of functions and constructs
Report = Callable[[int, list[str]], None]


class LeaveError(Exception):
    """Raised for exit, return, break and continue (`word`), with an answer that has their status. loops: the
    number of loops that `break` and `continue` leave.
    """

    def __init__(self, word: str, answer: Answer, loops: int = 1) -> None:
        super().__init__(word)
        self.word, self.answer, self.loops = word, answer, loops


@dataclass
class Interpreter:
    """The shell of one machine; `act` applies its commands, `doubt` receives those that may not run."""

    act: Act
    doubt: Report
    variables: dict[str, str] = field(default_factory=dict)
    # path -> content of a file that the script has written
    files: dict[str, str] = field(default_factory=dict)
    # receives commands that are assumed to succeed, because others depend on them
    assumed: Report | None = None

    def __post_init__(self) -> None:
        self.words = Expansion(self.variables, self._output)
        self.words.plain = lambda: self.plain
        self.functions: dict[str, Node] = {}
        self.uncertain: set[str] = set()  # names of functions whose body is not known
        self.status: int | None = 0
        self.variables.setdefault("?", "0")
        self._steps = self._depth = 0
        self.doubtful = False
        self.fed: str | None = None  # what is left of the input of the group that runs; None: it has none
        self.paused = False  # whether a `sleep` ran since the last change that was reported as late
        self.outer: int | None = None  # line of `sh -c` while its text is followed
        self.exported = set(self.variables)  # names of the variables that other shells inherit
        self.opaque: set[str] = set()  # names of variables with attributes, whose values are unknown
        self.pipefail = False  # whether `set -o pipefail` is on
        self.stops_at_errors = False  # whether `set -e` is on
        self.lenient = 0  # number of enclosing conditions, whose errors do not stop the script
        self.substituted: int | None = 0  # status of the last substituted command
        self.at_exit = ""  # text of `trap TEXT EXIT`
        self.plain = False  # whether the shell is one other than bash
        self.returnable = 0  # number of enclosing functions and sourced files
        # for each running function, the old values of its local variables
        self._locals: list[dict[str, str | None]] = []

    def run(self, text: str, arguments: list[str] | None = None) -> Answer:
        """Follows a script and returns its answer; ShellError with the line that cannot be followed."""
        self.words.arguments = arguments or ["sh"]
        self.stops_at_errors = bool(re.match(r"#!\s*\S+ +-\w*e", text))
        try:
            return self.whole(parsed(text))
        except RecursionError:
            raise ShellError(1, "is nested too deep") from None

    def whole(self, root: Node) -> Answer:
        """Follows a whole script and then the trap that it set for its end; returns the script's answer."""
        try:
            answer = self.block(root.children)
        except LeaveError as left:
            answer = left.answer
        if self.at_exit:
            text, self.at_exit = self.at_exit, ""
            self.variables["?"] = UNKNOWN if answer.status is None else str(answer.status)
            try:
                answer = Answer(answer.status, answer.output + self.block(parsed(text).children).output)
            except LeaveError as left:
                answer = left.answer
        return answer

    def _output(self, node: Node) -> str:
        """Returns the output of a substituted command, which runs in a subshell."""
        children = [child for child in node.children if child.is_named]
        with self.own_variables(), self.in_condition(), self.own_state():
            try:
                answer = self.block(children)
            except LeaveError as left:
                answer = left.answer
        self.substituted = answer.status
        return answer.output

    @contextmanager
    def in_condition(self) -> Iterator[None]:
        """Marks statements in the block as parts of a condition, which `set -e` does not concern."""
        self.lenient += 1
        try:
            yield
        finally:
            self.lenient -= 1

    @contextmanager
    def own_state(self) -> Iterator[None]:
        """Restores the trap, the options, the arguments and the functions after the block, as the end of a
        subshell does. The block begins without a trap.
        """
        before, functions = (self.stops_at_errors, list(self.words.arguments)), dict(self.functions)
        trap, self.at_exit = self.at_exit, ""
        try:
            yield
        finally:
            self.at_exit = trap
            self.stops_at_errors, self.words.arguments = before
            self.functions.clear()
            self.functions.update(functions)

    @contextmanager
    def own_locals(self) -> Iterator[None]:
        """Gives variables that the block declares local their old values back at its end."""
        self._locals.append({})
        try:
            yield
        finally:
            self._restore(self._locals.pop())

    def localize(self, name: str) -> None:
        """Makes a variable local to the function that runs; without a function it does nothing."""
        if self._locals:
            self._locals[-1].setdefault(name, self.variables.get(name))

    @contextmanager
    def own_environment(self, names: list[str]) -> Iterator[None]:
        """Exports the variables for the block, and gives them their old values back at its end."""
        before = {name: self.variables.get(name) for name in names}
        added = set(names) - self.exported
        self.exported |= added
        try:
            yield
        finally:
            self.exported -= added
            self._restore(before)

    def _restore(self, before: dict[str, str | None]) -> None:
        for name, value in before.items():
            if value is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = value

    @contextmanager
    def own_variables(self) -> Iterator[None]:
        """Restores the variables after the block, as the end of a subshell does."""
        before = dict(self.variables)
        try:
            yield
        finally:
            self.variables.clear()
            self.variables.update(before)

    @contextmanager
    def in_doubt(self) -> Iterator[None]:
        """Marks commands in the block as possibly not run: they have no effect, and variables and arguments
        that they set become unknown, and functions that they define uncertain. Suppresses a LeaveError, which
        ends the block.
        """
        was, before = self.doubtful, dict(self.variables)
        arguments, functions = list(self.words.arguments), dict(self.functions)
        self.doubtful = True
        try:
            yield
        except LeaveError:
            pass  # skips the rest of this branch; the commands behind it count as run
        finally:
            self.doubtful = was
            if self.words.arguments != arguments:
                self.words.arguments[:] = [arguments[0], *[UNKNOWN] * len(arguments[1:])]
            self.uncertain |= {
                name for name, body in self.functions.items() if functions.get(name) is not body
            }
            for name in self.variables.keys() | before.keys():
                if self.variables.get(name) != before.get(name):
                    self.variables[name] = UNKNOWN

    def block(self, nodes: list[Node]) -> Answer:
        """Follows statements in order; returns the last status and all output."""
        answer, output = Answer(), ""
        for node in nodes:
            if node.is_named and node.type not in ("comment", "heredoc_body"):
                try:
                    answer = self.statement(node)
                except LeaveError as left:
                    left.answer = Answer(left.answer.status, output + left.answer.output)
                    raise
                output += answer.output
                self.status = answer.status
        return Answer(answer.status, output)

    def statement(self, node: Node) -> Answer:
        """Follows one statement; raises ShellError beyond MOST_STEPS statements or DEEPEST nested ones."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ShellError(line_of(node), f"runs more than {MOST_STEPS} commands")
        self._depth += 1
        if self._depth > DEEPEST:
            raise ShellError(line_of(node), f"calls or nests more than {DEEPEST} deep")
        try:
            answer = self.follow(node)
        finally:
            self._depth -= 1
        self.variables["?"] = UNKNOWN if answer.status is None else str(answer.status)
        if self.stops_at_errors and not self.lenient and answer.status and node.type in _SIMPLE:
            raise LeaveError("exit", answer)
        return answer

    def follow(self, node: Node) -> Answer:
        """Follows one statement; subclasses implement it."""
        raise NotImplementedError
