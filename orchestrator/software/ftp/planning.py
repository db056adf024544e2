"""Plans FTP servers and clients: their transfers, and the settings of their programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.plan import Delivery, File, Flow, Guarantee, Payload, Probe, Process, Session, Software
from contract.plan.family import has_ipv6

from .. import peers
from ..accounting import to_send, told
from ..kind import Planned, SoftwareError
from ..programs import ACCOUNT, READY
from ..scene import Placed, Scene
from ..sending import expected_messages, make_flow
from .file import LONGEST_SCHEDULE, FtpOptions, Transfers

READY_WITHIN_NS = 30 * 10**9
REQUEST_BYTES = 16  # about the length of the command RETR with a file name
HERE = Path(__file__).parent
GUARANTEE = Guarantee("FTP", "FTP: no file comes twice", single=True)


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every FTP server and client of the lab, in the order given; raises SoftwareError if a flow has
    more than LONGEST_SCHEDULE files.
    """
    for placed in all_of_it:
        options: FtpOptions = placed.model.ftp
        to = peers.targets(scene, placed)
        at = _listening(scene, placed, to)
        sent = [_flow(scene, placed, key, wanted) for key, wanted in _wanted(options)]
        for flow in sent:
            _bounded(placed, flow)
        spec = {
            "listen": options.listen,
            "to": [target.endpoint for target in to],
            "accounts": told(placed, (to_send(scene, placed, flow, at) for flow in sent)),
        }
        yield Planned(
            Software(
                placed.name,
                peers.role(placed),
                placed.kind,
                _process(scene, placed, to),
                Session(placed.endpoint, 0, scene.end_ns, listens=options.listen is not None),
                spec,
            ),
            tuple(sent),
            {peers.set_name(placed): tuple(target.endpoint for target in to)} if to else {},
        )


def _wanted(options: FtpOptions) -> Iterator[tuple[str, Transfers]]:
    for key, wanted in (("download", options.download), ("upload", options.upload)):
        if wanted is not None:
            yield key, wanted


def _listening(scene: Scene, placed: Placed, to: Sequence[peers.Target]) -> list[Placed]:
    """Returns the FTP servers that a client connects to."""
    options: FtpOptions = placed.model.ftp
    nodes = (node for name in options.to or () for node in scene.machines(name))
    known = {target.endpoint for target in to}
    return [one for node in nodes for one in scene.at(node, placed.kind) if one.endpoint in known]


def _flow(scene: Scene, placed: Placed, key: str, wanted: Transfers) -> Flow:
    """Returns the flow of a transfer: a download is a request with the file as its reply, and an upload is a
    message without a reply.
    """
    file = Payload("own", wanted.size)
    down = key == "download"
    return make_flow(
        scene,
        placed,
        wanted,
        Payload("own", REQUEST_BYTES) if down else file,
        pattern="request" if down else "push",
        deliveries=(Delivery(peers.set_name(placed), GUARANTEE),),
        name=key,
        reply=file if down else None,
    )


def _bounded(placed: Placed, flow: Flow) -> None:
    count = expected_messages(flow)
    if count > LONGEST_SCHEDULE:
        rule = f"moves about {count:.0f} files, and {LONGEST_SCHEDULE} are the most"
        raise SoftwareError(placed.node, f"{placed.name} {rule}", "shorten the hold, or lower the rate")


def _process(scene: Scene, placed: Placed, to: Sequence[peers.Target]) -> Process:
    options: FtpOptions = placed.model.ftp
    serves = options.listen is not None
    settings = {
        "host": "::" if has_ipv6(scene.interfaces[placed.node]) else "0.0.0.0",
        "port": options.listen,
        "servers": {target.endpoint: [target.address, target.port] for target in to},
        "login": options.login,
        "timeout_s": options.timeout / 1e9,
    }
    program = "server.py" if serves else "client.py"
    files = {
        "settings.json": json.dumps(settings, indent=1) + "\n",
        "account.py": ACCOUNT.read_text(),
        program: (HERE / "programs" / program).read_text(),
    }
    return Process(
        argv=("/usr/bin/python3", f"{placed.name}/{program}", f"{placed.name}/settings.json"),
        files=tuple(File(f"{placed.name}/{path}", content) for path, content in files.items()),
        ready=Probe(log=READY, deadline_ns=READY_WITHIN_NS),
    )
