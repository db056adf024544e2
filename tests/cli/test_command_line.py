"""Tests the commands through the real command line with labs of the fake driver: answers, exit statuses,
errors.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.lab.state import owned

TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
sys.path.append(str(Path(__file__).resolve().parents[1] / "topology"))
from shipped import MANY_RUNS  # noqa: E402

PAIR = str(TOPOLOGIES / "pair.yaml")
CAMPAIGN = str(TOPOLOGIES / "mqtt-qos-campaign.yaml")
NEEDS_NICS = ("mqtt-hil.yaml", "mqtt-hil-light.yaml")  # files of `make test-hil`
# docs/hunt.md says how to install them
NEEDS_PROGRAMS = (
    *("amqtt.yaml", "amqtt-link-down.yaml", "amqtt-qos2.yaml"),
    *("nats.yaml", "nats-link-down-kill.yaml"),
)
HEAVY = ("rich", "pydantic", "polars", "altair", "scipy", "jinja2", "ruamel", "asyncio", "orchestrator.plan")

BROKEN = """\
name: broken
segments:
  lan: {subnet: 10.20.0.0/24}
nodes:
  left: {segment: lam}
links:
  wire:
    between: [left, lan]
    forward: {delay: 20}
"""


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from orchestrator.cli.main import main; main(['--help'])"
    code += "; print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(re.findall(r"'([^']+)'", done.stderr))
    assert "click" in imported
    assert not [name for name in imported if name.startswith(HEAVY)]
    assert "Running labs" in done.stdout


def test_every_listed_command_has_help_with_an_example() -> None:
    import click
    from click.testing import CliRunner

    from orchestrator.cli.main import COMMANDS, vnet

    for name in COMMANDS:
        shown = CliRunner().invoke(vnet, [name, "--help"])
        assert shown.exit_code == 0, name
        command = vnet.get_command(click.Context(vnet), name)
        examples = command.commands.values() if isinstance(command, click.Group) else [command]
        for one in examples:
            assert "Example:" in (one.help or ""), f"{name} {one.name}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["run", PAIR, "--kernel", "windows"], '--kernel "windows": no such kernel; write auto, host or uml'),
        (
            ["run", PAIR, "-p", "hold"],
            '-p "hold": a parameter is written NAME=VALUE, for example -p clients=50',
        ),
        (
            ["plan", PAIR, "-p", "hold=1 s", "-p", "hold=2 s"],
            '-p "hold=2 s": hold is given twice; give it once',
        ),
        (
            ["run", PAIR, "--time", "virtual", "--kernel", "host"],
            "--time virtual --kernel host: the machine's own clock cannot jump; leave --kernel out",
        ),
        (
            ["campaign", "run", CAMPAIGN, "--time", "virtual", "--kernel", "host"],
            "--time virtual --kernel host: the machine's own clock cannot jump; leave --kernel out",
        ),
        (["down"], "down: name the labs, or write --all"),
        (["shell", "x", "y"], "shell: needs a terminal; in a script write `vnet exec x y -- COMMAND`"),
        (["set", "x", "y", "--hostname", "a b"], '--hostname: "a b": is not a host name'),
        (["set", "x", "y", "--hostname", ""], '--hostname: "": is not a host name'),
        (["set", "x", "y"], "set: nothing to change; give --mtu, --cpu-limit, --cpu-reserve or --hostname"),
        (
            ["set", "x", "y", "--cpu-limit", "3"],
            '"3" has no unit; write for example "500 MHz" or "0.5 cores"',
        ),
        (
            ["link", "x", "y", "--delay", "20"],
            '"20" has no unit; write "20 ms" (units: ns, us, ms, s, min, h)',
        ),
        (["link", "x", "y", "--up", "--down"], "link: --down and --up contradict each other; give one"),
    ],
)
def test_wrong_usage_is_status_2_with_the_cure(vnet: Any, arguments: list[str], text: str) -> None:
    assert text in " ".join(vnet(*arguments, status=2).stderr.split())


def test_a_refused_file_is_status_3_with_every_mistake(vnet: Any) -> None:
    (vnet.cwd / "broken.yaml").write_text(BROKEN)
    for command in ("check", "plan", "graph", "run", "up"):
        said = vnet(command, "broken.yaml", status=3).stderr
        assert re.search(
            r"^broken\.yaml:5: nodes\.left\.segment: .*lam.*did you mean \"lan\"", said, re.MULTILINE
        )
        assert re.search(r"^broken\.yaml:9: links\.wire\.forward\.delay: .*has no unit", said, re.MULTILINE)
    problems = json.loads(vnet("check", "broken.yaml", "--json", status=3).stdout)
    assert problems["ok"] is False
    places = {(p["line"], p["path"]) for p in problems["problems"]}
    assert places >= {(5, "nodes.left.segment"), (9, "links.wire.forward.delay")}
    assert not (vnet.cwd / "results").exists()


def test_a_file_that_is_not_there(vnet: Any) -> None:
    assert "nowhere.yaml" in vnet("run", "nowhere.yaml", status=3).stderr


def test_check_of_all_shipped_topologies(capsys: pytest.CaptureFixture[str]) -> None:
    """Shows that `vnet check` accepts every shipped topology, in this process because starting Python for
    each would take longer.

    tests/topology/test_shipped.py checks those of many runs, whose planning takes seconds.
    """
    files = [file for file in TOPOLOGIES.rglob("*.yaml") if "profiles" not in file.parts]
    for file in sorted(file for file in files if file.stem not in MANY_RUNS):
        status = main(["check", str(file)])
        said = capsys.readouterr()
        if file.name in NEEDS_PROGRAMS and status:
            assert status == 3 and "is not on this machine" in said.err
        elif file.name in NEEDS_NICS:
            assert status == 3 and "no such NIC is in this machine" in said.err
        else:
            assert status == 0 and ": good: " in said.out, said.err


def test_plan_is_deterministic_and_printable(vnet: Any) -> None:
    first, second = (vnet("plan", PAIR, "--json").stdout for _ in range(2))
    assert first == second
    assert json.loads(first)["lab"] == "pair"
    assert "round trip" in vnet("plan", PAIR).stdout


def test_schema_is_json_schema(vnet: Any) -> None:
    import jsonschema

    schema = json.loads(vnet("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_run_from_file_to_report(vnet: Any) -> None:
    done = vnet("run", PAIR, "--kernel", "fake", "--seed", "7", "-p", "hold=5 s", "--json")
    outcome = json.loads(done.stdout)
    run_dir = vnet.cwd / outcome["run_dir"]
    assert re.fullmatch(r"results/pair/\d{8}T\d{6}", outcome["run_dir"])
    assert outcome["state"] == "complete"
    for name in ("plan.json", "topology.yaml", "topology.svg", "manifest.json", "summary.json"):
        assert (run_dir / name).stat().st_size > 0, name
    assert (vnet.cwd / outcome["page"]).read_text().startswith("<!")
    plan = json.loads((run_dir / "plan.json").read_text())
    assert (plan["seed"], plan["parameters"]["hold"]) == (7, "5 s")
    phases = re.findall(r"^ +[\d.]+ s  (\w+)", done.stderr, re.MULTILINE)
    assert list(dict.fromkeys(phases)) == [
        "create", "network", "configure", "impair", "prove", "software", "ramp", "hold", "drain", "collect",
        "teardown", "reduce", "report",
    ]  # fmt: skip


def test_headline_in_the_terminal(vnet: Any) -> None:
    said = vnet("run", PAIR, "--kernel", "fake", "--lab", "other", "-p", "hold=5 s").stdout
    assert "messages received" in said
    assert re.search(r"^link checks: 3 holds$", said, re.MULTILINE)
    assert re.search(r"^report: results/other/\S+/report/index\.html$", said, re.MULTILINE)


def test_down_of_an_unknown_lab(vnet: Any) -> None:
    assert "lab nothing: no such lab; labs: none" in vnet("down", "nothing", status=1).stderr
    assert json.loads(vnet("ls", "--json").stdout) == []


def test_a_lab_whose_machines_outlive_its_process_is_dead(vnet: Any) -> None:
    ours = owned("qemu", os.getpid())
    recorded = [
        dataclasses.asdict(ours),
        dataclasses.asdict(dataclasses.replace(ours, role="lab", start_ticks=1)),
    ]
    (vnet.state / "orphan").mkdir(parents=True)
    (vnet.state / "orphan" / "lab.json").write_text(json.dumps({"kernel": "host", "processes": recorded}))
    (found,) = json.loads(vnet("ls", "--json").stdout)
    assert found["state"] == "dead; vnet down orphan clears it"


def test_an_answer_that_does_not_fit_is_no_internal_error() -> None:
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-m", "orchestrator.cli.main", "schema"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "standard output: No space left on device; free some and try again\n",
    )


@pytest.mark.parametrize("words", [("schema",), ("profiles", "lte"), ("plan", str(TOPOLOGIES / "ring.yaml"))])
def test_a_reader_that_has_gone_is_no_error(vnet: Any, words: tuple[str, ...]) -> None:
    """Shows that the command ends without an error if its output pipe is closed before it writes, as with `|
    head -n 1`.
    """
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        vnet.argv(*words), env=vnet.env, cwd=vnet.cwd, stdout=writes, stderr=subprocess.PIPE
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_internal_error_is_one_line_unless_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from orchestrator.cli import main as module

    monkeypatch.setitem(module.COMMANDS, "schema", ("no_such_module", "", "Before a run"))
    monkeypatch.delenv("VNET_DEBUG", raising=False)
    assert module.main(["schema"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("vnet: internal error: ModuleNotFoundError: ")
    assert said.count("\n") == 1
    monkeypatch.setenv("VNET_DEBUG", "1")
    assert module.main(["schema"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "Too many open files; raise `ulimit -n`"),
        (ImportError("libm.so.6: cannot open shared object file: Too many open files"), "`ulimit -n`"),
        (RuntimeError("can't start new thread"), "Resource temporarily unavailable; end some of"),
        (MemoryError(), "Cannot allocate memory; free some memory"),
        (OSError("Too many open files (os error 24): x.parquet"), "Too many open files; raise `ulimit -n`"),
    ],
    ids=("descriptors", "library", "threads", "memory", "rust"),
)
def test_what_the_machine_has_no_more_of_is_said_with_its_remedy(
    error: Exception, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from orchestrator.cli import main as module

    def short(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module.vnet, "main", short)
    assert module.main(["ls"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("this machine: ") and remedy in said and said.count("\n") == 1


def test_version(vnet: Any) -> None:
    assert re.fullmatch(r"vnet \d+\.\d+\.\d+\n", vnet("--version").stdout)


def test_a_lab_that_this_machine_cannot_hold_is_refused_before_it_is_made(vnet: Any) -> None:
    (vnet.cwd / "many.yaml").write_text(
        "name: many\nsegments: {lan: {subnet: 10.20.0.0/16}}\ngroups: {node: {count: 1000, segment: lan}}\n"
    )
    limited = [*("prlimit", "--nofile=1024:1024"), *vnet.argv()]
    env = vnet.env | {"PYTHONPATH": str(TOPOLOGIES.parent)}
    asked = [*limited, "run", "many.yaml", "--kernel", "host"]  # `auto` could take a lab kernel
    done = subprocess.run(asked, cwd=vnet.cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "many.yaml: open files: 1064: this machine allows 1024; raise the hard limit" in done.stderr
    assert not vnet.labs()
    vnet("check", "many.yaml")  # the file is correct apart from that limit


def test_results_that_cannot_be_written_are_refused_by_place_and_remedy(vnet: Any) -> None:
    (vnet.cwd / "file").write_text("in the way\n")
    done = vnet("run", PAIR, "--kernel", "fake", "--results", "file", status=1)
    assert done.stderr == (
        "file/pair: results cannot be written there (Not a directory); choose another place with --results\n"
    )
    assert not vnet.labs()


def test_out_names_the_run_and_results_its_parent(vnet: Any) -> None:
    vnet("run", PAIR, "--kernel", "fake", "-p", "hold=1 s", "--out", "mine/first", "--raw")
    assert (vnet.cwd / "mine/first/manifest.json").exists()
    vnet("run", PAIR, "--kernel", "fake", "-p", "hold=1 s", "--results", "all", "--raw")
    assert len([*(vnet.cwd / "all/pair").glob("*/manifest.json")]) == 1
    again = vnet("run", PAIR, "--kernel", "fake", "--out", "mine", "--raw", status=1)
    assert "--out mine: is not empty, and --out names the directory of this run alone; " in again.stderr
    assert again.stderr.rstrip().endswith("or write --results mine for runs below it")
    assert [path.name for path in (vnet.cwd / "mine").iterdir()] == ["first"]
    both = vnet("up", PAIR, "--kernel", "fake", "--out", "a", "--results", "b", status=2)
    assert "--out a --results b: " in both.stderr and not (vnet.cwd / "a").exists()
