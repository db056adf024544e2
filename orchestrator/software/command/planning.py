"""Plans commands: fills their templates for each node, and adds the flows that the program accounts for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import File, Probe, Process, Software

from ...language.template_rules import TemplateFaultError
from ...language.templates import render
from ..kind import Planned, SoftwareError
from ..scene import Placed, Scene
from .accounts import accounting
from .file import Command

LONGEST_WORD = 131_071  # MAX_ARG_STRLEN of the kernel's include/uapi/linux/binfmts.h, without the zero byte


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every command of the lab, in the order given; raises SoftwareError if a template fails."""
    for placed in all_of_it:
        try:
            process = _process(scene.values(placed.node), placed.model)
        except TemplateFaultError as error:
            rule = f"a template fails on node {placed.node} ({error})"
            raise SoftwareError(placed.node, rule, "correct the template") from None
        software = Software(placed.name, placed.model.role, placed.kind, process)
        yield accounting(scene, placed, software) if placed.endpoint else Planned(software)


def _process(values: dict[str, Any], command: Command) -> Process:
    ready = command.ready
    probe = Probe()
    if ready is not None:
        probe = Probe(ready.tcp, ready.log, tuple(ready.command) if ready.command else None, ready.within)
    return Process(
        argv=tuple(_word(word, values) for word in command.command),
        env={key: _word(text, values) for key, text in command.env.items()},
        files=tuple(File(path, render(text, values)) for path, text in command.files.items()),
        ready=probe,
        restart=command.restart,
        expect=command.at_end,
        stop_signal=command.stop_signal,
        start=command.start,
        workdir=command.workdir,
    )


def _word(text: str, values: dict[str, Any]) -> str:
    """Returns an argument or variable with its template filled in; raises TemplateFaultError if execve
    cannot take the result (too long, or with a zero byte).
    """
    word = render(text, values)
    if len(word.encode()) > LONGEST_WORD or "\0" in word:
        raise TemplateFaultError(
            f"an argument or variable has at most {LONGEST_WORD} bytes, none of them zero; use `files`"
        )
    return word
