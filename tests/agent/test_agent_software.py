"""Tests the agent's supervised programs and interactive commands."""

from __future__ import annotations

import base64
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import Launcher

SECOND = 1_000_000_000


def program(*argv: str, **more: Any) -> dict[str, Any]:
    process = {"argv": list(argv), "env": {}, "files": [], "restart": "never", "expect": "running"} | more
    return {"name": "prog", "role": "utility", "process": process}


def ready(**subject: Any) -> dict[str, Any]:
    return {"tcp_port": None, "log": None, "command": None, "deadline_ns": 3 * SECOND} | subject


@pytest.fixture
def one(launcher: Launcher) -> Launcher:
    launcher.lab_up(["n"])
    return launcher


def exited(event: dict[str, Any]) -> bool:
    return event.get("event") == "exited"


def state(one: Launcher) -> dict[str, Any]:
    got: dict[str, Any] = one.do("software")["nodes"]["n"]["prog"]
    return got


def test_files_environment_directory_and_log(one: Launcher) -> None:
    files = [{"path": "sub/conf", "content": "from a file\n", "mode": 0o600}]
    script = "cat sub/conf; echo $WORD; pwd; hostname; sleep 100"
    spec = program("sh", "-c", script, files=files, env={"WORD": "given"}, ready=ready(log="n"))
    one.do("start", node="n", software=spec)
    time.sleep(0.2)
    home = one.directory / "nodes" / "n"
    assert (one.logs / "n.prog.log").read_text() == f"from a file\ngiven\n{home}\nn\n"
    assert stat.S_IMODE((home / "sub" / "conf").stat().st_mode) == 0o600


def test_readiness_by_port_text_and_command(one: Launcher) -> None:
    serve = (
        "import socket,time; time.sleep(.3); s=socket.socket(); "
        "s.bind(('10.77.0.1',77)); s.listen(); time.sleep(99)"
    )
    began = time.monotonic()
    answer = one.do("start", node="n", software=program("python3", "-c", serve, ready=ready(tcp_port=77)))
    assert time.monotonic() - began > 0.3
    assert Path(f"/proc/{answer['pid']}").exists() and state(one)["state"] == "ready"
    spec = program("sh", "-c", "sleep .2; echo now ready; sleep 99", ready=ready(log="now ready"))
    one.do("start", node="n", software=spec | {"name": "second"})
    spec = program("sh", "-c", "sleep .2; touch flag; sleep 99", ready=ready(command=["test", "-e", "flag"]))
    one.do("start", node="n", software=spec | {"name": "third"})
    assert (one.directory / "nodes" / "n" / "flag").exists()


def test_a_missed_deadline_shows_the_last_lines(one: Launcher) -> None:
    spec = program("sh", "-c", "seq 1 30; sleep 99", ready=ready(tcp_port=77, deadline_ns=SECOND // 4))
    answer = one.ask("start", node="n", software=spec)
    assert not answer["ok"]
    assert "0.25 s" in answer["error"] and "port 77" in answer["error"]
    assert answer["error"].endswith("\n".join(str(n) for n in range(11, 31)))
    assert one.until(exited)["status"] == 137


def test_an_early_end_fails_the_start(one: Launcher) -> None:
    spec = program("sh", "-c", "echo cannot bind >&2; exit 3", ready=ready(tcp_port=77))
    answer = one.ask("start", node="n", software=spec)
    assert not answer["ok"] and "status 3" in answer["error"] and "cannot bind" in answer["error"]
    assert state(one) | {"pid": 0} == {"state": "failed", "pid": 0, "status": 3, "restarts": 0}


def test_a_missing_program_is_named(one: Launcher) -> None:
    answer = one.ask("start", node="n", software=program("/no/such/program"))
    assert not answer["ok"] and "/no/such/program" in answer["error"] and "prog" in answer["error"]


def test_exits_are_reported_and_judged(one: Launcher) -> None:
    one.do("start", node="n", software=program("sh", "-c", "sleep .1; echo bye; kill -9 $$"))
    event = one.until(exited)
    assert (event["node"], event["software"], event["status"], event["expected"]) == ("n", "prog", 137, False)
    assert event["log"] == ["bye"]
    one.events.clear()
    one.do("start", node="n", software=program("sh", "-c", "sleep .1", expect="exited"))
    assert one.until(exited)["expected"] is True
    assert state(one)["state"] == "exited"


def test_restarts_back_off(one: Launcher) -> None:
    one.do("start", node="n", software=program("sh", "-c", "sleep .05; exit 1", restart="on-failure"))
    began = time.monotonic()
    one.until(lambda e: e.get("event") == "restarted" and e["restarts"] == 3)
    # The program waits 100, 200 and 400 ms between its starts, and its three runs take 50 ms each.
    assert time.monotonic() - began > 0.8
    one.do("stop", node="n", software="prog", signal="SIGTERM", timeout_ns=SECOND)
    assert state(one)["state"] in ("exited", "failed")


def test_stop_escalates_to_kill(one: Launcher) -> None:
    spec = program("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done", ready=ready(log="up"))
    one.do("start", node="n", software=spec)
    began = time.monotonic()
    answer = one.do("stop", node="n", software="prog", signal="SIGTERM", timeout_ns=SECOND // 4)
    assert answer["status"] == 137 and time.monotonic() - began > 0.2
    assert one.until(exited)["expected"] is True


def test_a_node_takes_its_descendants_along(one: Launcher) -> None:
    script = "setsid sh -c 'echo $$ > deep; exec sleep 1000' & sleep 1000"
    one.do("start", node="n", software=program("sh", "-c", script))
    deep = one.directory / "nodes" / "n" / "deep"
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline and not (deep.exists() and deep.read_text()):
        time.sleep(0.01)
    pid = int(deep.read_text())
    one.do("destroy", nodes=["n"])
    assert not Path(f"/proc/{pid}").exists()


def output(one: Launcher, stream: str = "stdout") -> str:
    parts = [
        base64.b64decode(e["data"])
        for e in one.events
        if e.get("event") == "output" and e["stream"] == stream
    ]
    return b"".join(parts).decode()


def test_exec_streams_both_outputs_and_the_status(one: Launcher) -> None:
    argv = ["sh", "-c", "echo out; echo err >&2; hostname; exit 7"]
    answer = one.do("exec", node="n", argv=argv, env={}, tty=None)
    assert answer["status"] == 7
    assert output(one) == "out\nn\n" and output(one, "stderr") == "err\n"


def test_exec_takes_input_until_its_end(one: Launcher) -> None:
    number = one.send("exec", node="n", argv=["wc", "-c"], env={}, tty=None)
    data = base64.b64encode(b"x" * 200_000).decode()
    one.do("input", target=number, data=data)
    one.do("input", target=number, eof=True)
    assert one.answer(number)["status"] == 0
    assert output(one).strip() == "200000"


def test_exec_with_a_terminal(one: Launcher) -> None:
    number = one.send("exec", node="n", argv=["sh"], env={"PS1": ""}, tty={"rows": 31, "cols": 99})
    one.do("input", target=number, data=base64.b64encode(b"tty; stty size\n").decode())
    one.until(lambda _: "31 99" in output(one))
    one.do("resize", target=number, rows=40, cols=120)
    one.do("input", target=number, data=base64.b64encode(b"stty size\n").decode())
    one.until(lambda _: "40 120" in output(one))
    assert "/dev/pts/" in output(one)
    one.do("input", target=number, eof=True)
    assert one.answer(number)["status"] == 0


def test_exec_can_be_signalled(one: Launcher) -> None:
    number = one.send("exec", node="n", argv=["sleep", "1000"], env={}, tty=None)
    time.sleep(0.1)
    one.do("signal", target=number, signal="SIGINT")
    assert one.answer(number)["status"] == 130


def test_exec_of_a_missing_program(one: Launcher) -> None:
    answer = one.ask("exec", node="n", argv=["/no/such"], env={}, tty=None)
    assert not answer["ok"] and "/no/such" in answer["error"]
    answer = one.ask("exec", node="nobody", argv=["true"], env={}, tty=None)
    assert not answer["ok"] and "nobody" in answer["error"]


def test_no_zombies(one: Launcher) -> None:
    for _ in range(5):
        one.do("exec", node="n", argv=["sh", "-c", "(sleep .05 &) ; true"], env={}, tty=None)
    time.sleep(0.3)
    me = os.getpid()
    stats = [p.read_text() for p in Path("/proc").glob("[0-9]*/stat") if p.exists()]
    parents = {s.split(")")[1].split()[1] for s in stats if s.split(")")[1].split()[0] == "Z"}
    agent = one.do("exec", node="n", argv=["sh", "-c", "echo $PPID"], env={}, tty=None)
    assert agent["status"] == 0 and me != 0
    assert output(one).strip().splitlines()[-1] not in parents
