"""Interprets a shell script: its commands in order, conditions, loops, functions; unknown values stay
unknown.

If the result of a condition is unknown, both branches are interpreted without acting, and each command that
would act is reported.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from . import commands, files, flow
from .parsing import line_of, text_of
from .state import Interpreter
from .values import NOT_KNOWN, Answer

_STATEMENTS: dict[str, Callable[[Interpreter, Node], Answer]] = {
    "command": commands.command, "redirected_statement": files.redirected, "list": flow.and_or,
    "pipeline": files.pipeline, "negated_command": flow.negated, "test_command": flow.condition,
    "if_statement": flow.if_statement, "case_statement": flow.case_statement,
    "for_statement": flow.for_statement, "while_statement": flow.while_statement,
    "c_style_for_statement": flow.c_style_for, "function_definition": commands.define,
    "compound_statement": flow.group, "do_group": flow.group, "subshell": flow.subshell,
    "variable_assignment": commands.assign, "variable_assignments": commands.assignments,
    "declaration_command": commands.assignments, "unset_command": commands.unset,
}  # fmt: skip


class Shell(Interpreter):
    """The shell of one machine, with the statements of the language."""

    def follow(self, node: Node) -> Answer:
        """Interprets one statement of the script and returns its exit status and output; passes a statement
        of an unknown kind to `doubt` and returns NOT_KNOWN.
        """
        if (statement := _STATEMENTS.get(node.type)) is not None:
            return statement(self, node)
        self.doubt(line_of(node), [text_of(node)[:60]])
        return NOT_KNOWN
