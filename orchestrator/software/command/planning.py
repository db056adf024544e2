"""Plans commands: fills their templates for each node, and adds the flows that the program accounts for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contract import figures
from contract.plan import Probe, Process, Software

from ..kind import Planned
from ..program_texts import filled_env, filled_files, filled_word, filling
from ..scene import Placed, Scene
from ..tls.lab import server_files
from .accounts import accounting
from .file import Command


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every command of the lab, in the order given; raises SoftwareError if a template fails."""
    for placed in all_of_it:
        with filling(placed.node):
            process = _process(scene, placed, placed.model)
        written = placed.model.figures
        spec = {figures.KEY: written.format} if written else {}
        software = Software(placed.name, placed.model.role, placed.kind, process, spec=spec)
        yield accounting(scene, placed, software) if placed.endpoint else Planned(software)


def _process(scene: Scene, placed: Placed, command: Command) -> Process:
    ready, values = command.ready, scene.values(placed.node)
    certificates = server_files(scene, placed, command.tls) if command.tls is not None else []
    probe = Probe()
    if ready is not None:
        probe = Probe(ready.tcp, ready.log, tuple(ready.command) if ready.command else None, ready.within)
    return Process(
        argv=tuple(filled_word(word, values) for word in command.command),
        env=filled_env(command.env, values),
        files=(*certificates, *filled_files(command.files, values)),
        ready=probe,
        restart=command.restart,
        expect=command.at_end,
        stop_signal=command.stop_signal,
        start=command.start,
        workdir=command.workdir,
        tls_keys=command.tls_keys,
    )
