"""Holds the state of a shell that follows a script: variables, functions, files, and doubt about commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tree_sitter import Node

from .expansion import Expansion
from .parsing import ShellError, line_of, parsed
from .values import UNKNOWN, Act, Answer

MOST_STEPS = 20_000  # commands of one script, those of its loops counted each time
DEEPEST = 60  # functions and constructs within one another
Report = Callable[[int, list[str]], None]


class LeaveError(Exception):
    """Raised for exit, return, break and continue (`word`), with an answer that has their status."""

    def __init__(self, word: str, answer: Answer) -> None:
        super().__init__(word)
        self.word, self.answer = word, answer


@dataclass
class Interpreter:
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
        self.variables.setdefault("?", "0")
        self._steps = self._depth = 0
        self.doubtful = False
        self.outer: int | None = None  # the line of `sh -c` while its text runs

    def run(self, text: str, arguments: list[str] | None = None) -> Answer:
        """Follows a script and returns its answer; ShellError with the line that cannot be followed."""
        self.words.arguments = arguments or ["sh"]
        try:
            return self.block(parsed(text).children)
        except LeaveError as left:
            return left.answer
        except RecursionError:
            raise ShellError(1, "is nested too deep") from None

    def _output(self, node: Node) -> str:
        """Returns the output of a substituted command, which runs in a subshell."""
        children = [child for child in node.children if child.is_named]
        with self.own_variables():
            try:
                return self.block(children).output
            except LeaveError as left:
                return left.answer.output

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
        """Marks commands in the block as possibly not run: they have no effect, and variables that they set
        become unknown. Suppresses a LeaveError, which ends the block.
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

    def block(self, nodes: list[Node]) -> Answer:
        """Follows statements in order; returns the last status and all output."""
        answer, output = Answer(), ""
        for node in nodes:
            if node.is_named and node.type not in ("comment", "heredoc_body"):
                answer = self.statement(node)
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
        return answer

    def follow(self, node: Node) -> Answer:
        """Follows one statement; subclasses implement it."""
        raise NotImplementedError
