"""Tests scripts that decide by what only a running network or machine tells, and scripts that act later: each
question has a line, and the network is that of the way which the script takes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.exchange import mininet
from orchestrator.exchange.network import Network

HEAD = """\
import json, os, random, re, subprocess, threading, time
from mininet.cli import CLI
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSBridge, OVSSwitch
from mininet.nodelib import LinuxBridge
net = Mininet(switch=OVSBridge, link=TCLink)
h1, h2, h3 = [net.addHost('h%d' % i) for i in (1, 2, 3)]
s1, s2 = net.addSwitch('s1'), net.addSwitch('s2', cls=LinuxBridge)
l1, l2, l3 = net.addLink(h1, s1, delay='5ms'), net.addLink(h2, s1), net.addLink(h3, s2)
net.start()
"""
FIRST = HEAD.count("\n") + 1
PING = "out = h1.cmd('ping -c3 10.0.0.2')\n"


def imported(tmp_path: Path, script: str) -> Network:
    (tmp_path / "x.py").write_text(HEAD + script)
    (tmp_path / "beside.json").write_text('{"delay": "44ms"}')
    return mininet.read(tmp_path / "x.py")


@pytest.mark.parametrize(
    ("script", "line", "said"),
    [
        (PING + "if not re.search('0% packet', out): l1.delete()", 2, "depends on the output of `ping"),
        (PING + "if not re.compile('loss').search(out): pass", 2, "depends on the output of `ping"),
        ("try: n = int(h1.cmd('nproc'))\nexcept ValueError: n = 4", 1, "depends on the output of `nproc`"),
        ("if 'UP' in '%s' % h1.cmd('ip addr'): pass", 1, "depends on the output of `ip addr`"),
        ("x = h1.cmd('ip addr').strip() + 'x'\nif x == 'x': pass", 2, "depends on the output of `ip addr`"),
        ("if os.system('which x') != 0: pass", 1, "depends on the status of `which x`"),
        ("st, out = subprocess.getstatusoutput('x')\nif st: pass", 2, "depends on the status of `x`"),
        ("for one in h1.popen('x').stdout: pass", 1, "depends on the output of `x`"),
        ("if h1.popen('x').poll() is None: pass", 1, "asks whether `x` still runs"),
        ("if h1.pexec('x')[2]: pass", 1, "depends on the status of a command on h1"),
        ("h1.sendCmd('x')\nif 'y' in h1.waitOutput(): pass", 2, "depends on the output of `x`"),
        ("if net.pingAll() > 0: pass", 1, "depends on the result of pingAll"),
        ("if 'G' in net.iperf((h1, h2))[0]: pass", 1, "depends on the result of iperf"),
        ("if os.path.exists('/etc/passwd'): pass", 1, "asks for /etc/passwd, which is not there"),
        ("os.path.expanduser('~')", 1, "reads HOME of the environment"),
        ("int(os.environ.get('BW', 3))", 1, "reads BW of the environment, which is not set"),
        ("import shutil\nshutil.which('sh')", 2, "asks for /usr/bin/sh, which is there"),
        ("import socket\nsocket.gethostname()", 2, "socket.gethostname is answered without a network"),
        ("random.choice([l1, l2])", 1, "draws by chance without a seed"),
        ("import numpy as np\nx = np.random.rand()", 2, "numpy draws by chance without a seed"),
        ("os.getenvb(b'HOME')", 1, "reads b'HOME' of the environment"),
        ("random.seed(os.getpid())", 1, "asks for os.getpid"),
        ("random.seed(time.time())", 1, "reads the clock (time.time)"),
        ("from datetime import date\ndate.today()", 2, "reads the clock (datetime)"),
        ("try: import nosuchmodule\nexcept ImportError: pass", 1, "the module nosuchmodule is not there"),
        ("import sys\nsys.stdin.read()", 2, "reads its standard input"),
    ],
)
def test_a_question_has_its_line(script: str, line: int, said: str, tmp_path: Path) -> None:
    found = [one for one in imported(tmp_path, script).left if said in one]
    assert [one.partition(":")[0] for one in found] == [f"line {FIRST + line - 1}"], found


@pytest.mark.parametrize(
    "script",
    [
        "print(h1.cmd('ip addr'), net.topo, h1.IP())",
        "json.load(open(os.path.join(os.path.dirname(os.path.realpath(__file__)), 'beside.json')))",
        "os.makedirs('/tmp/logs/x')\nopen('/tmp/logs/x/a', 'w').write('1')\nopen('/tmp/logs/x/a').read()",
        "random.seed(3)\nrandom.shuffle([1, 2])\nrandom.Random(4).random()",
        "os.environ['A'] = '1'\nprint(os.environ['A'])",
        "import argparse, logging\nargparse.ArgumentParser().parse_args()\nlogging.getLogger('x').info('y')",
    ],
)
def test_what_a_script_knows_itself_is_no_question(script: str, tmp_path: Path) -> None:
    made = imported(tmp_path, script)
    assert not made.left and not made.changed


@pytest.mark.parametrize(
    ("script", "delay"),
    [
        ("threading.Timer(5, lambda: l1.intf1.config(delay='9ms')).start()", "9 ms"),
        ("t = threading.Timer(5, lambda: l1.intf1.config(delay='9ms'))\nt.start()\nt.cancel()", "5 ms"),
        ("threading.Timer(9, lambda: l1.intf1.config(delay='9ms')).start()\n"
         "threading.Timer(3, lambda: l1.intf1.config(delay='3ms')).start()\ntime.sleep(20)", "9 ms"),
        ("threading.Timer(9, lambda: l1.intf1.config(delay='9ms')).start()\ntime.sleep(5)\n"
         "l1.intf1.config(delay='7ms')\ntime.sleep(5)", "9 ms"),
        ("threading.Timer(9, lambda: l1.intf1.config(delay='9ms')).start()\ntime.sleep(5)\nnet.stop()",
         "5 ms"),
        ("threading.Timer(9, lambda: l1.intf1.config(delay='9ms')).start()\nCLI(net)\nnet.stop()", "9 ms"),
        ("def tick(n=[1]):\n    n[0] += 1\n    l1.intf1.config(delay='%dms' % n[0])\n"
         "    threading.Timer(2, tick).start()\ntick()\ntime.sleep(7)\nnet.stop()", "5 ms"),
        ("end = time.time() + 60\nwhile time.time() < end: time.sleep(5)\nl1.intf1.config(delay='9ms')",
         "9 ms"),
        ("net.stop()\nl1.intf1.config(delay='9ms')", "5 ms"),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(9)\n    l1.intf1.config(delay='9ms')\n"
         "asyncio.run(f())", "9 ms"),
        ("net.stop()\nnet.start()\nl1.intf1.config(delay='9ms')", "9 ms"),
    ],
)  # fmt: skip
def test_what_acts_later_acts_in_its_order(script: str, delay: str, tmp_path: Path) -> None:
    (line,) = [one for one in imported(tmp_path, script).lines if ("h1", "h1-eth0") in one.ends]
    side = line.impairments.get("forward", line.impairments.get("both"))
    assert side == {"delay": delay}


@pytest.mark.parametrize(
    ("script", "places", "down"),
    [
        ("s1.cmd('ovs-vsctl del-port s1 s1-eth1')", "s1 s1 s2", {"h1"}),
        ("s1.cmd('ovs-vsctl -- --if-exists del-port s1 s1-eth1')", "s1 s1 s2", {"h1"}),
        ("s1.vsctl('del-port', 's1-eth2')", "s1 s1 s2", {"h2"}),
        ("s1.detach('s1-eth2')", "s1 s1 s2", {"h2"}),
        ("h3.cmd('ovs-vsctl del-br s1')", "s1 s1 s2", {"h1", "h2"}),
        ("s2.cmd('brctl delif s2 s2-eth1')", "s1 s1 s2", {"h3"}),
        ("s2.cmd('ip link set s2-eth1 nomaster')", "s1 s1 s2", {"h3"}),
        ("s2.cmd('ifconfig s2 down')", "s1 s1 s2", {"h3"}),
        ("s1.cmd('ifconfig s1 down')", "s1 s1 s2", set()),
        ("s1.cmd('brctl delif s1 s1-eth1'); s2.cmd('ovs-vsctl del-port s2 s2-eth1')", "s1 s1 s2", set()),
        ("s1.cmd('ip link set s1-eth1 nomaster')", "s1 s1 s2", set()),
        ("s1.cmd('ovs-vsctl del-port s1-eth1'); s2.cmd('brctl addif s2 s1-eth1')", "s2 s1 s2", set()),
        ("s2.cmd('brctl addbr b; brctl delif s2 s2-eth1; brctl addif b s2-eth1')", "s1 s1 b", set()),
        ("class S(OVSSwitch):\n  def start(self, c): self.cmd('ovs-vsctl del-port s1-eth1')\n"
         "net.addSwitch('s9', cls=S)\nnet.start()", "s1 s1 s2", {"h1"}),
    ],
)  # fmt: skip
def test_a_port_is_where_the_commands_leave_it(
    script: str, places: str, down: set[str], tmp_path: Path
) -> None:
    made = imported(tmp_path, script)
    found = {member: lan.name for lan in made.lans.values() for member, _ in lan.members}
    assert [found[host] for host in ("h1", "h2", "h3")] == places.split()
    assert {one.ends[0][0] for one in made.lines if one.down} == down


def test_a_change_after_a_wait_of_asyncio_is_later(tmp_path: Path) -> None:
    script = "import asyncio\nasync def f():\n  await asyncio.sleep(99)\n  net.delLink(l1)\nasyncio.run(f())"
    assert any("after the pause of line" in one for one in imported(tmp_path, script).changed)


def test_a_set_has_the_same_order_each_time(tmp_path: Path) -> None:
    script = "for n in {'u', 'v', 'w', 'x', 'y', 'z'}: net.addLink(net.addHost(n), s1)"
    first, second = (list(imported(tmp_path, script).machines) for _ in range(2))
    assert first == second
