"""Tests the sides of an exchange by middleware in the plan: which side connects to which, the programs'
settings, and mistakes in files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mistakes import refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.run.prepare import Request, prepare
from orchestrator.software.middleware import known
from orchestrator.software.middleware.kind import KIND
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "images/middleware/src/main/java/vnet/middleware"
LISTEN = "middleware: {listen: 7000, use: ice, serialiser: kryo, publish: {rate: 5 /s}, memory: 96 MiB}"
ASK = "middleware: {to: unit, request: {rate: 10 /s, deadline: 50 ms}, warm_up: 1 s}"
FILE = f"""\
name: exchange
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{}}}}
nodes:
  unit:
    segment: far
    software:
      exchange:
        {LISTEN}
  station:
    segment: near
    software:
      ask:
        {ASK}
      take: {{middleware: {{to: unit, subscribe: true}}}}
links: {{way: {{between: [near, far], both: {{rate: 100 Mbit/s}}}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.station.software.ask.middleware"
UNIT = "nodes.unit.software.exchange.middleware"


SILENT = "[{from: 0 s, rate: 10 /s}, {from: 4 s, rate: 0 /s}]"


def greedy(rate: str, start: str, length: str) -> str:
    return f"middleware: {{to: unit, request: {{rate: {rate}, greedy: {{start: {start}, for: {length}}}}}}}"


def planned(old: str = "", new: str = "") -> Plan:
    return make_plan(parse("exchange.yaml", FILE.replace(old, new).encode()))


def settings(plan: Plan, node: int, name: str) -> dict[str, Any]:
    (software,) = (one for one in plan.nodes[node].software if one.name == name)
    assert software.process is not None
    (content,) = (f.content for f in software.process.files if f.path == f"{name}/settings.json")
    told: dict[str, Any] = json.loads(content)
    return told


def test_both_sides_are_told_the_same_libraries_and_where() -> None:
    plan = planned()
    unit, ask, take = settings(plan, 0, "exchange"), settings(plan, 1, "ask"), settings(plan, 1, "take")
    for told in (unit, ask, take):
        assert (told["middleware"], told["serialiser"]) == ("ice", "kryo")
        assert told["address"] == {"host": "10.1.0.1", "port": 7000}
    assert (unit["side"], unit["patterns"]) == ("listen", ["publish", "request"])
    assert (ask["side"], ask["patterns"], ask["warm_up_ns"]) == ("connect", ["request"], 10**9)
    assert (take["patterns"], take["own"]) == (["publish"], {"host": "10.1.0.2", "port": 7900})
    assert unit["seed"] != ask["seed"], "each side fills an object of its own"
    process = plan.nodes[0].software[0].process
    assert process is not None and process.env["HEAP"] == str(96 << 20)


def test_flows_say_who_owes_what() -> None:
    plan = planned()
    published, asked = plan.flows
    size_bytes = 12 + known.serialisers()["kryo"].size_bytes
    assert (published.pattern, published.sender, published.payload.bytes) == ("publish", "unit", size_bytes)
    assert plan.receivers[published.deliveries[0].receivers] == ("station-take",)
    assert (asked.pattern, asked.sender, asked.payload.bytes) == ("request", "station-ask", 12)
    assert asked.reply is not None and asked.reply.bytes == size_bytes
    assert plan.receivers[asked.deliveries[0].receivers] == ("unit",)
    accounts = plan.nodes[0].software[0].spec["accounts"]
    assert [one["number"] for one in accounts["sends"]] == [0]
    assert [one["number"] for one in accounts["receives"]] == [1]


def test_as_much_as_goes_is_a_flow_of_its_own() -> None:
    calm, full = planned(ASK, greedy(SILENT, "5 s", "4 s")).flows[1:]
    assert (calm.traffic_class, full.traffic_class) == ("station.ask", "station.ask.greedy")
    assert (full.schedule, full.start_ns, full.stop_ns) == (None, 5 * 10**9, 9 * 10**9)
    assert (full.pattern, full.reply, full.deliveries) == (calm.pattern, calm.reply, calm.deliveries)


def test_a_server_beside_it_counts_for_each_of_its_ports() -> None:
    def memory(plan: Plan) -> int:
        (software, flows) = plan.nodes[0].software[0], plan.flows
        return KIND.costs(software, flows).memory_bytes

    light, with_servers = memory(planned()), memory(planned("use: ice", "use: amqp"))
    assert with_servers - light == 2 * known.middleware()["amqp"].server_bytes > 0


def test_nobody_may_connect() -> None:
    alone = FILE.replace(", publish: {rate: 5 /s}", "")
    start, end = alone.index("  station:"), alone.index("links:")
    plan = make_plan(
        parse("alone.yaml", (alone[:start] + "  station: {segment: near}\n" + alone[end:]).encode())
    )
    assert any("no client connects" in str(note) for note in plan.notes)


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (LISTEN, LISTEN.replace("ice", "icy"), f"{UNIT}.use", "is no middleware that is known; write ice"),
        (LISTEN, LISTEN.replace("use: ice, ", ""), f"{UNIT}.use", "is missing; write for example"),
        (LISTEN, LISTEN.replace("kryo", "json"), f"{UNIT}.serialiser", "write json-jackson or json-gson or"),
        (LISTEN, LISTEN.replace("kryo", "q"), f"{UNIT}.serialiser", "write one of xml-jaxb, "),
        (LISTEN, LISTEN.replace("7000", "65535"), f"{UNIT}.listen", "of which the last is 65537"),
        (LISTEN, LISTEN.replace("96 MiB", "8 MiB"), f"{UNIT}.memory", "is less than 64 MiB"),
        (LISTEN, LISTEN.replace("listen: 7000", "to: station"), f"{UNIT}.use", "does not belong to the side"),
        (LISTEN, LISTEN.replace("5 /s", "0 /s"), f"{UNIT}.publish.rate", "must be more than zero"),
        (ASK, "middleware: {to: unit}", PLACE, "does nothing, and one thing is what it can do"),
        (ASK, "middleware: {}", PLACE, "has exactly one of the keys listen and to"),
        (ASK, ASK.replace("warm_up", "subscribe: true, warm_up"), PLACE, "does request and subscribe"),
        (ASK, ASK.replace("unit", "station"), f"{PLACE}.to", "no middleware of node station listens"),
        (ASK, ASK.replace("unit", "units"), f"{PLACE}.to", "units"),
        (ASK, ASK.replace("warm_up", "use: ice, warm_up"), f"{PLACE}.use", "does not belong to the side"),
        (ASK, greedy("10 /s", "5 s", "2 s"), f"{PLACE}.request.greedy.start", "`rate` has not reached 0 /s"),
        (ASK, greedy(SILENT, "2 s", "2 s"), f"{PLACE}.request.greedy.start", "begins 2 s after the start"),
        (ASK, greedy(SILENT, "9 s", "2 s"), f"{PLACE}.request.greedy.for", "ends after the load"),
    ],
    ids=range(17),
)  # fmt: skip
def test_mistakes(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


def test_a_subscriber_of_nothing_is_refused() -> None:
    silent = FILE.replace(", publish: {rate: 5 /s}", "")
    with pytest.raises(Exception, match="subscribes, and the middleware of node unit publishes nothing"):
        parse("silent.yaml", silent.encode())


def test_a_publisher_to_nobody_is_refused() -> None:
    start, end = FILE.index("      take:"), FILE.index("links:")
    with pytest.raises(Exception, match="publishes, and nothing subscribes"):
        parse("unheard.yaml", (FILE[:start] + FILE[end:]).encode())


def test_more_messages_than_a_program_is_told_are_refused() -> None:
    with pytest.raises(Exception, match=r"ask sends about \d+ messages, and 10000 are the most"):
        planned("10 /s", "2000 /s")


def test_every_known_name_has_its_class() -> None:
    for of, folder in (("middleware", "transport"), ("serialisers", "serialiser")):
        for name, one in json.loads(known.FILE.read_text())[of].items():
            assert re.fullmatch(r"[a-z][a-z0-9-]*", name)
            outer, _, inner = one["class"].partition("$")
            source = (SOURCES / folder / f"{outer}.java").read_text()
            assert re.search(rf"\bclass {inner or outer}\b", source), f"{name}: no class {one['class']}"


def test_what_the_program_says_is_what_the_plan_waits_for() -> None:
    process = planned().nodes[0].software[0].process
    assert process is not None and process.ready.log
    assert f'READY = "{process.ready.log}"' in (SOURCES / "Side.java").read_text()


def test_virtual_time_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "exchange.yaml"
    file.write_text(FILE)
    with pytest.raises(TopologyError) as caught:
        prepare(Request(file, {}, time="virtual"), tmp_path)
    said = [str(problem) for problem in caught.value.problems]
    refused = [one for one in said if "needs real time: a Java machine computes for nothing there" in one]
    assert len(refused) == 3
    assert all('"java": is not on this machine' in one for one in said if one not in refused)


def test_the_page_names_all_that_are_known() -> None:
    page = (ROOT / "docs/kinds/middleware.md").read_text()
    for name in known.middleware():
        assert f"| `{name}` |" in page
    for name, serialiser in known.serialisers().items():
        assert re.search(rf"^\| `{name}` \| .* \| {serialiser.size_bytes:,} \|$", page, re.MULTILINE), name
