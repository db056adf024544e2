"""Checks and fills the texts that a file gives a program: arguments, environment variables and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from contract.plan import File

from ..language.source import Path
from ..language.template_rules import TemplateFaultError
from ..language.templates import fault, render
from .checking import Checks
from .kind import SoftwareError

LONGEST_WORD = 131_071  # MAX_ARG_STRLEN of the kernel's include/uapi/linux/binfmts.h, without the zero byte


def check_text(report: Checks, where: Path, text: str) -> None:
    """Reports a text that is not a template."""
    if wrong := fault(text):
        remedy = "see jinja2; a literal {{ is written {{ '{{' }}"
        report.add(where, text, f"is not a template ({wrong})", remedy)


def check_word(report: Checks, where: Path, text: str) -> None:
    """Reports an argument or variable with a zero byte, or one that is not a template."""
    if "\0" in text:
        report.add(where, text, "holds a zero byte, where the kernel ends a text", "leave it out")
    check_text(report, where, text)


def check_env(report: Checks, path: Path, env: Mapping[str, str]) -> None:
    """Reports names of environment variables at `path` that are empty or have "=" or a zero byte, and values
    that `check_word` refuses.
    """
    for key, value in env.items():
        if not key or "=" in key or "\0" in key:
            report.add((*path, key), key, "is not the name of a variable", "write for example GREETING")
        check_word(report, (*path, key), value)


def check_files(report: Checks, path: Path, files: Mapping[str, str]) -> None:
    """Reports contents of the files at `path` that are not templates, a path that another file has as its
    directory, and names that are empty, contain ".." or have a zero byte.
    """
    for key, content in files.items():
        where = (*path, key)
        check_text(report, where, content)
        if any(f"{key}/" == other[: len(key) + 1] for other in files):
            report.add(where, key, "is a file, and another file lies below it", "rename one of them")
        if not key or ".." in key.split("/") or "\0" in key:
            rule = "is not a path below the node's directory"
            report.add(where, key, rule, "write a name without ..")


@contextmanager
def filling(node: str) -> Iterator[None]:
    """Turns the error of a template that fails on the values of `node` into a SoftwareError."""
    try:
        yield
    except TemplateFaultError as error:
        rule = f"a template fails on node {node} ({error})"
        raise SoftwareError(node, rule, "correct the template") from None


def filled_word(text: str, values: dict[str, Any]) -> str:
    """Returns an argument or variable with its template filled in; raises TemplateFaultError if execve
    cannot take the result (too long, or with a zero byte).
    """
    word = render(text, values)
    if len(word.encode()) > LONGEST_WORD or "\0" in word:
        raise TemplateFaultError(
            f"an argument or variable has at most {LONGEST_WORD} bytes, none of them zero; use `files`"
        )
    return word


def filled_env(env: Mapping[str, str], values: dict[str, Any]) -> dict[str, str]:
    """Returns the environment variables with their templates filled in."""
    return {key: filled_word(text, values) for key, text in env.items()}


def filled_files(files: Mapping[str, str], values: dict[str, Any]) -> tuple[File, ...]:
    """Returns the files with their templates filled in."""
    return tuple(File(path, render(text, values)) for path, text in files.items())
