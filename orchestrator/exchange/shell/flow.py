"""Follows conditions and loops. If the result of a condition is unknown, it follows both branches without
acting.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from . import commands
from .arithmetic import arithmetic
from .parsing import line_of, text_of
from .state import Interpreter, LeaveError
from .tests import opposite, test
from .values import NOT_KNOWN, UNKNOWN, Answer, known, matches, status_of


def and_or(shell: Interpreter, node: Node) -> Answer:
    """Follows `&&` and `||`."""
    left, right = node.named_children[0], node.named_children[-1]
    sign = next(child.type for child in node.children if child.type in ("&&", "||"))
    with shell.in_condition():
        first = shell.statement(left)
    if first.status is None:
        return _after_unknown(shell, left, sign, right, first)
    if (first.status == 0) != (sign == "&&"):
        return first
    second = shell.statement(right)
    return Answer(second.status, first.output + second.output)


def _after_unknown(shell: Interpreter, left: Node, sign: str, right: Node, first: Answer) -> Answer:
    """Follows `&&` and `||` after an unknown status. A program before `&&` counts as successful and is
    reported as assumed; after a test, or before `||`, the right side is followed in doubt.
    """
    if left.type in ("command", "list", "redirected_statement", "pipeline") and not _is_test(left):
        if sign == "||":
            with shell.in_doubt():
                shell.statement(right)
            return Answer(None, first.output)
        if shell.assumed is not None and not shell.doubtful:
            shell.assumed(line_of(left), [text_of(left)])
        return shell.statement(right)
    with shell.in_doubt():
        shell.statement(right)
    return NOT_KNOWN


def negated(shell: Interpreter, node: Node) -> Answer:
    """Follows `!`."""
    with shell.in_condition():
        answer = shell.statement(node.named_children[-1])
    return status_of(None if answer.status is None else answer.status != 0)


def condition(shell: Interpreter, node: Node) -> Answer:
    """Follows `[ ]`, `[[ ]]` and `(( ))`."""
    if text_of(node).startswith("(("):
        value = arithmetic(text_of(node)[2:-2], shell.variables, line_of(node))
        return status_of(value != "0" if known(value) else None)
    if text_of(node).startswith("[") and not text_of(node).startswith("[["):
        return commands.call(shell, ["[", *_leaves(shell, node)[1:]], line_of(node), "")
    inner = [child for child in node.children if child.is_named]
    return status_of(_holds(shell, inner[0], text_of(node).startswith("[[")) if inner else False)


def _leaves(shell: Interpreter, node: Node) -> list[str]:
    """Returns the words of `[ ]`, expanded, in their order: a test has no grammar but its words."""
    found: list[str] = []
    for child in node.children:
        if child.type in ("binary_expression", "unary_expression", "parenthesized_expression"):
            found += _leaves(shell, child)
        elif child.is_named and child.type != "test_operator":
            found += shell.words.fields(child)
        else:
            found.append(text_of(child))
    return found


def _holds(shell: Interpreter, node: Node, patterns: bool) -> bool | None:
    match node.type:
        case "unary_expression" if node.children[0].type == "!":
            return opposite(_holds(shell, node.children[-1], patterns))
        case "parenthesized_expression":
            return _holds(shell, node.named_children[0], patterns)
        case "binary_expression":
            return _binary(shell, node, patterns)
        case "unary_expression":
            words = [text_of(node.children[0]), shell.words.text(node.children[-1])]
            return commands.file_test(shell, words) if words[0] in commands.FILE_TESTS else test(words)
        case "negated_command" | "test_command" | "command":
            answer = shell.statement(node)
            return None if answer.status is None else answer.status == 0
    return test([shell.words.text(node)])


def _binary(shell: Interpreter, node: Node, patterns: bool) -> bool | None:
    left, sign, right = node.children[0], text_of(node.children[1]), node.children[-1]
    if sign in ("&&", "||", "-a", "-o"):
        a, b = _holds(shell, left, patterns), _holds(shell, right, patterns)
        return test([_word(a), sign, _word(b)]) if None not in (a, b) else _mixed(a, b, sign)
    if patterns and right.type in ("string", "raw_string"):
        patterns = False
    return test([shell.words.text(left), sign, shell.words.text(right)], patterns)


def if_statement(shell: Interpreter, node: Node) -> Answer:
    """Follows `if` with `elif` and `else`. If a condition is unknown, follows its branch and all later ones
    in doubt, without acting, and returns NOT_KNOWN.
    """
    condition, body, rest = _parts(node)
    with shell.in_condition():
        answer = shell.block(condition)
    if answer.status is None:
        for branch in [body, *[one.children for one in rest]]:
            with shell.in_doubt():
                shell.block(branch)
        return NOT_KNOWN
    if answer.status == 0:
        return shell.block(body)
    for number, clause in enumerate(rest):
        if clause.type == "else_clause":
            return shell.block(clause.children)
        inner_condition, inner_body, _ = _parts(clause)
        with shell.in_condition():
            inner = shell.block(inner_condition)
        if inner.status == 0:
            return shell.block(inner_body)
        if inner.status is None:
            for branch in [inner_body, *[one.children for one in rest[number + 1 :]]]:
                with shell.in_doubt():
                    shell.block(branch)
            return NOT_KNOWN
    return Answer()


def case_statement(shell: Interpreter, node: Node) -> Answer:
    """Follows `case`: the body of the first item that matches, and of further items after `;&` and `;;&`.
    From the first item that may match on, follows the bodies of all items that match or may match in doubt,
    and returns NOT_KNOWN.
    """
    value_node = node.child_by_field_name("value")
    value = shell.words.text(value_node) if value_node is not None else ""
    undecided = falls = False
    done = Answer()
    for item in [child for child in node.named_children if child.type == "case_item"]:
        patterns = item.children_by_field_name("value")
        found = [matches(value, shell.words.pattern(one)) for one in patterns]
        body = [child for child in item.named_children if child not in patterns]
        on = next((one.type for one in item.children if one.type in (";&", ";;&")), "")
        if (True in found or falls) and not undecided:
            answer = shell.block(body)
            done = Answer(answer.status, done.output + answer.output)
            falls = on == ";&"
            if not on:
                return done
            continue
        if True in found or None in found:
            undecided = True
            with shell.in_doubt():
                shell.block(body)
    return NOT_KNOWN if undecided else done


def for_statement(shell: Interpreter, node: Node) -> Answer:
    """Follows `for NAME in WORDS`, or over the arguments without `in`; if a word is unknown, follows the body
    once in doubt and returns NOT_KNOWN.
    """
    variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    name, given = text_of(variable) if variable is not None else "", node.children_by_field_name("value")
    listed = any(child.type == "in" for child in node.children)
    values = [w for one in given for w in shell.words.fields(one)] if listed else shell.words.arguments[1:]
    if not all(map(known, values)):
        shell.variables[name] = UNKNOWN
        with shell.in_doubt():
            shell.block(body.children if body is not None else [])
        return NOT_KNOWN
    return _rounds(shell, body, lambda: bool(values) and _next(shell, name, values), "")


def _next(shell: Interpreter, name: str, values: list[str]) -> bool:
    shell.variables[name] = values.pop(0)
    return True


def while_statement(shell: Interpreter, node: Node, stdin: str = "") -> Answer:
    """Follows `while` and `until`; `stdin` is the text that `read` takes its lines from. Follows the body
    of an endless loop, such as `while true`, once in doubt, and so also if the condition becomes unknown;
    then returns NOT_KNOWN.
    """
    until = node.children[0].type == "until"
    condition, body = node.children_by_field_name("condition"), node.child_by_field_name("body")
    words = [text_of(one) for one in condition if one.is_named]
    if words in (["true"], [":"], ["1"]) or (until and words == ["false"]):
        with shell.in_doubt():  # the loop runs beside the lab, or an unknown event ends it
            shell.block(body.children if body is not None else [])
        if not _ends(node):
            shell.doubtful = True  # commands that follow the loop may not run
        return NOT_KNOWN
    if stdin:
        return _reading(shell, condition, body, stdin)

    def again() -> bool | None:
        with shell.in_condition():
            status = shell.block(condition).status
        return None if status is None else (status == 0) != until

    return _rounds(shell, body, again, "")


def _ends(node: Node) -> bool:
    """Returns whether what follows an endless loop may run: the loop has a word that ends it, or the script
    does not wait for it, or it is in a function.
    """
    if re.search(r"\b(break|exit|return|exec|kill)\b", text_of(node)):
        return True
    above: Node | None = node
    while above is not None:
        after = above.next_sibling
        if above.type in ("function_definition", "subshell", "pipeline") or (after and after.type == "&"):
            return True
        above = above.parent
    return False


def _reading(shell: Interpreter, condition: list[Node], body: Node | None, stdin: str) -> Answer:
    """Follows `while read NAME` over the lines of known text; for another condition or unknown text, follows
    the body once in doubt.
    """
    command = next((one for one in condition if one.type == "command"), None)
    name = command.child_by_field_name("name") if command is not None else None
    if command is None or name is None or text_of(name) != "read" or not known(stdin):
        with shell.in_doubt():
            shell.block(body.children if body is not None else [])
        return NOT_KNOWN
    lines = stdin.splitlines()

    def again() -> bool:
        return bool(lines) and commands.command(shell, command, lines.pop(0) + "\n") is not None

    return _rounds(shell, body, again, "")


def _rounds(shell: Interpreter, body: Node | None, again: Callable[[], bool | None], output: str) -> Answer:
    children = body.children if body is not None else []
    status: int | None = 0
    while goes := again():
        try:
            answer = shell.block(children)
            output, status = output + answer.output, answer.status
        except LeaveError as left:
            if left.word not in ("break", "continue"):
                left.answer = Answer(left.answer.status, output + left.answer.output)
                raise
            output, status = output + left.answer.output, 0
            if left.loops > 1:
                raise LeaveError(left.word, Answer(0, output), left.loops - 1) from None
            if left.word == "break":
                break
    if goes is None:
        with shell.in_doubt():
            shell.block(children)
        return NOT_KNOWN
    return Answer(status, output)


def c_style_for(shell: Interpreter, node: Node) -> Answer:
    """Follows `for ((...; ...; ...))`."""
    line, body = line_of(node), node.child_by_field_name("body")
    head = re.match(r"for\s*\(\((.*?);(.*?);(.*?)\)\)", text_of(node), re.DOTALL)
    first, condition, update = (head[number].strip() for number in (1, 2, 3)) if head else ("", "", "")
    if first:
        arithmetic(first, shell.variables, line)
    started = False

    def again() -> bool | None:
        nonlocal started
        if started and update:
            arithmetic(update, shell.variables, line)
        started = True
        value = arithmetic(condition, shell.variables, line) if condition else "1"
        return value != "0" if known(value) else None

    return _rounds(shell, body, again, "")


def group(shell: Interpreter, node: Node) -> Answer:
    """Follows `{ }` and `(( ))`."""
    if text_of(node).startswith("(("):
        return condition(shell, node)
    return shell.block(node.children)


def subshell(shell: Interpreter, node: Node) -> Answer:
    """Follows `( )`: variables get their old values back at its end, and `exit` ends only the subshell."""
    with shell.own_variables(), shell.own_state():
        try:
            return shell.block(node.children)
        except LeaveError as left:
            return left.answer


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


def _word(holds: bool | None) -> str:
    return "1" if holds else ""


def _mixed(a: bool | None, b: bool | None, sign: str) -> bool | None:
    decided = sign in ("||", "-o")
    return decided if decided in (a, b) else None
