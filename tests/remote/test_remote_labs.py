"""Tests labs on another machine through the real command line and ssh, and that results come back however the
lab ends.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import TOPOLOGIES, CommandLine
from far_machine import FarMachine, free_port

from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.lab.state import processes

PAIR = str(TOPOLOGIES / "pair.yaml")
AGENT = Path(__file__).parents[2] / "target" / "release" / "vnet-agent"
uml = pytest.mark.skipif(
    not find_binaries() or not AGENT.exists(), reason="needs the agent and a User-Mode Linux kernel"
)


def until(seconds: float, subject: str, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, f"waited {seconds} s for {subject}"
        time.sleep(0.05)


def run_dir(vnet: CommandLine) -> Path:
    (found,) = (vnet.cwd / "results" / "pair").iterdir()
    return found


def manifest(vnet: CommandLine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir(vnet) / "manifest.json").read_text())
    return found


def process(vnet: CommandLine, role: str) -> int:
    return next(p.pid for p in processes(vnet.state / "pair") if p.role == role)


@pytest.mark.uml
@pytest.mark.slow
@uml
def test_a_run_comes_home_whole_and_says_where_it_was_made(vnet: CommandLine, far: FarMachine) -> None:
    done = vnet("run", PAIR, "-p", "hold=2s", "--kernel", f"{far.url}/uml")
    there = f"{far.url}/uml"
    assert f"on {os.uname().nodename} ({there})" in done.stderr
    assert manifest(vnet)["state"] == "complete"
    assert manifest(vnet)["kernel"]["machine"] == there
    assert manifest(vnet)["host"]["name"] == os.uname().nodename
    run = run_dir(vnet)
    proofs = json.loads((run / "proof.json").read_text())
    assert proofs and all(proof["verdict"] == "holds" for proof in proofs), proofs
    for name in ("raw/messages.csv", "raw/console.log", "pcap", "messages.parquet"):
        assert (run / name).exists(), name
    page = (run / "report" / "index.html").read_text()
    assert there in page, "the report says on which machine its numbers were made"
    assert f"--kernel {there}" in page, "and with which command they are made again"
    assert list((far.place / "cache" / "vnet" / "far").iterdir()), "the code was carried there"


@pytest.mark.uml
@pytest.mark.slow
@uml
def test_a_lab_that_stays_is_worked_on_from_here(vnet: CommandLine, far: FarMachine) -> None:
    vnet("up", PAIR, "--kernel", f"{far.url}/uml")
    (lab,) = json.loads(vnet("ls", "--json").stdout)
    assert (lab["state"], lab["kernel"], lab["nodes"]) == ("up", f"{far.url}/uml", 2)
    assert (far.state / "pair" / "lab.json").exists(), "it is there"
    vnet("link", "pair", "left-access", "--delay", "30 ms", "--rate", "1 Mbit/s")
    seen = json.loads(vnet("inspect", "pair", "--json").stdout)
    assert seen["links"]["left-access"]["reverse"]["read"]["delay_ns"] == 30_000_000
    assert seen["run_dir"] == str(run_dir(vnet)), "its run directory has its name of this side"
    assert "delay 30ms" in vnet("exec", "pair", "left", "--", "tc", "qdisc", "show").stdout
    assert sorted(vnet("exec", "pair", "*", "--", "hostname").stdout.split()) == ["left"] * 2 + ["right"] * 2
    vnet("exec", "pair", "right", "--", "sh", "-c", "exit 9", status=9)
    big = vnet("exec", "pair", "left", "--", "seq", "200000").stdout
    assert big == "".join(f"{n}\n" for n in range(1, 200_001)), "much output comes whole"
    vnet("set", "pair", "left", "--mtu", "1280")
    assert json.loads(vnet("add", "pair", "left", "--idle", "--json").stdout)["added"][0]["node"] == "left2"
    vnet("down", "pair")
    assert manifest(vnet)["state"] == "complete"
    assert (run_dir(vnet) / "raw" / "console.log").exists()


@pytest.mark.uml
@pytest.mark.slow
@uml
@pytest.mark.parametrize("presses", [pytest.param(1, marks=pytest.mark.sweep), 2])
def test_ctrl_c_brings_home_what_was_measured(vnet: CommandLine, far: FarMachine, presses: int) -> None:
    running = begun(vnet, far)
    for _ in range(presses):
        running.send_signal(signal.SIGINT)
        time.sleep(0.3)  # two signals at once count as one
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert manifest(vnet)["state"] == "interrupted"
    assert (run_dir(vnet) / "raw" / "messages.csv").read_text().count("\nS,") > 0
    assert vnet.labs() == []


def begun(vnet: CommandLine, far: FarMachine) -> Any:
    """Starts a run with a hold of one hour and returns its process once it is in the hold."""
    running = vnet.start("run", PAIR, "-p", "hold=3600s", "--kernel", f"{far.url}/uml")
    progress = vnet.cwd / "results" / "pair"

    def holds() -> bool:
        assert running.poll() is None, running.communicate()
        return any('"phase": "hold"' in p.read_text() for p in progress.glob("*/raw/progress.jsonl"))

    until(60, "the hold", holds)
    return running


@pytest.mark.uml
@pytest.mark.slow
@uml
def test_kill_9_of_everything_here_loses_nothing(vnet: CommandLine, far: FarMachine) -> None:
    running = begun(vnet, far)
    running.kill()
    os.kill(process(vnet, "lab"), signal.SIGKILL)
    running.communicate()
    until(30, "the lab's own end there", lambda: not far.state.is_dir() or not list(far.state.iterdir()))
    (lab,) = json.loads(vnet("ls", "--json").stdout)
    assert lab["state"] == "dead; vnet down pair clears it"
    assert far.left(), "what it measured waits there"
    vnet("down", "pair")
    assert manifest(vnet)["state"] == "interrupted"
    assert (run_dir(vnet) / "raw" / "messages.csv").read_text().count("\nS,") > 0
    vnet("report", "--reduce", str(run_dir(vnet)))


@pytest.mark.uml
@pytest.mark.slow
@uml
@pytest.mark.sweep  # chaos/test_faults.py cuts a connection, and the next test loses one for longer
def test_a_lost_connection_fails_the_run_and_keeps_its_data(vnet: CommandLine, far: FarMachine) -> None:
    running = begun(vnet, far)
    os.kill(process(vnet, "ssh"), signal.SIGKILL)
    _, said = running.communicate(timeout=90)
    assert running.returncode == 1, said
    assert "the connection was lost" in said
    assert (manifest(vnet)["state"], manifest(vnet)["suspect"]) == ("failed", True)
    assert (run_dir(vnet) / "raw" / "messages.csv").read_text().count("\nS,") > 0


@pytest.mark.uml
@pytest.mark.slow
@uml
def test_a_machine_that_is_away_keeps_the_lab_until_it_is_back(vnet: CommandLine, far: FarMachine) -> None:
    running = begun(vnet, far)
    far.stop()
    os.kill(process(vnet, "ssh"), signal.SIGKILL)
    _, said = running.communicate(timeout=90)
    assert running.returncode == 1, said
    assert "no ssh server listens there" in said and "`vnet down pair` brings it here" in said
    said = vnet("down", "pair", status=1).stderr
    assert "repeat `vnet down pair` when the machine can be reached" in said
    assert "lab pair: runs already" in vnet("run", PAIR, "--kernel", "fake", status=1).stderr
    far.start()
    vnet("down", "pair")
    assert manifest(vnet)["state"] == "interrupted"
    assert (run_dir(vnet) / "raw" / "messages.csv").read_text().count("\nS,") > 0


@pytest.mark.uml
@pytest.mark.slow
@uml
def test_kill_9_of_the_owner_there_leaves_nothing_there(vnet: CommandLine, far: FarMachine) -> None:
    running = begun(vnet, far)
    (home,) = (far.place / "kept" / "vnet" / "far").iterdir()
    os.kill(json.loads((home / "owner.json").read_text())["pid"], signal.SIGKILL)
    _, said = running.communicate(timeout=90)
    assert running.returncode == 1, said
    assert "the lab's owner there ended with status" in said
    assert manifest(vnet)["state"] == "failed"


def test_the_fake_driver_there_runs_the_whole_way_in_seconds(vnet: CommandLine, far: FarMachine) -> None:
    vnet("run", PAIR, "--kernel", f"{far.url}/fake")
    assert (manifest(vnet)["driver"], manifest(vnet)["state"]) == ("fake", "complete")


def test_a_name_in_use_there_is_left_alone(vnet: CommandLine, far: FarMachine) -> None:
    other = CommandLine(vnet.cwd, far.state)
    other("up", PAIR, "--kernel", "fake", "--results", "others")
    try:
        said = vnet("run", PAIR, "--kernel", f"{far.url}/fake", status=1).stderr
        assert "lab pair: the name is in use by process" in said
        assert json.loads(other("ls", "--json").stdout)[0]["state"] == "up", "somebody else's lab goes on"
    finally:
        other("down", "pair")


@pytest.mark.parametrize(
    ("key", "known", "port", "words"),
    [
        ("mine", "known", "closed", "no ssh server listens there: is the port right"),
        ("another", "known", "", "it takes none of the keys that ssh has here"),
        (
            "mine",
            "empty",
            "",
            "this machine's host key is not known here, and a run cannot ask: run `ssh -p",
        ),
        ("mine", "wrong", "", "another host key than the one known here"),
    ],
)
def test_what_ssh_refuses_is_explained_and_leaves_nothing(
    vnet: CommandLine, far: FarMachine, key: str, known: str, port: str, words: str
) -> None:
    vnet.more = far.ssh(key, known)
    url = f"ssh://127.0.0.1:{free_port()}" if port else far.url
    said = vnet("run", PAIR, "--kernel", url, status=1).stderr
    assert words in said and said.startswith(url), said
    assert not (vnet.cwd / "results").exists() and not (far.place / "cache").exists()


@pytest.mark.skipif(
    host_facts().root and host_facts().lacks("netem") is None, reason="this machine lacks nothing"
)
def test_what_is_missing_there_is_said_before_anything_is_made(vnet: CommandLine, far: FarMachine) -> None:
    said = vnet("run", PAIR, "--kernel", f"{far.url}/host", status=4).stderr
    assert f"{os.uname().nodename} cannot run lab pair" in said
    assert "netem in the kernel" in said or "needs root" in said
    assert "playbooks/host.yml makes a server ready" in said
    assert not (vnet.cwd / "results").exists()


def test_a_shell_that_is_none_is_said(vnet: CommandLine, far: FarMachine) -> None:
    with (far.place / "authorized").open("r+") as file:
        entry = file.read()
        file.seek(0)
        file.write(f'command="echo welcome" {entry}')
    assert "its shell answered" in vnet("run", PAIR, "--kernel", far.url, status=1).stderr


SHIM = """\
#!/bin/sh
case $(basename $0) in
    id) echo 1000 ;;
    sudo) printf "%s\\n" "$*" >> {place}/sudo.log; shift; [ "$1" = -H ] && shift; exec "$@" ;;
esac
"""


def test_an_ordinary_account_goes_through_sudo(vnet: CommandLine, far: FarMachine) -> None:
    programs = far.place / "bin"
    programs.mkdir()
    for name in ("id", "sudo"):
        (programs / name).write_text(SHIM.format(place=far.place))
        (programs / name).chmod(0o755)
    far.stop()
    far.more["PATH"] = f"{programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    far.start()
    vnet("run", PAIR, "--kernel", f"{far.url}/fake")
    asked = (far.place / "sudo.log").read_text().splitlines()
    assert asked[0] == "-n true"
    assert all(line.startswith(("-n true", "-n -H sh -c ")) for line in asked)
    assert any("orchestrator.run.remote run" in line for line in asked)
    assert any("orchestrator.run.remote pack" in line for line in asked)


def test_cells_of_a_campaign_run_there(vnet: CommandLine, far: FarMachine, tmp_path: Path) -> None:
    file = tmp_path / "cells.yaml"
    file.write_text(
        f"campaign: {{topologies: [{PAIR}], factors: {{delay: [1 ms, 2 ms]}}, repetitions: 1}}\nname: cells\n"
    )
    vnet("campaign", "run", str(file), "--kernel", f"{far.url}/fake", "--out", "cells")
    lines = (tmp_path / "cells" / "cells.jsonl").read_text().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["complete"] * 2
    for path in (tmp_path / "cells" / "runs").glob("*/manifest.json"):
        assert json.loads(path.read_text())["kernel"]["machine"] == f"{far.url}/fake"
