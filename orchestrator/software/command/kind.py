"""Defines the registry entry of commands: their checks, their description for readers and their costs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from ...language.source import Path
from ..accounting import numbered
from ..checking import Checks, Here
from ..kind import Costs, Kind
from ..program_texts import check_env, check_files, check_word
from ..sending import rate_words
from ..tls.checks import check_tls
from .accounts import check_flow
from .file import Command, Ready
from .planning import plan

KEYS = "SSLKEYLOGFILE"
MEMORY_BYTES = 10_000_000  # an estimate, because the program is unknown


def _check(report: Checks, here: Here, command: Command) -> None:
    """Reports mistakes in a command's readiness probe, arguments, environment, working directory, files,
    certificates and flows.
    """
    path = here.path
    if command.ready is not None:
        _ready(report, command.ready, (*path, "ready"))
    for word in command.command:
        check_word(report, (*path, "command"), word)
    check_env(report, (*path, "env"), command.env)
    if command.workdir is not None and (not command.workdir.startswith("/") or "\0" in command.workdir):
        report.add((*path, "workdir"), command.workdir, "is not an absolute path", "write for example /srv")
    check_files(report, (*path, "files"), command.files)
    if command.tls is not None:
        check_tls(report, (*path, "tls"), command.tls)
    if command.tls_keys and not report.captured:
        rule = "keeps keys, and no capture keeps packets to decrypt"
        report.add(
            (*path, "tls_keys"), None, rule, "write `captures: {NAME: {at: node NODE}}`, or leave it out"
        )
    if command.tls_keys and KEYS in command.env:
        rule = "is set by `tls_keys`"
        report.add((*path, "env", KEYS), command.env[KEYS], rule, "leave one of them out")
    for name, flow in command.flows.items():
        check_flow(report, here, flow, (*path, "flows", name))


def _ready(report: Checks, ready: Ready, path: Path) -> None:
    subjects = [key for key in ("tcp", "log", "command") if getattr(ready, key) is not None]
    if len(subjects) != 1:
        rule = "has exactly one of the keys tcp, log and command"
        report.add(path, None, rule, "keep one, or leave `ready` out")
    if ready.within == 0:
        report.add((*path, "within"), "0 s", "is not above zero", 'write for example "10 s"')


def _words(software: Software, flows: Sequence[Flow]) -> str:
    assert software.process is not None
    command = " ".join(" ".join(software.process.argv).removeprefix("sh -c ").split())
    shown = command if len(command) <= 48 else command[:45] + "..."
    sent = [f"{flow.pattern} of {flow.payload.bytes} B, {rate_words(flow)}" for flow in flows]
    return "; ".join([shown, *sent])


def _costs(software: Software, _flows: Sequence[Flow]) -> Costs:
    to = {one["address"] for flow in software.spec.get("accounts", {}).get("sends", ()) for one in flow["to"]}
    return Costs(memory_bytes=MEMORY_BYTES, peers=len(to))


KIND = Kind(
    name="command",
    key="command",
    model=Command,
    what="a command",
    example="command: [iperf3, -s]",
    check=_check,
    plan=plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    endpoint=lambda command: bool(command.flows) or command.receives,
    numbered=numbered,
    titles={
        "Command": "software.NAME: a command",
        "Ready": "command's ready",
        "Figures": "command's figures",
        "Tls": "command's tls",
        "CommandFlow": "command's flows.NAME",
        "GuaranteeOptions": "command's flows.NAME.guarantee",
    },
)
