"""Checks commands, their readiness probes and files: valid templates, and words that the kernel accepts."""

from __future__ import annotations

from ...language.source import Path
from ...language.templates import fault
from ..checking import Checks, Here
from .accounts import check_flow
from .file import Command, Ready


def check(report: Checks, here: Here, command: Command) -> None:
    """Reports the mistakes in the settings of one program."""
    path = here.path
    if command.ready is not None:
        _ready(report, command.ready, (*path, "ready"))
    templates = [((*path, "command"), word) for word in command.command]
    templates += [((*path, "env", key), value) for key, value in command.env.items()]
    templates += [((*path, "files", key), content) for key, content in command.files.items()]
    for where, template in templates:
        if "\0" in template and where[-2] != "files":
            rule = "holds a zero byte, where the kernel ends a text"
            report.add(where, template, rule, "leave it out")
        if wrong := fault(template):
            remedy = "see jinja2; a literal {{ is written {{ '{{' }}"
            report.add(where, template, f"is not a template ({wrong})", remedy)
    for key in command.env:
        if not key or "=" in key or "\0" in key:
            where = (*path, "env", key)
            report.add(where, key, "is not the name of a variable", "write for example GREETING")
    if command.workdir is not None and (not command.workdir.startswith("/") or "\0" in command.workdir):
        report.add((*path, "workdir"), command.workdir, "is not an absolute path", "write for example /srv")
    _files(report, command, path)
    for name, flow in command.flows.items():
        check_flow(report, here, flow, (*path, "flows", name))


def _ready(report: Checks, ready: Ready, path: Path) -> None:
    subjects = [key for key in ("tcp", "log", "command") if getattr(ready, key) is not None]
    if len(subjects) != 1:
        rule = "has exactly one of the keys tcp, log and command"
        report.add(path, None, rule, "keep one, or leave `ready` out")
    if ready.within == 0:
        report.add((*path, "within"), "0 s", "is not above zero", 'write for example "10 s"')


def _files(report: Checks, command: Command, path: Path) -> None:
    for key in command.files:
        where = (*path, "files", key)
        if any(f"{key}/" == other[: len(key) + 1] for other in command.files):
            report.add(where, key, "is a file, and another file lies below it", "rename one of them")
        if not key or ".." in key.split("/") or "\0" in key:
            rule = "is not a path below the node's directory"
            report.add(where, key, rule, "write a name without ..")
