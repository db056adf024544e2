"""Tests a real lab on the machine's own kernel through the command line: exec, shell on a pty, clones,
Ctrl-C.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).resolve().parents[2] / "target/release/vnet-agent"
LAB = f"clitest-{os.getpid()}"  # so that two runs of this suite do not meet
PLAIN = """\
segments:
  lan: {subnet: 10.30.0.0/24}
groups:
  meter: {count: 3, segment: lan}
nodes:
  server:
    segment: lan
    software: {mosquitto: {broker: mosquitto}}
"""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root"),
    pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)"),
]


@pytest.fixture
def lab(vnet: Any) -> Iterator[Any]:
    (vnet.cwd / "plain.yaml").write_text(f"name: {LAB}\n{PLAIN}")
    vnet("up", "plain.yaml", "--kernel", "host")
    try:
        yield vnet
    finally:
        vnet("down", LAB)
        assert not list(Path("/run/netns").glob(f"vnet-{LAB}*"))


def test_a_labs_life(lab: Any) -> None:
    assert lab("exec", LAB, "meter1", "--", "hostname").stdout == "meter1\n"
    said = lab("exec", LAB, "meter", "--", "hostname").stdout  # lines as they arrive, behind their node
    assert sorted(said.splitlines()) == ["meter1  meter1", "meter2  meter2", "meter3  meter3"]
    assert lab("exec", LAB, "server", "--", "sh", "-c", "exit 3", status=3).stdout == ""
    failed = lab("exec", LAB, "meter[1-2]", "--", "sh", "-c", "[ $(hostname) = meter1 ]", status=1)
    assert failed.stderr.splitlines() == ["meter2: exit status 1", "1 of 2 nodes failed"]
    added = json.loads(lab("add", LAB, "meter", "-n", "2", "--json").stdout)["added"]
    assert [one["node"] for one in added] == ["meter4", "meter5"]
    address = lab("exec", LAB, "meter5", "--", "ip", "-4", "-br", "address", "show", "eth0").stdout
    assert added[1]["address"] in address
    lab("set", LAB, "meter5", "--mtu", "1400", "--hostname", "fifth")
    assert lab("exec", LAB, "meter5", "--", "cat", "/sys/class/net/eth0/mtu").stdout == "1400\n"
    assert lab("exec", LAB, "meter5", "--", "hostname").stdout == "fifth\n"
    lab("remove", LAB, "meter4")
    assert not Path(f"/run/netns/vnet-{LAB}.meter4").exists()
    assert lab("exec", LAB, "meter5", "--", "true").returncode == 0


def test_input_and_binary_output_pass_unharmed(lab: Any) -> None:
    data = bytes(range(256)) * 400
    done = subprocess.run(
        lab.argv("exec", LAB, "server", "--", "cat"),
        cwd=lab.cwd, env=lab.env, input=data, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == data


class Terminal:
    """Runs a command on a pty and holds its other end."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        self.seen = ""

    def until(self, text: str) -> str:
        """Returns the output up to and including `text`."""
        deadline = time.monotonic() + 30
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        came, _, self.seen = self.seen.partition(text)
        return came + text

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def status(self) -> int:
        """Returns the exit status; reads the remaining output first, so that the command can end."""
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:  # Linux: the other side of the pty is closed
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_shell_is_a_terminal_on_the_node(lab: Any) -> None:
    import fcntl
    import struct
    import termios

    terminal = Terminal(lab.argv("shell", LAB, "meter2"), {**lab.env, "TERM": "xterm"})
    terminal.until("meter2")
    terminal.type("tty && hostname && echo sum=$((6*7))\r")
    assert "/dev/pts/" in terminal.until("sum=42")  # no bare 42: a prompt with the lab's name may hold one
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    time.sleep(1.0)  # the new size travels to the node within half a second
    terminal.type("stty size\r")
    assert "33 77" in terminal.until("33 77")
    terminal.type("sleep 100\r")
    time.sleep(0.5)
    terminal.type("\x03")  # Ctrl-C belongs to the node, not to vnet
    terminal.type("echo status $?\r")
    terminal.until("status 130")
    terminal.type("exit 5\r")
    assert terminal.status() == 5


RUN = """\
segments:
  lan: {subnet: 10.30.0.0/24}
nodes:
  server: {segment: lan, software: {mosquitto: {broker: mosquitto}}}
  receiver: {segment: lan, software: {ear: {mqtt: {broker: server, subscribe: [{topic: hello, qos: 1}]}}}}
  sender:
    segment: lan
    software:
      mouth: {mqtt: {broker: server, publish: {topic: hello, qos: 1, rate: 10 /s, rate_of: client}}}
run: {hold: 60 s, drain: 5 s}
"""


def begun(process: subprocess.Popen[str], word: str) -> None:
    """Reads a run's progress lines until one contains `word`."""
    assert process.stderr is not None
    while word not in (line := process.stderr.readline()):
        assert line, process.wait(10)


def test_ctrl_c_tears_down_and_reports_on_what_was_measured(vnet: Any) -> None:
    (vnet.cwd / "run.yaml").write_text(f"name: {LAB}\n{RUN}")
    process = vnet.start("run", "run.yaml", "--kernel", "host", "--json")
    begun(process, "  hold")
    time.sleep(2)  # a second of samples, at least
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    outcome = json.loads(out)
    assert outcome["state"] == "interrupted"
    assert (vnet.cwd / outcome["page"]).exists()
    assert "interrupting: the lab is torn down, measurements are kept (Ctrl-C again: stop at once)" in err
    assert not list(Path("/run/netns").glob(f"vnet-{LAB}*"))


def test_ctrl_c_while_a_lab_comes_up_says_so_and_leaves_nothing(vnet: Any) -> None:
    never = "{command: sleep 100, ready: {tcp: 9, within: 90 s}}"
    node = f"nodes: {{a: {{segment: lan, software: {{s: {never}}}}}}}"
    (vnet.cwd / "up.yaml").write_text(f"name: {LAB}\nsegments: {{lan: {{subnet: 10.9.0.0/24}}}}\n{node}\n")
    process = vnet.start("up", "up.yaml", "--kernel", "host")
    begun(process, "  software")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and f"lab {LAB}: interrupted" in err and "without a word" not in err, err
    assert not list(Path("/run/netns").glob(f"vnet-{LAB}*"))


def test_ctrl_c_twice_ends_it_hard_and_leaves_nothing(vnet: Any) -> None:
    (vnet.cwd / "run.yaml").write_text(f"name: {LAB}\n{RUN}")
    process = vnet.start("run", "run.yaml", "--kernel", "host")
    begun(process, "  ramp")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not list(Path("/run/netns").glob(f"vnet-{LAB}*"))
    (run_dir,) = (vnet.cwd / "results" / LAB).iterdir()
    assert json.loads((run_dir / "manifest.json").read_text())["state"] == "interrupted"


def test_kill_9_of_the_command_then_down_leaves_nothing(vnet: Any) -> None:
    (vnet.cwd / "run.yaml").write_text(f"name: {LAB}\n{RUN}")
    process = vnet.start("run", "run.yaml", "--kernel", "host")
    begun(process, "  ramp")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    vnet("down", LAB)
    assert not list(Path("/run/netns").glob(f"vnet-{LAB}*"))
    (run_dir,) = (vnet.cwd / "results" / LAB).iterdir()
    assert json.loads((run_dir / "manifest.json").read_text())["state"] == "interrupted"


def test_files_are_copied_whole_or_not_at_all(lab: Any) -> None:
    here = lab.cwd / "app.bin"
    here.write_bytes(os.urandom(200_001))
    here.chmod(0o750)
    lab("cp", LAB, "app.bin", "meter[1-2]:/tmp/")
    for meter in ("meter1", "meter2"):
        assert lab("exec", LAB, meter, "--", "stat", "-c", "%a %s", "/tmp/app.bin").stdout == "750 200001\n"
    (lab.cwd / "back").mkdir()
    lab("cp", LAB, "meter[1-2]:/tmp/app.bin", "back")
    assert {p.name for p in (lab.cwd / "back").iterdir()} == {"meter1.app.bin", "meter2.app.bin"}
    assert (lab.cwd / "back/meter2.app.bin").read_bytes() == here.read_bytes()
    lab("cp", LAB, "meter1:/tmp/app.bin", "one.bin")
    assert (lab.cwd / "one.bin").read_bytes() == here.read_bytes()

    small = lab.cwd / "small"
    small.write_bytes(b"")
    lab("cp", LAB, "small", "meter1:/tmp/empty")
    assert lab("exec", LAB, "meter1", "--", "stat", "-c", "%s", "/tmp/empty").stdout == "0\n"
    absent = lab("cp", LAB, "meter1:/tmp/absent", "one.bin", status=1)
    assert "meter1: cat: /tmp/absent: No such file" in absent.stderr
    assert (lab.cwd / "one.bin").read_bytes() == here.read_bytes()
    refused = lab("cp", LAB, "app.bin", "meter1:/proc/nosuch/x", status=1)
    assert refused.stderr.startswith("meter1: ")
    folder = lab("cp", LAB, "meter1:/tmp", "one.bin", status=1)
    assert "meter1: /tmp: is a directory" in folder.stderr
    assert "tar c back | vnet exec LAB meter1" in lab("cp", LAB, "back", "meter1:/tmp/", status=1).stderr
    both = lab("cp", LAB, "meter1:/a", "meter2:/b", status=2)
    assert "both are on nodes; write one as NODE:PATH" in both.stderr
    assert "neither is on a node" in lab("cp", LAB, "a", "./b:c", status=2).stderr
    several = lab("cp", LAB, "meter[1-2]:/tmp/app.bin", "new.bin", status=2)
    assert "no directory, and 2 nodes match" in several.stderr
    assert {p.name for p in lab.cwd.iterdir() if p.name.startswith(".")} == set()

    light = lab("images", "save", LAB, "meter1", "mine", status=1)
    assert "nodes.meter1: is a light node" in light.stderr
    unknown = lab("images", "save", LAB, "nosuch", "mine", status=2)
    assert "nosuch: no such node; nodes: server, meter1" in unknown.stderr
