"""Follows redirections, here-documents and pipelines: finds a command's input, and writes its output to files
or the next command.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from . import commands, flow
from .parsing import line_of, text_of
from .state import Interpreter, LeaveError
from .values import NOT_KNOWN, UNKNOWN, Answer


def redirected(shell: Interpreter, node: Node) -> Answer:
    """Follows a command with redirected input or output. Input from a file that the script did not write is
    unknown; a redirection of the standard error alone has no effect.
    """
    body, stdin = node.child_by_field_name("body"), ""
    targets: list[tuple[str, str]] = []
    for redirect in node.children_by_field_name("redirect"):
        if redirect.type == "heredoc_redirect":
            stdin = _heredoc(shell, redirect)
            targets += [
                (one.children[0].type, shell.words.text(place))
                for one in redirect.named_children
                if one.type == "file_redirect" and (place := one.child_by_field_name("destination"))
            ]
        elif redirect.type == "herestring_redirect":
            stdin = "".join(shell.words.text(one) for one in redirect.named_children) + "\n"
        elif (place := redirect.child_by_field_name("destination")) is not None:
            numbers = [text_of(one) for one in redirect.children if one.type == "file_descriptor"]
            sign = next(one.type for one in redirect.children if not one.is_named)
            if numbers in ([], ["1"]) or sign == "<":
                targets.append((sign, shell.words.text(place)))
    for sign, place_text in targets:
        if sign == "<":
            stdin = shell.files.get(place_text, UNKNOWN)
    answer = _fed(shell, body, stdin) if body is not None else Answer()
    for sign, place_text in targets:
        if sign in (">", ">>", ">|", "&>", "&>>"):
            answer = commands.write(shell, place_text, sign, answer, line_of(node))
    for redirect in node.children_by_field_name("redirect"):
        if redirect.type == "heredoc_redirect":
            answer = _behind(shell, redirect, answer)
    return answer


def _behind(shell: Interpreter, redirect: Node, answer: Answer) -> Answer:
    """Follows what stands behind `<<END` in its line: a pipeline, or `&&` or `||` and a command.
    Arguments there are reported, and the answer is not known.
    """
    sign = ""
    for child in redirect.children:
        if child.type in ("&&", "||"):
            sign = child.type
        elif child.type in ("word", "string", "raw_string", "concatenation"):
            shell.doubt(line_of(redirect), [text_of(child)])
            answer = NOT_KNOWN
        elif child.type == "pipeline" and not sign:
            with shell.own_variables():
                for stage in _stages(child):
                    with shell.in_condition(), shell.own_state():
                        answer = _fed(shell, stage, answer.output)
        elif sign and child.is_named and not child.type.startswith("heredoc"):
            if answer.status is None:
                with shell.in_doubt():
                    shell.statement(child)
                answer = NOT_KNOWN
            elif (answer.status == 0) == (sign == "&&"):
                answer = shell.statement(child)
            sign = ""
    return answer


def _stages(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == "pipeline":
            yield from _stages(child)
        else:
            yield child


def _heredoc(shell: Interpreter, node: Node) -> str:
    start = next((text_of(one) for one in node.children if one.type == "heredoc_start"), "")
    body = next((one for one in node.children if one.type == "heredoc_body"), None)
    if body is None:
        return ""
    text = _heredoc_text(shell, body, quoted=any(c in start for c in "'\"\\"))
    if any(one.type == "<<-" for one in node.children):
        text = "\n".join(line.lstrip("\t") for line in text.split("\n"))
    return text


def _heredoc_text(shell: Interpreter, body: Node, quoted: bool) -> str:
    content, at, found = body.text or b"", 0, ""
    if not quoted and b"`" in content:
        return UNKNOWN
    for child in [] if quoted else body.named_children:
        if child.type != "heredoc_content":
            found += content[at : child.start_byte - body.start_byte].decode("utf-8", "replace")
            found += shell.words.text(child)
            at = child.end_byte - body.start_byte
    return found + content[at:].decode("utf-8", "replace")


def _fed(shell: Interpreter, node: Node, stdin: str) -> Answer:
    if node.type == "command":
        return commands.command(shell, node, stdin)
    if node.type == "while_statement" and stdin:
        return flow.while_statement(shell, node, stdin)
    before, shell.fed = shell.fed, stdin or shell.fed
    try:
        return shell.statement(node)
    finally:
        shell.fed = before


def pipeline(shell: Interpreter, node: Node) -> Answer:
    """Follows a pipeline: each command gets the output of the one before as its input, and the variables that
    they set are restored at the end. Returns the last command's answer.
    """
    answer, statuses = Answer(), list[int | None]()
    with shell.own_variables():
        for number, child in enumerate(node.named_children):
            try:
                with shell.in_condition(), shell.own_state():
                    fed = number and child.type != "redirected_statement"  # otherwise a file is its input
                    answer = _fed(shell, child, answer.output) if fed else shell.statement(child)
            except LeaveError as left:
                answer = left.answer  # each command of a pipeline runs in a subshell
            statuses.append(answer.status)
    failed = [one for one in statuses if one != 0]
    return Answer(failed[-1], answer.output) if shell.pipefail and failed else answer
