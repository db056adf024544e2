"""Tests the fate of each method and parameter of Mininet's classes: it changes the network, the import names it
with its line, or it only asks or shows. The lists are those of Mininet 2.3.1b4; `net:304` is line 304 of its
mininet/net.py.
"""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.exchange import mininet, writing

HEAD = """\
import sys
from mininet.net import *
from mininet.node import *
from mininet.nodelib import *
from mininet.link import *
from mininet.topo import *
from mininet.topolib import *
from mininet.util import *
from mininet.cli import *
from mininet.clean import *
net = Mininet(controller=Controller)
h1 = net.addHost('h1', ip='10.0.0.1/24')
h2 = net.addHost('h2', ip='10.0.0.2/24')
h3 = net.addHost('h3', cls=CPULimitedHost, cpu=.5, ip='10.0.0.3/24')
s1, s2 = net.addSwitch('s1', cls=OVSBridge), net.addSwitch('s2', cls=LinuxBridge)
l1, l2 = net.addLink(h1, s1, cls=TCLink), net.addLink(h2, s1)
l3 = net.addLink(h3, s1)
net.addLink(s1, s2)
net.start()
"""
# Named with their line: they act on what a lab does not have, or ask what only a running network tells.
SAID = """\
net:277 net.addController('c9')
net:304 net.addNAT()
net:536 net.staticArp()
net:658 net.ping([h1, h2])
net:733 net.pingFull()
net:766 net.pingAll()
net:771 net.pingPair()
net:777 net.pingAllFull()
net:782 net.pingPairFull()
net:812 net.iperf()
net:866 net.runCpuLimitTest(.5)
net:616 net.monitor([h1])
net:180 if net.waitConnected(): pass
net:990 net.configureRoutedControlNetwork()
node:133 if h1.fdToNode(3): pass
node:141 h1.startShell()
node:190 h1.mountPrivateDirs()
node:208 h1.unmountPrivateDirs()
node:244 if h1.read(): pass
node:259 if h1.readline(): pass
node:270 h1.write('ifconfig')
node:290 if h1.waitReadable(): pass
node:298 h1.sendCmd('frobnicate')
node:333 if h1.monitor(): pass
node:365 if h1.waitOutput(): pass
node:379 h1.cmd('frobnicate')
node:379 if h1.cmd('ifconfig h1-eth0'): pass
node:392 h1.cmdPrint('frobnicate')
node:397 h1.popen('frobnicate')
node:397 if h1.popen('ls').poll(): pass
node:425 h1.pexec('frobnicate')
node:425 out, err, code = h1.pexec('ls'); code == 0
node:449 h1.addIntf(Intf('eth9'))
node:466 h1.delIntf(h1.intf())
node:515 h1.deleteIntfs()
node:531 h1.setARP('10.0.0.9', '00:00:00:00:00:09')
node:538 h1.setHostRoute('10.0.0.9', 'h1-eth0')
node:557 h1.setMAC('00:00:00:00:00:09')
node:589 h1.setParam({}, 'setIP', ip='10.0.0.9/24')
node:610 h1.config(mac='00:00:00:00:00:09', lo='down')
node:635 h1.linkTo(h2)
node:716 h3.cgroupSet('cpu.shares', 5)
node:733 h3.cgroupDel()
node:778 h3.chrt()
node:850 h3.setCPUs(1)
node:868 h3.config(cores=1)
node:889 h3.unlimit()
node:933 s1.defaultDpid()
node:969 if s1.connected(): pass
node:1016 s1.dpctl('add-flow', 'actions=drop')
node:1033 s1.TCReapply(None)
node:1148 s1.vsctl('set-fail-mode s1 secure')
node:1175 s1.controllerUUIDs()
node:1196 s1.intfOpts(None)
node:1209 s1.bridgeOpts()
node:1268 OVSSwitch.batchStartup([s1]) if hasattr(OVSSwitch, 'batchStartup') else s1.batchStartup([s1])
link:90 l1.intf1.setMAC('00:00:00:00:00:09')
link:152 l1.intf1.rename('wan0')
link:169 l1.intf1.setParam({}, 'setIP', ip='10.0.0.9/24')
link:188 l1.intf1.config(mac='00:00:00:00:00:09')
link:188 l1.intf1.config(ifconfig='mtu 1400')
link:216 if l1.intf1.status() == 'OK': pass
link:240 l1.intf1.bwCmds(bw=3)
link:313 l1.intf1.tc('%s qdisc del dev %s root')
link:319 l1.intf1.config(bw=3, speedup=5)
link:319 l1.intf1.config(bw=3, use_hfsc=True)
link:319 l1.intf1.config(bw=3, use_tbf=True)
link:319 l1.intf1.config(bw=3, latency_ms=5)
link:319 l1.intf1.config(bw=3, enable_ecn=True)
link:319 l1.intf1.config(bw=3, enable_red=True)
link:319 l2.intf1.config(bw=3)
link:489 l1.makeIntfPair('a', 'b')
link:516 if l1.status(): pass
nodelib:72 NAT('nat9')
cli:44 CLI(net, script='nosuch.cli')
cli:44 CLI(net, stdin=sys.stdin)
cli:181 CLI(net, cmd='py 1')
cli:172 CLI(net, cmd='sh frobnicate')
cli:209 CLI(net, cmd='pingall')
cli:225 CLI(net, cmd='iperf h1 h2')
cli:367 CLI(net, cmd='dpctl dump-flows')
cli:390 CLI(net, cmd='switch s1 stop')
cli:416 CLI(net, cmd='h1 frobnicate')
util:87 run('ls')
util:92 checkRun('ls')
util:133 errRun('ls')
util:204 errFail('ls')
util:212 quietRun('ls')
util:216 which('ls')
util:249 makeIntfPair('a', 'b')
util:317 moveIntf('a', h1)
util:455 pmonitor({})
util:499 sysctlTestAndSet('x', 5)
util:517 rlimitTestAndSet('x', 5)
util:552 mountCgroups()
util:583 numCores()
util:693 waitListening(h1, h2)
clean:21 sh('ls')
clean:29 killprocs('x')
net:114 Mininet(inNamespace=True)
net:114 Mininet(autoSetMacs=True)
net:114 Mininet(autoStaticArp=True)
net:114 Mininet(autoPinCpus=True)
net:212 net.addHost('x1', inNamespace=False)
net:212 net.addHost('x2', privateDirs=['/x'])
node:684 net.addHost('x3', cls=CPULimitedHost, sched='rt', cpu=.1)
node:868 net.addHost('x4', cls=CPULimitedHost, cores=1).config(cores=1)
nodelib:13 net.addSwitch('s7', cls=LinuxBridge, prio=5)
node:991 net.addSwitch('s6', cls=UserSwitch, dpopts='x')
link:408 net.addLink(h1, net.addHost('x6'), addr1='00:00:00:00:00:09')
link:408 net.addLink(h1, net.addHost('x7'), fast=True)
link:524 Intf('eth9', node=h1)
"""
# They ask for what the script has built, or show it, open a window, log, or start and stop the whole.
QUIET = """\
net:330 net.getNodeByName('h1', 'h2'); net.get('h1'); net['h1']; 'h1' in net; len(net); list(net)
net:363 net.keys(); net.values(); net.items(); net.links; net.hosts; net.switches; net.controllers
net:376 net.randMac()
net:415 net.linksBetween(h1, s1)
net:519 net.startTerms(); net.stopXterms(); net.configHosts(); net.configureControlNetwork()
net:946 Mininet.init()
node:226 h1.cleanup(); h1.terminate(); h1.configDefault()
node:328 h1.sendInt()
node:475 h1.defaultIntf(); h1.intf('h1-eth0'); h1.connectionsTo(s1); h1.intfList(); h1.intfNames()
node:571 h1.IP(); h1.MAC(); h1.intfIsUp(); h1.params; h1.intfs; h1.ports; h1.nameToIntf; h1.pid; h1.name
link:101 l1.intf1.updateIP(); l1.intf1.updateMAC(); l1.intf1.updateAddr(); l1.intf1.IP(); l1.intf1.MAC()
link:139 l1.intf1.isUp(); l1.intf1.name; l1.intf1.node; l1.intf1.link; str(l1)
cli:44 CLI(net)
cli:159 CLI(net, cmd='nodes'); CLI(net, cmd='dump'); CLI(net, cmd='net'); CLI(net, cmd='exit')
util:328 dumpNodeConnections(net.hosts); dumpNetConnections(net); dumpPorts(net.switches)
util:375 macColonHex(5); ipStr(5); ipNum(1, 2, 3, 4); ipAdd(5); ipParse('10.5'); netParse('10.5/8'); irange(1, 3)
util:428 checkInt('5'); checkFloat('5'); makeNumeric('5'); natural('h5'); naturalSeq(['h5']); splitArgs('a,b=1')
util:598 custom(Host); customClass({'h': Host}, 'h'); specialClass(Host); fmtBps(5); fixLimits(); ensureRoot()
clean:50 cleanup()
log:1 setLogLevel = 1
"""
# Two statements that differ in one value lead to two networks.
CARRIED = """\
net:212 net.addLink(net.addHost('x9'), s1) | net.addLink(net.addHost('y9'), s1)
net:237 | net.delNode(h1)
net:251 | net.delHost(h2)
net:273 | net.delSwitch(s2)
net:381 net.addLink(h1, h2) | net.addLink(h1, h3)
net:410 | net.delLink(l1)
net:422 | net.delLinkBetween(h1, s1)
net:913 | net.configLinkStatus('h1', 's1', 'down')
net:608 | net.run(lambda: net.delLink(l1))
node:544 l1.intf1.cmd('true') | net.addHost('z').cmd('x'); h1.setDefaultRoute('via 10.0.0.2')
node:563 h1.setIP('10.0.0.7/24') | h1.setIP('10.0.0.8/24')
node:563 h1.setIP('10.0.0.7', 24) | h1.setIP('10.0.0.8', 24)
node:610 h1.config(ip='10.0.0.7/24') | h1.config(ip='10.0.0.8/24')
node:821 h3.setCPUFrac(.3) | h3.setCPUFrac(.4)
node:868 h3.config(cpu=.3) | h3.config(cpu=.4)
node:1165 | net.addSwitch('s8', cls=OVSBridge).attach('s1-eth1')
node:1171 | s1.detach('s1-eth1')
node:1148 | s1.vsctl('del-port s1 s1-eth1')
link:68 l1.intf1.cmd('ip link set h1-eth0 mtu 1400') | l1.intf1.cmd('ip link set h1-eth0 down')
link:72 | l1.intf1.ifconfig('down')
link:76 l1.intf1.setIP('10.0.0.7/24') | l1.intf1.setIP('10.0.0.8/24')
link:139 l1.intf1.ifconfig('down') | l1.intf1.ifconfig('down'); l1.intf1.isUp(True)
link:188 l1.intf1.config(up=True) | l1.intf1.config(up=False)
link:188 l1.intf1.config(ip='10.0.0.7/24') | l1.intf1.config(ip='10.0.0.8/24')
link:206 | l1.intf1.delete()
link:319 l1.intf1.config(bw=3) | l1.intf1.config(bw=4)
link:319 l1.intf1.config(delay='3ms') | l1.intf1.config(delay='4ms')
link:319 l1.intf1.config(delay='9ms', jitter='3ms') | l1.intf1.config(delay='9ms', jitter='4ms')
link:319 l1.intf1.config(loss=3) | l1.intf1.config(loss=4)
link:319 l1.intf1.config(max_queue_size=3) | l1.intf1.config(max_queue_size=4)
link:505 | l1.delete()
link:512 | l1.stop()
link:408 net.addLink(h1, h2, intf=TCIntf, bw=3) | net.addLink(h1, h2, intf=TCIntf, bw=4)
link:408 net.addLink(h1, h2, cls1=TCIntf, params1={'bw': 3}) | net.addLink(h1, h2, cls1=TCIntf, params1={'bw': 4})
link:408 net.addLink(h1, h2, cls=TCLink, params1={'bw': 3}, bw=5) | net.addLink(h1, h2, cls=TCLink, params1={'bw': 3})
link:408 net.addLink(h1, h2, intfName1='e'); h1.cmd('ifconfig e mtu 1400') | net.addLink(h1, h2, intfName1='f'); h1.cmd('ifconfig f mtu 1300')
link:408 net.addLink(h1, h2, port1=7); h1.cmd('ifconfig h1-eth7 mtu 1400') | net.addLink(h1, h2, port1=8); h1.cmd('ifconfig h1-eth8 mtu 1300')
link:408 net.addLink(h1, h2, params1={'port': 7}); h1.cmd('ifconfig h1-eth7 mtu 1400') | net.addLink(h1, h2)
link:570 net.addLink(h1, h2, cls=TCULink, bw=3) | net.addLink(h1, h2, cls=TCULink, bw=4)
cli:278 | CLI(net, cmd='link h1 s1 down')
cli:416 | CLI(net, cmd='h1 ifconfig h1-eth0 down')
util:285 | retry(3, 1, net.delLink, l1)
util:641 x = net.addHost('x9', cls=specialClass(CPULimitedHost, defaults=dict(cpu=.3))); net.addLink(s1, x); x.config(**x.params) | x = net.addHost('x9', cls=specialClass(CPULimitedHost, defaults=dict(cpu=.4))); net.addLink(s1, x); x.config(**x.params)
util:396 h1.setIP(ipAdd(7, 24, 0x0a000064) + '/24') | h1.setIP(ipAdd(8, 24, 0x0a000064) + '/24')
util:408 h1.setIP(ipStr(ipParse('10.0.7')) + '/24') | h1.setIP(ipStr(ipNum(10, 0, 0, 8)) + '/24')
"""
NETS = {  # a topology, or a parameter of the network, in two values
    "topo:124": ("a, b = self.addNode('a'), self.addNode('b')", "a, b = self.addNode('a'), self.addNode('b', isSwitch=True)"),
    "topo:132": ("a, b = self.addHost('a'), self.addHost('b')", "a, b = self.addHost('a'), self.addHost('c')"),
    "topo:151": ("a, b = self.addHost('a'), self.addHost('b'); self.addLink(a, b, bw=3)", "a, b = self.addHost('a'), self.addHost('b'); self.addLink(a, b, bw=4)"),
    "topo:267": ("a, b = self.addHost('a'), self.addHost('b'); self.addLink(a, b); self.setlinkInfo(a, b, {'bw': 3})",
                 "a, b = self.addHost('a'), self.addHost('b'); self.addLink(a, b); self.setlinkInfo(a, b, {'bw': 4})"),
    "topo:276": (
        "a, b = self.addHost('a', ip='10.5.0.2/24'), self.addHost('b'); self.setNodeInfo(b, {'ip': '10.5.0.7/24'})",
        "a, b = self.addHost('a', ip='10.5.0.2/24'), self.addHost('b'); self.setNodeInfo(b, {'ip': '10.6.0.7/24'})",
    ),
    "topo:187": ("a, b = [self.addHost(n) for n in ('a', 'b')]; self.addLink(a, b, bw=3); [i.update(bw=5) for *_, i in self.iterLinks(withInfo=True)]",
                 "a, b = [self.addHost(n) for n in ('a', 'b')]; self.addLink(a, b, bw=3); [i.update(bw=6) for *_, i in self.iterLinks(withKeys=True, withInfo=True)]"),
}  # fmt: skip
TOPO = """\
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.link import TCLink
class T(Topo):
    def build(self):
        {}
        if not self.links(): self.addLink(a, b)
net = Mininet(topo=T(), link=TCLink)
net.start()
"""


def told(tmp_path: Path, script: str) -> tuple[str, list[str]]:
    file = tmp_path / "x.py"
    file.write_text(script)
    made = mininet.read(file)
    written = writing.write(made, "out.yaml")
    return written.text, [*made.left, *written.changed]


def statements(text: str) -> list[str]:
    return [line.partition(" ")[2] for line in text.splitlines()]


def test_each_method_without_a_counterpart_is_named_with_its_line(tmp_path: Path) -> None:
    given = statements(SAID)
    _, lines = told(tmp_path, HEAD + "\n".join(given) + "\n")
    first = HEAD.count("\n") + 1
    silent = [
        text
        for number, text in enumerate(given, first)
        if not any(line.startswith(f"line {number}: ") for line in lines)
    ]
    assert not silent, silent


def test_what_asks_or_shows_changes_nothing_and_says_nothing(tmp_path: Path) -> None:
    before = told(tmp_path, HEAD)
    assert told(tmp_path, HEAD + "\n".join(statements(QUIET)) + "\n") == before


@pytest.mark.parametrize("pair", statements(CARRIED))
def test_each_method_that_is_carried_over_changes_the_network(pair: str, tmp_path: Path) -> None:
    one, other = (part.strip() for part in f" {pair}".split(" |"))
    assert told(tmp_path, f"{HEAD}{one}\n")[0] != told(tmp_path, f"{HEAD}{other}\n")[0]


@pytest.mark.parametrize("place", NETS)
def test_each_method_of_a_topology_changes_the_network(place: str, tmp_path: Path) -> None:
    one, other = (told(tmp_path, TOPO.format(body))[0] for body in NETS[place])
    assert one != other


def test_ports_of_a_topology_are_those_of_mininet(tmp_path: Path) -> None:
    links = "a, b, s = self.addHost('a'), self.addHost('b'), self.addSwitch('s1'); self.addLink(a, b, port1=5); self.addLink(a, s)"
    script = (
        TOPO.format(links) + "assert net['a'].intfNames() == ['a-eth5', 'a-eth1'], net['a'].intfNames()\n"
    )
    script += "assert net['s1'].intfNames() == ['s1-eth1'] and net.topo.port('a', 's1') == (1, 1)\n"
    told(tmp_path, script)


def test_a_host_on_no_link_is_named(tmp_path: Path) -> None:
    assert any("x9" in line for line in told(tmp_path, f"{HEAD}net.addHost('x9')\n")[1])
