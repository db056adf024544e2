"""Tests plug-ins: the package that `vnet new plugin` makes is built, installed and used; plug-ins that cannot
be used are named with error and origin, and the others work.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import TOPOLOGIES, CommandLine

GOOD = "INTERFACE = 1\n"
ECHO = """name: t
segments: {a: {subnet: 10.1.0.0/24}}
nodes:
  one: {segment: a, software: {it: SOFTWARE}}
  two: {segment: a}
run: {hold: 1 s}
"""
QUEUE = """name: t
segments: {a: {subnet: 10.1.0.0/24}, b: {subnet: 10.1.0.0/24}}
nodes:
  one: {segment: a}
  two: {segment: b}
links:
  line: {between: [a, b], both: {rate: 1 Mbit/s, queue: {short: {limit: LIMIT}}}}
run: {hold: 1 s}
"""
SHORT = '''
"""A queue of few packets."""
from dataclasses import dataclass
from orchestrator.queueing.discipline import QUEUE, QueueKind, differing, entry, given
from orchestrator.queueing.settings import count, discipline, settings_of

INTERFACE = 1

@dataclass(frozen=True, slots=True)
class Short:
    """First in, first out, and short."""
    limit_packets: int = count("limit", 10, "Packets.", most=100)

class ShortKind(QueueKind):
    kind = "short"
    meaning = "First in, first out, and short."
    settings = Short
    qdisc = trial = "pfifo"
    order = "fifo"
    examples = (discipline("short", Short(10)), discipline("short", Short(20)))

    def lines(self, wanted, at):
        return [at.qdisc(QUEUE, f"pfifo limit {settings_of(Short, wanted).limit_packets}")]

    def changes(self, before, after, at):
        return self.lines(after, at)

    def mismatches(self, wanted, entries):
        read = entry(entries, QUEUE).get("options", {})
        return differing([("queue limit", settings_of(Short, wanted).limit_packets, read.get("limit"), 0)])

    def packets(self, wanted):
        return settings_of(Short, wanted).limit_packets

    def fake(self, arguments):
        return {"limit": int(given(arguments)["limit"])}

QUEUE_KIND = ShortKind()
'''
READER = """
from orchestrator.exchange.network import Importer, Machine, Network, Wire

INTERFACE = 1

def read(path):
    network = Network(path.stem, "pairs")
    for name in path.read_text().split():
        network.machines[name] = Machine(name)
    first, second = network.machines
    network.join(Wire(((first, "eth0"), (second, "eth0"))))
    return network

IMPORTER = Importer("pairs", "Two names in a file become two nodes and a wire.", read)
"""

PAPER = """
from pathlib import Path
from reports.papers import Paper, Table

INTERFACE = 1

def tables(study):
    return (Table("", "Table 1 of the plug-in", ("what", "theirs"), (("rows of it", "1"),), (1,)),)

QUEUE_KIND = Path(__file__).parent
PAPER = Paper("mine_2026", "A paper of mine", "mine, 2026", "Its table.", QUEUE_KIND, lambda _: (), tables)
"""
CLAIMS = """
factor: {name: clients, title: clients, levels: [1, 2]}
quantities: {all: {metric: message_lost, traffic_class: all, scenario: one}}
claims:
  nothing-is-claimed:
    figure: 1
    text: The claim of the plug-in's paper is there.
    rule: never judged
    judge: {not_judged: "nothing was measured for it"}
"""


def install(site: Path, package: str, entries: dict[str, dict[str, str]], text: str) -> None:
    """Installs a package of one module as pip would: the module and its metadata."""
    module, about = package.replace("-", "_"), site / f"{package.replace('-', '_')}-2.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.1\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {module}:{attribute}\n" for name, attribute in names.items())
        for group, names in entries.items()
    )
    (about / "entry_points.txt").write_text("\n".join(groups))
    (site / f"{module}.py").write_text(text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a directory with the package vnet-line-echo from the template, and `site`, where pip installed
    it.
    """
    directory = tmp_path_factory.mktemp("made")
    CommandLine(directory, directory / "state")("new", "plugin", "line-echo")
    pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "-q"]
    subprocess.run([*pip, "--target", "site", "./vnet-line-echo"], cwd=directory, check=True, timeout=200)
    return directory


@pytest.fixture
def vnet(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, tmp_path / "state", site=(tmp_path / "site",))


@pytest.fixture
def echo(made: Path, tmp_path: Path) -> CommandLine:
    """Returns the command line in the made package's directory, with the package installed."""
    return CommandLine(made / "vnet-line-echo", tmp_path / "state", site=(made / "site", tmp_path / "site"))


def test_the_made_package_is_listed_with_version_and_origin(echo: CommandLine) -> None:
    (row,) = json.loads(echo("plugins", "--json").stdout)["plugins"]
    assert row == {
        "group": "vnet.software", "name": "line-echo", "package": "vnet-line-echo", "version": "0.1.0",
        "origin": "vnet_line_echo.kind:KIND",
    }  # fmt: skip


def test_the_made_package_is_checked_planned_and_run(echo: CommandLine) -> None:
    assert "good: 2 nodes" in echo("check", "topology.yaml").stdout
    planned = echo("plan", "topology.yaml").stdout
    assert "echo: line-echo, port 7000" in planned
    assert "plug-in vnet-line-echo 0.1.0" in planned
    echo("run", "topology.yaml", "--kernel", "fake", "--out", str(echo.state.parent / "out"))
    plan = json.loads(next(echo.state.parent.glob("out/**/plan.json")).read_text())
    (kind,) = (s["kind"] for node in plan["nodes"] for s in node["software"] if s["role"] == "server")
    assert kind == "line-echo"
    assert any("vnet-line-echo 0.1.0" in note["text"] for note in plan["notes"])


def test_the_schema_has_the_keys_of_the_made_package(echo: CommandLine) -> None:
    assert "LineEchoFile" in json.loads(echo("schema").stdout)["$defs"]


def test_the_made_package_passes_its_own_tests(made: Path, echo: CommandLine) -> None:
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=echo.cwd, env=echo.env | {"PYTHONPATH": echo.path}, check=True, timeout=100,
    )  # fmt: skip


def test_a_mistake_in_its_keys_is_a_mistake_of_the_file(echo: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(ECHO.replace("SOFTWARE", "{line-echo: {port: 70000, prot: 1}}"))
    said = echo("check", str(tmp_path / "t.yaml"), status=3).stderr
    assert "t.yaml:4: nodes.one.software.it.line-echo.port: 70000:" in said
    assert "line-echo.prot" in said
    (tmp_path / "t.yaml").write_text(ECHO.replace("SOFTWARE", "{line-echo: {}, udp: {listen: 1}}"))
    assert (
        "line-echo: a mapping of 0: is not a key here"
        in echo("check", str(tmp_path / "t.yaml"), status=3).stderr
    )
    (tmp_path / "t.yaml").write_text(ECHO.replace("SOFTWARE", "{line-ehco: {}}"))
    assert " and line-echo" in echo("check", str(tmp_path / "t.yaml"), status=3).stderr


def test_what_cannot_be_used_is_named_and_the_rest_works(echo: CommandLine, tmp_path: Path) -> None:
    site, software = tmp_path / "site", "vnet.software"
    install(site, "no-library", {software: {"broken": "KIND"}}, "import a_library_that_is_not_there\n")
    install(site, "from-before", {software: {"old": "KIND"}}, "INTERFACE = 0\nKIND = None\n")
    install(site, "says-nothing", {software: {"silent": "KIND"}}, "KIND = None\n")
    install(site, "no-kind", {software: {"other": "KIND", "absent": "GONE"}}, GOOD + "KIND = 7\n")
    install(site, "takes-ours", {software: {"udp": "KIND"}}, GOOD)
    install(site, "twin-a", {software: {"twin": "KIND"}}, GOOD)
    install(site, "twin-b", {software: {"twin": "KIND"}}, GOOD)
    install(site, "exits", {software: {"exits": "KIND"}}, "raise SystemExit(0)\n")
    listed = json.loads(echo("plugins", "--json", status=1).stdout)
    assert [row["name"] for row in listed["plugins"]] == ["line-echo"]
    errors = {(row["package"], row["name"]): row["error"] for row in listed["refused"]}
    assert "ModuleNotFoundError" in errors["no-library", "broken"]
    assert "no_library.py:1" in errors["no-library", "broken"]
    assert "is written for INTERFACE 0, and this vNET has 1" in errors["from-before", "old"]
    assert "states no INTERFACE" in errors["says-nothing", "silent"]
    assert "is int; make it a orchestrator.software.kind.Kind" in errors["no-kind", "other"]
    assert "names nothing" in errors["no-kind", "absent"]
    assert "vNET has its own 'udp'" in errors["takes-ours", "udp"]
    assert "twin-b 2.1" in errors["twin-a", "twin"]
    assert "twin-a 2.1" in errors["twin-b", "twin"]
    assert "SystemExit" in errors["exits", "exits"]
    assert len(errors) == 9
    assert "no-library 2.1 (vnet.software: broken = no_library:KIND)" in echo("plugins", status=1).stderr
    echo("check", "topology.yaml")
    echo("check", str(TOPOLOGIES / "udp-request.yaml"))


def test_a_file_that_needs_a_broken_plugin_gets_its_error(vnet: CommandLine, tmp_path: Path) -> None:
    install(tmp_path / "site", "no-library", {"vnet.software": {"broken": "KIND"}}, "1 / 0\n")
    (tmp_path / "t.yaml").write_text(ECHO.replace("SOFTWARE", "{broken: {port: 7}}"))
    said = vnet("check", "t.yaml", status=3).stderr
    assert "t.yaml:4: nodes.one.software.it" in said
    assert "no-library 2.1" in said
    assert "ZeroDivisionError" in said


def test_a_file_with_known_names_loads_no_plugin(vnet: CommandLine, tmp_path: Path) -> None:
    groups = ("vnet.software", "vnet.queues", "vnet.importers", "vnet.papers")
    text = f"open({str(tmp_path / 'imported')!r}, 'w').close()\n"
    install(tmp_path / "site", "eager", {group: {"x": "X"} for group in groups}, text)
    vnet("check", str(TOPOLOGIES / "priorities.yaml"))
    vnet("plan", str(TOPOLOGIES / "udp-request.yaml"))
    assert not (tmp_path / "imported").exists()
    assert len(json.loads(vnet("plugins", "--json", status=1).stdout)["refused"]) == len(groups)
    assert (tmp_path / "imported").exists()


def test_a_queue_of_a_plugin_is_checked_planned_and_set(vnet: CommandLine, tmp_path: Path) -> None:
    install(tmp_path / "site", "short-queue", {"vnet.queues": {"short": "QUEUE_KIND"}}, SHORT)
    (tmp_path / "t.yaml").write_text(QUEUE.replace("LIMIT", "20"))
    vnet("check", "t.yaml")
    vnet("run", "t.yaml", "--kernel", "fake", "--out", "out")
    plan = json.loads(next(tmp_path.glob("out/**/plan.json")).read_text())
    assert plan["links"][0]["forward"]["impairment"]["queue"]["kind"] == "short"
    (tmp_path / "t.yaml").write_text(QUEUE.replace("LIMIT", "101"))
    assert "t.yaml:7: links.line.both.queue.short.limit: 101" in vnet("check", "t.yaml", status=3).stderr


@pytest.mark.uml
def test_a_queue_of_a_plugin_is_set_and_read_back_in_a_lab_kernel(vnet: CommandLine, tmp_path: Path) -> None:
    install(tmp_path / "site", "short-queue", {"vnet.queues": {"short": "QUEUE_KIND"}}, SHORT)
    (tmp_path / "t.yaml").write_text(QUEUE.replace("LIMIT", "20"))
    vnet("run", "t.yaml", "--kernel", "uml", "--time", "real", "--raw", "--out", "good")
    wrong = SHORT.replace('"pfifo limit {', '"pfifo limit 1{')  # sets a limit of 120 instead of 20
    assert wrong != SHORT
    (tmp_path / "site" / "short_queue.py").write_text(wrong)
    said = vnet("run", "t.yaml", "--kernel", "uml", "--time", "real", "--raw", "--out", "bad", status=1)
    assert "queue limit" in said.stdout + said.stderr


def test_virtual_time_refuses_a_queue_of_a_plugin(vnet: CommandLine, tmp_path: Path) -> None:
    install(tmp_path / "site", "short-queue", {"vnet.queues": {"short": "QUEUE_KIND"}}, SHORT)
    (tmp_path / "t.yaml").write_text(QUEUE.replace("LIMIT", "20"))
    said = vnet("run", "t.yaml", "--time", "virtual", status=4).stderr
    assert "needs queue short (it is of the plug-in short-queue" in said
    assert not (tmp_path / "results").exists()


def test_a_queue_of_a_broken_plugin_is_named(vnet: CommandLine, tmp_path: Path) -> None:
    install(tmp_path / "site", "short-queue", {"vnet.queues": {"short": "QUEUE_KIND"}}, "INTERFACE = 3\n")
    (tmp_path / "t.yaml").write_text(QUEUE.replace("LIMIT", "20"))
    said = vnet("check", "t.yaml", status=3).stderr
    assert "short-queue 2.1" in said
    assert "INTERFACE 3" in said


def test_an_importer_of_a_plugin_writes_a_topology(vnet: CommandLine, tmp_path: Path) -> None:
    install(
        tmp_path / "site",
        "pairs-reader",
        {"vnet.importers": {"pairs": "IMPORTER", "gns3": "IMPORTER"}},
        READER,
    )
    (tmp_path / "hosts.txt").write_text("left right\n")
    vnet("import", "pairs", "hosts.txt", "-o", "hosts.yaml")
    assert "good: 2 nodes" in vnet("check", "hosts.yaml").stdout
    assert "Two names in a file" in vnet("import", "--help").stdout
    assert "vNET has its own importer 'gns3'" in vnet("plugins", status=1).stderr


def test_a_paper_of_a_plugin_is_in_the_report_of_its_runs(vnet: CommandLine, tmp_path: Path) -> None:
    install(tmp_path / "site", "mine-paper", {"vnet.papers": {"mine_2026": "PAPER"}}, PAPER)
    (tmp_path / "site" / "claims.yaml").write_text(CLAIMS)
    both = "{listen: 7}", "{to: one, request: {size: 99 B, reply: 99 B, rate: 9 /s}}"
    text = ECHO.replace("SOFTWARE", f"{{udp: {both[0]}}}")
    text = text.replace("two: {segment: a", f"two: {{segment: a, software: {{ask: {{udp: {both[1]}}}}}")
    (tmp_path / "t.yaml").write_text(text + "reference: {name: mine_2026, scenario: scenario_one}\n")
    vnet("run", "t.yaml", "--kernel", "fake", "--out", "out")
    page = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "Table 1 of the plug-in" in page
    assert (
        "The claim of the plug-in&#39;s paper is there" in page or "The claim of the plug-in's paper" in page
    )
    (tmp_path / "site" / "mine_paper.py").write_text("INTERFACE = 2\n")
    vnet("report", "out")
    page = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "Table 1 of the plug-in" not in page
    assert "mine-paper 2.1" in page


@pytest.mark.parametrize("name", ["udp", "broker", "testbed", "Echo", "../up", "a" * 41])
def test_a_name_that_no_plugin_can_have_makes_nothing(vnet: CommandLine, tmp_path: Path, name: str) -> None:
    assert f"{name}: is" in vnet("new", "plugin", name, status=2).stderr
    assert not [one for one in tmp_path.iterdir() if one.name != "state"]


def test_a_package_that_exists_is_kept(vnet: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "vnet-line-echo").mkdir()
    assert "exists already" in vnet("new", "plugin", "line-echo", status=2).stderr
    assert not list((tmp_path / "vnet-line-echo").iterdir())
    assert "--name" in vnet("new", "--name", "x", "plugin", "other", status=2).stderr
