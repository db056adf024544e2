"""Defines the keys of a program in a topology file, and of the messages that the program accounts for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Argv, Base, Name, Port, Size, Span, Targets, text
from ..programs import Restart, StopSignal
from ..sending import Sending
from ..tls.file import ProgramTlsKey


class GuaranteeOptions(Base):
    """The delivery guarantee of the program's own protocol, for every message and receiver."""

    name: str = Field("own", min_length=1, max_length=40, description="Name of the guarantee in tables.")
    lossless: bool = Field(False, description="No message is lost.")
    single: bool = Field(False, description="No message is delivered twice.")
    ordered: bool = Field(False, description="No message overtakes another of its flow.")


class CommandFlow(Sending):
    """Messages that the program sends and records."""

    pattern: Literal["push", "stream", "request", "publish"] = Field(
        "push", description="Pattern of the messages."
    )
    to: Targets = Field(
        description="Nodes or groups with a command that `receives`; NODE/SOFTWARE where there are several."
    )
    size: Size = Field(description="Size of each message.")
    reply: Size | None = Field(None, description="request: size of each answer.")
    guarantee: GuaranteeOptions = Field(
        default_factory=lambda: GuaranteeOptions.model_validate({}),
        description="Delivery guarantee; without it, nothing is guaranteed.",
    )


class Ready(Base):
    """Readiness probe of a command; without a subject the command is ready at once."""

    tcp: Port | None = Field(None, description="A TCP port on which the program listens.")
    log: str | None = Field(None, min_length=1, description="Text in a line of the program's output.")
    command: Argv | None = Field(
        None, description="A command that ends with status 0 as soon as the program is ready."
    )
    within: Span = Field(text("10 s"), description="Deadline; after it the run fails.")


class Figures(Base):
    """Figures that the program prints itself; they appear in summary.json, page, expectations and comparisons
    as `program_` metrics of NODE/SOFTWARE.
    """

    source: Literal["log"] = Field(alias="from", description="log: the program's standard output and error.")
    format: Literal["ab", "access", "fio", "h2load", "hey", "iperf3", "k6", "ping", "wrk", "wrk2"] = Field(
        description=(
            "Format of the output; iperf3 with `-J`, fio with `--output-format=json`, k6 with "
            "`--summary-export /dev/stdout`, wrk and wrk2 with `--latency`; `access` is a log of requests "
            "in the common or combined format, with the request's time at the end of each line."
        )
    )


class Command(Base):
    """Any program. Its command, environment and files are jinja2 templates; see *Templates*."""

    command: Argv = Field(description="Program and arguments; plain text is given to `sh -c`.")
    role: Literal["broker", "server", "client", "utility"] = Field(
        "utility", description="Group of the program in reports."
    )
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables.")
    workdir: str | None = Field(
        None,
        min_length=2,
        description="Working directory, absolute (the image's, or the node's own).",
    )
    files: dict[str, str] = Field(
        default_factory=dict, description="Path: content; relative paths are below the node's own directory."
    )
    tls: ProgramTlsKey = None
    tls_keys: bool = Field(
        False,
        description="Keep the keys of the program's TLS connections with the run (SSLKEYLOGFILE), to decrypt "
        "its captures: raw/logs/NODE.SOFTWARE.keys.",
    )
    ready: Ready | None = Field(None, description="Readiness probe.")
    at_end: Literal["running", "exited"] = Field(
        "running", description="Expected state at the end of the hold."
    )
    restart: Restart = "never"
    start: Literal["setup", "ramp", "hold"] = Field(
        "setup", description="Phase at whose start the program is started."
    )
    figures: Figures | None = Field(None, description="Figures that the program prints.")
    flows: dict[Name, CommandFlow] = Field(
        default_factory=dict,
        description="Messages that the program sends, by name; it writes records of them.",
    )
    receives: bool = Field(
        False, description="The program writes records of messages that others send to it."
    )
    stop_signal: StopSignal = "SIGTERM"
