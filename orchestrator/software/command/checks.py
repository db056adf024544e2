"""Checks commands, their readiness probes and files: valid templates, and words that the kernel accepts."""

from __future__ import annotations

from ...language.source import Path
from ..checking import Checks, Here
from ..program_texts import check_env, check_files, check_word
from .accounts import check_flow
from .file import Command, Ready


def check(report: Checks, here: Here, command: Command) -> None:
    """Reports the mistakes in the settings of one program."""
    path = here.path
    if command.ready is not None:
        _ready(report, command.ready, (*path, "ready"))
    for word in command.command:
        check_word(report, (*path, "command"), word)
    check_env(report, (*path, "env"), command.env)
    if command.workdir is not None and (not command.workdir.startswith("/") or "\0" in command.workdir):
        report.add((*path, "workdir"), command.workdir, "is not an absolute path", "write for example /srv")
    check_files(report, (*path, "files"), command.files)
    for name, flow in command.flows.items():
        check_flow(report, here, flow, (*path, "flows", name))


def _ready(report: Checks, ready: Ready, path: Path) -> None:
    subjects = [key for key in ("tcp", "log", "command") if getattr(ready, key) is not None]
    if len(subjects) != 1:
        rule = "has exactly one of the keys tcp, log and command"
        report.add(path, None, rule, "keep one, or leave `ready` out")
    if ready.within == 0:
        report.add((*path, "within"), "0 s", "is not above zero", 'write for example "10 s"')
