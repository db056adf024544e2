"""Tests a newcomer's first commands through the real command line: explain, schema, new, completion."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import PROJECT, TOPOLOGIES, CommandLine


def completed(vnet: CommandLine, *words: str) -> list[str]:
    """Returns the shell's completions for the last of the words."""
    asked = {"_VNET_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["vnet", *words])}
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main"],
        env=vnet.env | asked | {"COMP_CWORD": str(len(words)), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
        cwd=vnet.cwd,
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_keys_are_explained(vnet: CommandLine) -> None:
    said = vnet("explain", "links.wan.both.delay").stdout
    assert "duration" in said and "One way delay." in said
    assert "hold" in vnet("explain", "run").stdout and "segments" in vnet("explain").stdout
    assert json.loads(vnet("explain", "loss", "--json").stdout)[0]["value"] == "share"
    assert "did you mean jitter" in vnet("explain", "jittr", status=2).stderr
    kinds = vnet("explain", "software.mosquitto").stdout
    assert kinds.startswith("nodes.NAME.software.NAME: one of these kinds\n  - An MQTT broker")


@pytest.mark.parametrize(
    ("traffic", "network"), [("request", "lte"), ("transfer", "20 ms"), ("ping", "5g-nr")]
)
def test_a_first_topology_passes_the_check_and_is_not_overwritten(
    vnet: CommandLine, traffic: str, network: str
) -> None:
    options = ("--name", "mine", "--traffic", traffic, "--clients", "3", "--network", network)
    vnet("new", *options)
    assert "good: 4 nodes" in vnet("check", "mine.yaml").stdout
    assert "exists already" in vnet("new", *options, status=2).stderr


def test_the_helper_of_a_language_is_written_once(vnet: CommandLine) -> None:
    vnet("new", "accounting", "python")
    assert "class Accounting" in (vnet.cwd / "vnet_accounting.py").read_text()
    assert "exists already" in vnet("new", "accounting", "python", status=2).stderr
    assert "cobol" in vnet("new", "accounting", "cobol", status=2).stderr
    assert "not for `vnet new accounting`" in vnet("new", "--name", "x", "accounting", "go", status=2).stderr


def test_new_asks_what_no_option_says(vnet: CommandLine) -> None:
    def answer(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            vnet.argv("new", "--clients", "2"),
            input=text,
            cwd=vnet.cwd,
            env=vnet.env | {"PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
        )

    done = answer("asked\nnonsense\nping\n\n")
    assert done.returncode == 0, done.stderr
    assert "delay: 20 ms" in (vnet.cwd / "asked.yaml").read_text()
    cut = answer("other\n")
    assert cut.returncode == 2 and "standard input ended" in cut.stderr


def test_new_refuses_what_is_no_topology_and_writes_nothing(vnet: CommandLine) -> None:
    options = ("--traffic", "ping", "--clients", "2")
    assert "is not a unit" in vnet("new", "--name", "a", *options, "--network", "5 parsecs", status=3).stderr
    assert "does not match" in vnet("new", "--name", "A B", *options, "--network", "5 ms", status=3).stderr
    assert not list(vnet.cwd.glob("*.yaml"))


def test_commands_labs_nodes_and_links_are_completed(vnet: CommandLine) -> None:
    vnet("up", str(TOPOLOGIES / "pair.yaml"), "--kernel", "fake", "--lab", "mine")
    assert completed(vnet, "ins") == ["inspect"]
    assert "--strict" in completed(vnet, "run", "--")
    assert completed(vnet, "inspect", "m") == ["mine"]
    assert completed(vnet, "exec", "mine", "left,r") == ["left,right"]
    assert completed(vnet, "link", "mine", "") == ["left-access"]
    assert completed(vnet, "link", "gone", "") == []
    assert completed(vnet, "explain", "links.wan.bo") == ["links.wan.both"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_shells_name_the_command(vnet: CommandLine, shell: str) -> None:
    assert f"_VNET_COMPLETE={shell}_complete" in vnet("completion", shell).stdout


def test_bash_takes_the_script(vnet: CommandLine) -> None:
    script = vnet("completion", "bash").stdout
    command = vnet.cwd / "vnet"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator.cli.main "$@"\n')
    command.chmod(0o755)
    asked = f'COMP_WORDS=(vnet prof); COMP_CWORD=1; _vnet_completion "{command}"; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"],
        env=vnet.env | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        cwd=vnet.cwd,
    )
    assert done.stdout.split() == ["profiles"], done.stderr


SMALLEST = """\
name: smallest
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server: {segment: lan, software: {answers: {udp: {listen: 9000}}}}
  client: {segment: lan, software: {ask: {udp: {to: server, push: {size: 100 B, rate: 5 /s}}}}}
run: {hold: 2 s}
"""


def test_the_smallest_file_has_a_report(vnet: CommandLine) -> None:
    """Shows that a file with only two nodes on a segment, without links and captures, has a report."""
    (vnet.cwd / "smallest.yaml").write_text(SMALLEST)
    said = vnet("run", "smallest.yaml", "--kernel", "fake", "--results", "out").stdout
    assert "index.html" in said and "cannot be reported" not in said


def test_a_service_of_ones_own_needs_no_questions(vnet: CommandLine) -> None:
    command = """sh -c 'exec python3 -m http.server 8000 --directory "/srv"'"""
    vnet("new", "--service", command, "--port", "8000", "--name", "mine", "--clients", "3")
    assert "good: 4 nodes" in vnet("check", "mine.yaml").stdout
    planned = json.loads(vnet("plan", "mine.yaml", "--json").stdout)
    server = next(node for node in planned["nodes"] if node["name"] == "server")
    assert server["software"][0]["process"]["argv"] == ["sh", "-c", command]
    assert server["mounts_copy"] == ["/etc", "/var", "/run"] and planned["on_node_failure"] == "continue"
    assert "impair: way, both: {profile: lte, loss: 5 %}" in (vnet.cwd / "mine.yaml").read_text()
    client = next(node for node in planned["nodes"] if node["name"] == "client1")
    assert 'http_client.py "http://10.50.0.1:8000/"' in client["software"][0]["process"]["argv"][-1]
    assert "exists already" in vnet("new", "--service", "x", "--name", "mine", status=2).stderr


def test_a_service_goes_with_no_traffic_and_a_port_with_no_other(vnet: CommandLine) -> None:
    assert "--traffic" in vnet("new", "--service", "x", "--traffic", "ping", status=2).stderr
    assert "--service COMMAND" in vnet("new", "--port", "80", status=2).stderr
    assert not list(vnet.cwd.glob("*.yaml"))
