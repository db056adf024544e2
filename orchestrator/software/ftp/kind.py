"""Defines the registry entry of FTP: its checks, description for readers, costs and programs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ...language.units import text_bytes
from .. import peers
from ..accounting import numbered
from ..checking import Checks, Here, light
from ..kind import TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES, Bind, Costs, Kind
from ..sending import check_sending, expected_messages, rate_words
from .file import LARGEST_BYTES, SMALLEST_BYTES, Ftp, FtpOptions
from .planning import plan

_MEMORY_BYTES = {"server": 18_000_000, "client": 12_000_000}  # memory of a Python program, for each role


def _check(report: Checks, here: Here, model: Ftp) -> None:
    options, path = model.ftp, (*here.path, "ftp")
    peers.check_peer(report, here, options, "ftp", ("download", "upload"))
    if options.listen is not None:
        for key in sorted(options.model_fields_set & {"login", "timeout"}):
            rule = "does not belong to the side that listens"
            report.add((*path, key), None, rule, "write it where `to` is")
    if len(options.to or ()) > 1 or any(len(report.machines(path, name)) > 1 for name in options.to or ()):
        report.add((*path, "to"), None, "a client has one server", "write an `ftp` for each")
    if options.timeout == 0:
        report.add((*path, "timeout"), "0 s", "is not above zero", 'write for example "30 s"')
    for key in ("download", "upload"):
        _check_transfers(report, here, options, key)
    light(report, here, path, "whose image has no FTP")


def _check_transfers(report: Checks, here: Here, options: FtpOptions, key: str) -> None:
    wanted, path = getattr(options, key), (*here.path, "ftp", key)
    if wanted is None:
        return
    check_sending(report, here, wanted, path, "leave it out where nothing is moved")
    if not SMALLEST_BYTES <= wanted.size <= LARGEST_BYTES:
        rule = f"a file has from {SMALLEST_BYTES} B to {text_bytes(LARGEST_BYTES)}"
        report.add((*path, "size"), f"{wanted.size} B", rule, 'write for example "1 MB"')


def _words(software: Software, sent: Sequence[Flow]) -> str:
    if software.spec["listen"] is not None:
        return f"FTP server, port {software.spec['listen']}"
    said = []
    for flow in sent:
        verb, file = ("uploads", flow.payload) if flow.reply is None else ("downloads", flow.reply)
        said.append(f"{verb} {text_bytes(file.bytes)}, {rate_words(flow)}")
    return "; ".join(["FTP client", *said])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    packets: list[tuple[float, int]] = []
    for flow in sent:
        segments = expected_messages(flow) * -(-(flow.reply or flow.payload).bytes // TCP_SEGMENT_BYTES)
        packets += [(segments, TCP_HEADERS_BYTES + TCP_SEGMENT_BYTES), (segments, TCP_HEADERS_BYTES)]
    return Costs(_MEMORY_BYTES[software.role], peers=len(software.spec["to"]), packets=tuple(packets))


def _binds(model: Ftp) -> Sequence[Bind]:
    return [] if model.ftp.listen is None else [Bind("tcp", model.ftp.listen, ("ftp", "listen"))]


KIND = Kind(
    name="ftp",
    key="ftp",
    model=Ftp,
    what="one side of FTP",
    example="ftp: {listen: 21}",
    check=_check,
    plan=plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    binds=_binds,
    numbered=numbered,
    programs=(
        Program(
            "/usr/lib/python3/dist-packages/pyftpdlib/__init__.py",
            "python3-pyftpdlib",
            ("dpkg-query", "-W", "-f", "${Version}", "python3-pyftpdlib"),
            "topologies with servers of FTP fail when their nodes start",
        ),
    ),
    titles={
        "FtpOptions": "software.NAME.ftp: a server or client of FTP",
        "Transfers": "ftp's download and upload",
    },
)
