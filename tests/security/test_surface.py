"""Tests further attacks: output of programs that controls a terminal, state directories of other users,
hostile names.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.text import Text
from sandboxed import ROOT, vnet

from orchestrator.cli.console import plain
from orchestrator.cli.output import console, note, print_json, say, table
from orchestrator.cli.sessions import Prefixer
from orchestrator.doctor import host_kernel
from orchestrator.lab import state
from orchestrator.lab.cgroup import Groups, Layout
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Events, Warning
from orchestrator.lab.launcher_events import LauncherEvents
from orchestrator.lab.sandbox import NodeLimits, bounds
from orchestrator.lab.serve import Server
from orchestrator.lab.stopped_processes import StoppedChildren
from orchestrator.language.problem import TopologyError
from orchestrator.language.terminal import printable
from orchestrator.plan.build import make_plan
from orchestrator.run.directories import RunError, new_run_dir
from orchestrator.topology.loading import parse

ORDER = "\x1b]0;owned\x07\x1b[2J\r\u202e"


def test_events_and_warnings_give_a_terminal_no_orders() -> None:
    events, heard = Events(), []
    events.listen(heard.append)
    events.emit("exited", log=[ORDER], more={"text": ORDER})
    events.warn(Warning("exited", f"said {ORDER}", ORDER))
    assert len(heard) == 2
    for text in (
        str(heard[0]["log"][0]),
        heard[0]["more"]["text"],
        heard[1]["text"],
        events.warnings[0].text,
    ):
        assert text.isprintable() and "\\x1b]0;owned\\x07" in text


def test_plain_text_stays_as_it_is() -> None:
    for text in ("two\nlines\tand a tab", "naïve — 日本", {"a": ["x", 1, None]}):
        assert printable(text) == text


def test_a_state_directory_that_another_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, elsewhere = tmp_path / "vnet", tmp_path / "elsewhere"
    monkeypatch.delenv("VNET_STATE_DIR", raising=False)
    monkeypatch.setattr(state, "state_root", lambda: root)
    elsewhere.mkdir()
    root.symlink_to(elsewhere)
    with pytest.raises(LabError, match="belongs to another user"):
        state.State(root / "lab", "lab", "host", tmp_path)
    root.unlink()
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(LabError, match="others may write there"):
        state.State(root / "lab", "lab", "host", tmp_path)
    root.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(root, 65534, -1)
        with pytest.raises(LabError, match="belongs to another user"):
            state.State(root / "lab", "lab", "host", tmp_path)
    assert not list(elsewhere.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user")
def test_results_do_not_go_where_anothers_link_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that results are refused if another user made the lab's directory a link, as is
    possible in /tmp.
    """
    monkeypatch.delenv("SUDO_UID", raising=False)
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "results" / "pair"
    for directory in (elsewhere, link.parent):
        directory.mkdir()
    link.symlink_to(elsewhere)
    assert new_run_dir(link).parent == link, "one's own link is as good as a directory"
    os.chown(link, 65534, -1, follow_symlinks=False)
    with pytest.raises(RunError, match=r"pair: is a link to .* that another user made \(uid 65534\)"):
        new_run_dir(link)
    assert len(list(elsewhere.iterdir())) == 1
    monkeypatch.setenv("SUDO_UID", "65534")
    new_run_dir(link)


def test_nothing_has_a_name_in_tmp_that_others_can_guess() -> None:
    """Shows that no source has a fixed path in /tmp except the account's state directory, which is checked
    before use.
    """
    parts = ("orchestrator", "capture", "contract", "reports", "vnet")
    sources = [path for part in parts for path in (ROOT / part).rglob("*.py")]
    fixed = {path.name for path in sources if re.search(r"""["'](/var)?/tmp/""", path.read_text())}
    # inventory.py names a directory of a guest
    assert len(sources) > 300 and fixed == {"state.py", "inventory.py"}


HOSTILE_NAMES = (
    "../x",
    "..",
    "a/b",
    "/etc",
    "a b",
    "-rf",
    "a;reboot",
    "$(id)",
    "a\nb",
    "\x1b[2J",
    "%s",
    "{{x}}",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "name: NAME\nsegments: {lan: {subnet: 10.78.0.0/24}}\nnodes: {a: {segment: lan}}",
        "name: x\nsegments: {NAME: {subnet: 10.78.0.0/24}}\nnodes: {a: {segment: NAME}}",
        "name: x\nsegments: {lan: {subnet: 10.78.0.0/24}}\nnodes: {NAME: {segment: lan}}",
        "name: x\nsegments: {lan: {subnet: 10.78.0.0/24}}\nnodes: {a: {segment: lan, software: {NAME: {command: w}}}}",
        "name: x\nsegments: {lan: {subnet: 10.78.0.0/24}}\nnodes: {a: {segment: lan}}\ncaptures: {NAME: {at: node a}}",
        "name: x\nsegments: {l: {subnet: 10.78.0.0/24}, m: {subnet: 10.78.0.0/24}}\nnodes: {a: {segment: l}}\n"
        "links: {NAME: {between: [l, m]}}",
    ],
    ids=["lab", "segment", "node", "software", "capture", "link"],
)
def test_a_name_is_a_part_of_no_path_and_no_command(text: str, name: str) -> None:
    """Shows that names of labs, nodes, programs, captures and links, which become names of files, namespaces
    and devices, may not contain paths or commands.
    """
    parse("f", text.replace("NAME", '"harmless"').encode())
    with pytest.raises(TopologyError):
        parse("f", text.replace("NAME", json.dumps(name)).encode())


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_under_any_umask_nobody_else_writes_a_state_or_calls_a_lab(
    mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that under any umask, such as Ubuntu's 002, other users can write neither the state directories
    nor the control socket.
    """
    root = tmp_path / "vnet"
    monkeypatch.delenv("VNET_STATE_DIR", raising=False)
    monkeypatch.setattr(state, "state_root", lambda: root)
    previous = os.umask(mask)
    try:
        made = state.State(root / "lab", "lab", "host", tmp_path)
        server = Server(SimpleNamespace(loop=SimpleNamespace(watch=lambda *_: None, unwatch=lambda *_: None)))  # type: ignore[arg-type]
        server.listen(root / "lab" / "control.sock")
        for path in (root, root / "lab"):
            assert not path.stat().st_mode & 0o022
        assert not (root / "lab" / "control.sock").stat().st_mode & 0o177
        server.close()
        made.release()
    finally:
        os.umask(previous)


def test_nothing_that_a_command_prints_is_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    say(ORDER)
    note(ORDER)
    console().print(table(("name",), [(f"{ORDER}end",)]), ORDER, Text(ORDER, style="red"))
    Prefixer(say, 4)("node", "stdout", f"{ORDER}\r\n".encode())
    said = capsys.readouterr()
    for line in (said.out + said.err).split("\n"):
        assert line.isprintable()
    assert "\\x1b]0;owned\\x07" in said.out and "owned" in said.err


def test_answers_in_json_mean_what_they_meant(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = {f"{ORDER}\x9b31m": [f"{ORDER}\x7f", "naïve — 日本"]}
    print_json(hostile)
    said = capsys.readouterr().out
    assert json.loads(said) == hostile and "日本" in said
    assert said.replace("\n", "").isprintable()


def test_a_serial_line_s_log_has_lines_and_no_orders() -> None:
    assert plain("\x1b[0;1;39mOK\x1b[0m\r\nlogin: ") == "OK\nlogin: "


def test_errors_about_a_colleague_s_files_are_words(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").write_text(json.dumps({"format": ORDER, "captures": []}))
    for command in (("report", "run"), ("packets", "run", "--point", ORDER), ("check", f"{ORDER}.yaml")):
        done = vnet(tmp_path, *command)
        assert done.returncode != 0 and done.stderr
        assert all(line.isprintable() for line in (done.stdout + done.stderr).split("\n")), done.stderr


def test_commands_write_by_one_door() -> None:
    """Shows that only `output.py`, which escapes control characters, writes the output of commands."""
    doors = {
        path.name for path in (ROOT / "orchestrator/cli").rglob("*.py") if "click.echo(" in path.read_text()
    }
    assert doors == {"output.py"}


class Full:
    """A driver whose node reached its memory limit."""

    def reached(self, node: str) -> list[str]:
        return ["memory: 1 killed at 64 MiB, the most that it may have"]


def test_an_agent_that_its_bound_killed_is_told_with_the_reason() -> None:
    events = Events()
    lab = SimpleNamespace(
        driver=Full(), nodes={"a": SimpleNamespace(vm=None)}, node=lambda _: SimpleNamespace(vm=None), meant=set(),
        events=events, node_states={}, started={}, plan=SimpleNamespace(on_node_failure="continue"),
        stopped=StoppedChildren(),
    )  # fmt: skip
    news = LauncherEvents()
    news.lab = lab  # type: ignore[assignment]
    news.take({"event": "exited", "node": "a", "software": "agent", "status": None, "log": []})
    reason = "(memory: 1 killed at 64 MiB, the most that it may have)"
    assert lab.node_states == {"a": f"failed: its agent ended {reason}"}
    assert events.warnings[0].text == f"nodes.a.agent: ended unexpectedly {reason}: no output"


TOPOLOGY = """\
name: opened
segments: {lan: {subnet: 10.78.0.0/24}}
nodes:
  a: {segment: lan, mounts: {MODE: [PATH]}}
  b: {segment: lan}
"""


@pytest.mark.parametrize(
    ("mode", "path", "rule"),
    [
        ("read", "relative", "is not an absolute path"),
        ("read", "/srv/../etc", "is not an absolute path"),
        ("read", "/proc/1", "is made anew for each node"),
        ("write", "/", "is not an absolute path"),
        ("write", "/srv", "belongs to the machine's system"),
        ("write", "/etc/cron.d", "belongs to the machine's system"),
    ],
)
def test_paths_that_cannot_be_opened(mode: str, path: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse("f", TOPOLOGY.replace("MODE", mode).replace("PATH", path).encode())
    assert rule in str(caught.value)


def test_what_a_file_opens_is_said_in_the_plan() -> None:
    text = TOPOLOGY.replace("MODE", "write").replace("PATH", "/srv/data")
    made = make_plan(parse("f", text.encode()))
    assert made.nodes[0].mounts_write == ("/srv/data",)
    assert [(n.place, n.text) for n in made.notes] == [("nodes.a", "writes /srv/data of this machine")]


def test_the_doctor_reports_missing_parts_of_the_sandbox(tmp_path: Path) -> None:
    old = host_kernel.sandbox("5.10.0", tmp_path)
    assert old.state == "missing" and "users of its own" in old.found and "filter" in old.found
    for name in ("self/ns/user", "sys/kernel/seccomp/actions_avail"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert "not users" not in host_kernel.sandbox("6.1.0", tmp_path).found


OPTION = "-oProxyCommand=touch owned"


@pytest.mark.parametrize("variable", ["ansible_host", "ansible_user"])
def test_a_host_of_an_inventory_is_no_option_of_ssh(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a host variable of a foreign inventory (`--hosts`) that looks like an option of ssh is
    refused.
    """
    (tmp_path / "lab.yaml").write_text(TOPOLOGY.replace("KEY: [PATH]", "kind: light"))
    variables = {"lab1": {variable: OPTION}}
    (tmp_path / "hosts.yml").write_text(json.dumps({"lab_hosts": {"hosts": variables}}))
    monkeypatch.setenv("VNET_INVENTORY", str(tmp_path / "hosts.yml"))
    done = vnet(tmp_path, "plan", "lab.yaml", "--hosts", "all")
    assert done.returncode != 0 and "that ssh could" in done.stderr, done
    assert not (tmp_path / "owned").exists()


def test_a_host_of_a_topology_is_no_option_of_ssh() -> None:
    text = (
        TOPOLOGY.replace("KEY: [PATH]", "kind: light") + f'hosts: {{lab1: {{machine: "ssh://{OPTION}"}}}}\n'
    )
    with pytest.raises(TopologyError, match="that ssh could"):
        parse("f", text.encode())


@pytest.mark.parametrize(
    ("own", "reached"),
    [
        (1, "memory: 1 killed at 64 MiB, the most that it may have"),
        (0, "memory: 1 killed at 384 MiB, three quarters of the machine's, which all nodes had together"),
    ],
)
def test_whose_bound_a_program_was_killed_at(tmp_path: Path, own: int, reached: str) -> None:
    """Shows that the message names the limit at which a program was killed: `oom` counts at the limit's
    group, `oom_kill` at the victim's (Documentation/admin-guide/cgroup-v2.rst).
    """
    limits = NodeLimits(Groups(Layout(2, {"memory": tmp_path}), "lab"), bounds(512 << 20, 1000))
    (tmp_path / "vnet/lab/a").mkdir(parents=True)
    (tmp_path / "vnet/lab/a/memory.events").write_text(f"low 0\nhigh 0\nmax 7\noom {own}\noom_kill 1\n")
    node = SimpleNamespace(cgroup="vnet/lab/a", memory_limit_bytes=64 << 20, process_limit=None)
    assert limits.reached(node) == [reached]  # type: ignore[arg-type]
