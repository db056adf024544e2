"""Tests that knowledge of one kind of software is only in that kind's modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Words that belong to one kind of software; names that are also ordinary words (command, bulk, tcp) are not
# checked.
WORDS = re.compile(
    r"mqtt|mosquitto|rabbit|amqp|\bqos(?!-map)|\bfrr\b|\bospf|zeromq|\bzmq|\bepgm|sampled[-_ ]values"
    r"|\bgoose\b|iec61850|dnsmasq|udhcpc|\bnft\b|\bftp|synchrophasor|middleware"
    r"|\bcoap\b|\bnats\b|\bgateways?\b|fq_codel|\bsfq\b|\bcake\b|\bcodel\b",
    re.IGNORECASE,
)
MODULES = (
    "orchestrator/software/mqtt/",
    "orchestrator/software/mosquitto",
    "orchestrator/software/rabbitmq/",
    "orchestrator/software/mqtt_brokers/",
    "orchestrator/software/amqp/",
    "orchestrator/software/coap.py",
    "orchestrator/software/nats/",
    "orchestrator/software/frr/",
    "orchestrator/software/ftp/",
    "orchestrator/software/synchrophasor.py",
    "orchestrator/software/middleware/",
    "orchestrator/software/gateway/",
    "orchestrator/queueing/",
    # a gateway's overlay cannot share an interface with a station, and a receiver sends its limit to a
    # gateway
    "orchestrator/software/station/",
    "orchestrator/software/rates_wanted.py",
    "orchestrator/software/udp.py",
    "orchestrator/software/nat/",
    "orchestrator/software/dnsmasq.py",
    "orchestrator/software/dhcp/",
    "orchestrator/software/dhcp6/",
    "orchestrator/software/slaac/",
    "orchestrator/software/dns/",
    "orchestrator/software/registry.py",
    "orchestrator/software/zeromq/",
    "orchestrator/software/goose.py",
    "orchestrator/software/iec61850/",
    "orchestrator/software/sampled_values.py",
    "orchestrator/exchange/netlab",  # keys of netlab's files
    "orchestrator/exchange/core.py",  # names of CORE's services
    # In these modules, `gateway` is the gateway of a route, not the kind.
    "orchestrator/exchange/commands.py",
    "orchestrator/exchange/linux/",
    "orchestrator/plan/paths.py",
    "orchestrator/lab/vrfs.py",
    "orchestrator/nics/interface.py",
    "capture/reducer/src/dissect/iec61850.rs",
    "capture/reducer/src/dissect/synphasor.rs",
    "capture/reducer/src/dissect/mqtt",
    "capture/reducer/src/dissect/amqp",
    "capture/reducer/src/dissect/coap.rs",
    "capture/reducer/src/dissect/nats.rs",
    "capture/reducer/src/dissect.rs",  # the registry
    "reports/papers/",
    # `qos: 1` is the short form of a delivery guarantee in an expectation
    "contract/chosen.py",
    "orchestrator/plan/expectations.py",
    "orchestrator/topology/checks/expect.py",
    "orchestrator/topology/expect.py",
    # The module states which kinds send datagrams, segments or bare frames, so that counts of them can be
    # compared.
    "capture/conservation/drops.py",
    "capture/conservation/stacks.py",
    "orchestrator/lab/admission.py",  # names the kinds whose logins it judges
    "reports/metrics/answers.py",  # defines a request and its answer for each protocol in captures
    "reports/sections/requests.html.j2",
    "capture/monitors/brokers.py",  # reads each broker's log for its limits
)
PARTS = ("orchestrator", "capture", "contract", "reports")
SUFFIXES = {".py", ".rs", ".j2", ".js", ".css", ".md"}


def found() -> dict[str, list[int]]:
    """Returns the lines with such a word by file, outside the kinds' modules."""
    places: dict[str, list[int]] = {}
    for path in (p for part in PARTS for p in sorted((ROOT / part).rglob("*")) if p.suffix in SUFFIXES):
        name = str(path.relative_to(ROOT))
        lines = [n for n, line in enumerate(path.read_text().splitlines(), 1) if WORDS.search(line)]
        if lines and not name.startswith(MODULES):
            places[name] = lines
    return places


def test_a_kind_stands_in_its_rooms_and_nowhere_else() -> None:
    astray = found()
    assert not astray, "move these into a module: " + ", ".join(f"{n}:{lines}" for n, lines in astray.items())


@pytest.mark.parametrize("module", MODULES)
def test_the_modules_are_there(module: str) -> None:
    assert list(ROOT.glob(f"{module}*")), "a module that is gone excuses nothing"
