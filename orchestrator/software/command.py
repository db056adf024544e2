"""Room of any program: its command, environment and files are templates, filled in for each node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from ..language.scalars import Argv, Base, Duration, Port, text
from ..language.source import Path
from ..language.templates import TemplateFaultError, fault, render
from ..model import File, Flow, Probe, Process, Software
from .checking import Checks, Here
from .kind import Costs, Kind, Planned, SoftwareError
from .scene import Placed, Scene

LONGEST_WORD = 131_071  # MAX_ARG_STRLEN of the kernel's include/uapi/linux/binfmts.h, without the zero byte
MEMORY_BYTES = 10_000_000  # a guess: nobody knows what it is


class Ready(Base):
    """How a command shows that it is ready; without a subject it is ready at once."""

    tcp: Port | None = Field(None, description="A TCP port it listens on.")
    log: str | None = Field(None, min_length=1, description="Text that a line of its output contains.")
    command: Argv | None = Field(None, description="A command that then ends with status 0.")
    within: Duration = Field(text("10 s"), description="Deadline; after it the run fails.")


class Command(Base):
    """Any program. Its command, environment and files are jinja2 templates; see *Templates*."""

    command: Argv = Field(description="Program and arguments; plain text is given to `sh -c`.")
    role: Literal["broker", "server", "client", "utility"] = Field(
        "utility", description="How reports group it."
    )
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables.")
    files: dict[str, str] = Field(
        default_factory=dict, description="Path: content; relative paths are below the node's own directory."
    )
    ready: Ready | None = Field(None, description="Readiness probe.")
    expect: Literal["running", "exited"] = Field(
        "running", description="Expected state at the end of the hold."
    )
    restart: Literal["never", "on-failure", "always"] = Field("never", description="When it ends by itself.")
    start: Literal["setup", "ramp", "hold"] = Field(
        "setup", description="Phase at whose start it is started."
    )
    stop_signal: Literal["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP"] = Field(
        "SIGTERM", description="Signal of `stop`."
    )


def _check(report: Checks, here: Here, command: Command) -> None:
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
    _files(report, command, path)


def _ready(report: Checks, ready: Ready, path: Path) -> None:
    subjects = [key for key in ("tcp", "log", "command") if getattr(ready, key) is not None]
    if len(subjects) != 1:
        rule = "has exactly one of the keys tcp, log and command"
        report.add(path, None, rule, "keep one, or leave `ready` out")
    if ready.within == 0:
        report.add((*path, "within"), "0 s", "is no time at all", 'write for example "10 s"')


def _files(report: Checks, command: Command, path: Path) -> None:
    for key in command.files:
        where = (*path, "files", key)
        if any(f"{key}/" == other[: len(key) + 1] for other in command.files):
            report.add(where, key, "is a file, and another file lies below it", "rename one of them")
        if not key or ".." in key.split("/") or "\0" in key:
            rule = "is not a path below the node's directory"
            report.add(where, key, rule, "write a name without ..")


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        try:
            process = _process(scene.values(placed.node), placed.model)
        except TemplateFaultError as error:
            rule = f"a template fails on node {placed.node} ({error})"
            raise SoftwareError(placed.node, rule, "mend the template") from None
        yield Planned(Software(placed.name, placed.model.role, placed.kind, process))


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
        expect=command.expect,
        stop_signal=command.stop_signal,
        start=command.start,
    )


def _word(text: str, values: dict[str, Any]) -> str:
    """An argument or the value of a variable, as the kernel's execve takes them."""
    word = render(text, values)
    if len(word.encode()) > LONGEST_WORD or "\0" in word:
        raise TemplateFaultError(
            f"an argument or variable has at most {LONGEST_WORD} bytes, none of them zero; use `files`"
        )
    return word


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    assert software.process is not None
    command = " ".join(" ".join(software.process.argv).removeprefix("sh -c ").split())
    return command if len(command) <= 48 else command[:45] + "..."


def _costs(_software: Software, _flows: Sequence[Flow]) -> Costs:
    return Costs(memory_bytes=MEMORY_BYTES)


KIND = Kind(
    name="command",
    key="command",
    model=Command,
    what="a command",
    example="command: [iperf3, -s]",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    endpoint=lambda _model: False,
    titles={"Command": "software.NAME: a command", "Ready": "command's ready"},
)
