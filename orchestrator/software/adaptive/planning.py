"""Plans adaptive senders and their receivers: flows, and the settings of their programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.plan import File, Flow, Guarantee, Payload, Probe, Process, Session, Software
from contract.plan.family import has_ipv6

from .. import peers
from ..accounting import to_send, told
from ..kind import Planned, SoftwareError
from ..programs import ACCOUNT, READY
from ..scene import Placed, Scene
from ..sending import expected_messages, make_flow
from .file import LONGEST_SCHEDULE, AdaptiveOptions

READY_WITHIN_NS = 30 * 10**9
PROGRAMS = Path(__file__).parent / "programs"
GUARANTEE = Guarantee("adaptive", "adaptive: nothing is guaranteed")


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every adaptive side of the lab, in the order given; raises SoftwareError if a flow has more than
    LONGEST_SCHEDULE messages.
    """
    for placed in all_of_it:
        options: AdaptiveOptions = placed.model.adaptive
        to = peers.targets(scene, placed)
        sent = [_flow(scene, placed, options, to)] if options.push is not None else []
        receivers = [one for one in all_of_it if one.endpoint in {target.endpoint for target in to}]
        spec = {
            "listen": options.listen,
            "to": [target.endpoint for target in to],
            "use": options.use,
            "probe_every_ns": options.policy.probe_every if to and options.use == "adaptive" else None,
            "accounts": told(placed, (to_send(scene, placed, flow, receivers) for flow in sent)),
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


def _flow(scene: Scene, placed: Placed, options: AdaptiveOptions, to: Sequence[peers.Target]) -> Flow:
    assert options.push is not None
    deliveries = peers.deliveries(placed, to, GUARANTEE)
    payload = Payload("own", options.push.size)
    flow = make_flow(scene, placed, options.push, payload, pattern="push", deliveries=deliveries)
    count = expected_messages(flow)
    if count > LONGEST_SCHEDULE:
        rule = f"{placed.name} sends about {count:.0f} messages, and {LONGEST_SCHEDULE} are the most"
        raise SoftwareError(placed.node, rule, "shorten the hold, or lower the rate")
    return flow


def _process(scene: Scene, placed: Placed, to: Sequence[peers.Target]) -> Process:
    options: AdaptiveOptions = placed.model.adaptive
    policy = options.policy
    settings = {
        "host": "::" if has_ipv6(scene.interfaces[placed.node]) else "0.0.0.0",
        "port": options.listen,
        "to": [[target.address, target.port] for target in to],
        "use": options.use,
        "policy": {
            "probe_every_ns": policy.probe_every,
            "window_ns": policy.window,
            "loss": policy.loss,
            "queue_ns": policy.queue,
            "stay_ns": policy.stay,
        },
    }
    program = "receiver.py" if options.listen is not None else "sender.py"
    names = [program, "wire.py"] + ([] if options.listen is not None else ["policy.py"])
    files = {"settings.json": json.dumps(settings, indent=1) + "\n", "account.py": ACCOUNT.read_text()}
    files |= {name: (PROGRAMS / name).read_text() for name in names}
    return Process(
        argv=("/usr/bin/python3", f"{placed.name}/{program}", f"{placed.name}/settings.json"),
        files=tuple(File(f"{placed.name}/{path}", content) for path, content in files.items()),
        ready=Probe(log=READY, deadline_ns=READY_WITHIN_NS),
    )
