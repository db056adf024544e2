"""Holds the cases of the section on Mininet's scripts."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import mininet

from . import Case, Tool, both, imported, network, refused, said

SCRIPT = """\
import time
from mininet.net import Mininet
from mininet.link import TCLink, TCIntf, Intf
from mininet.node import CPULimitedHost, OVSBridge, OVSSwitch, Node, Controller, RemoteController
from mininet.nodelib import LinuxBridge, NAT
from mininet.topo import Topo
net = Mininet(controller=Controller)
h1 = net.addHost('h1', ip='10.1.0.1/24')
h2 = net.addHost('h2', ip='10.1.0.2/24')
h3 = net.addHost('h3')
s1 = net.addSwitch('s1', cls=OVSBridge)
h12 = net.addLink(h1, h2)
h2s = net.addLink(h2, s1)
h3s = net.addLink(h3, s1)
#made
net.start()
#here
"""
TOPO = """\
from mininet.topo import Topo
from mininet.node import OVSBridge
class Two(Topo):
    def build(self):
        a, b, s = self.addHost('a'), self.addHost('b'), self.addSwitch('s1', cls=OVSBridge)
        self.addLink(a, s)
        self.addLink(b, s)
topos = {'two': Two}
"""
LINK, SHAPED = "net.addLink(h1, h2)", "net.addLink(h1, h2, cls=TCLink, bw=10, delay='5ms')"
ETH1 = "h2.cmd('ip addr add 10.0.0.9/8 dev h2-eth1')"
LOOP = "s2, s4 = [net.addSwitch(s, cls=OVSBridge) for s in ('s2', 's4')]\nnet.addLink(s1, s2)\nnet.addLink(s2, s4)\nnet.addLink(s4, s1)\n#made"


def here(before: str, new: str) -> Case:
    return network("#here", new, before)


def topo(made: str) -> str:
    """Returns a script whose network is that of a Topo."""
    head = "from mininet.net import Mininet\nfrom mininet.link import TCLink\nfrom mininet.node import CPULimitedHost\n"
    return f"{head}{TOPO}net = Mininet(topo={made}, link=TCLink)\nnet.start()\n"


def left(text: str) -> Case:
    return said("#here", text)


def shaped(before: str, new: str) -> Case:
    """Returns a case of a link with two texts of keywords."""
    return network(LINK, f"net.addLink(h1, h2, {new})", f"net.addLink(h1, h2, {before})")


ROWS = {
    "`Mininet` with or without a `Topo`": [
        network("", TOPO.replace("self.addLink(b, s)", "self.addLink(a, b)"), TOPO),
        network("", f"{TOPO}from mininet.net import Mininet\nnet = Mininet(topo=Two())\nnet.addLink(*map(net.get, 'ab'))\nnet.start()\n",
                f"{TOPO}from mininet.net import Mininet\nnet = Mininet(topo=Two())\nnet.start()\n"),
        said("", TOPO.replace("{'two': Two}", "{'two': Two, 'mn --custom': Two}"), TOPO),
        left("other = Mininet()\nother.addLink(other.addHost('x'), other.addHost('y'))"),
    ],
    "host, of any class that derives from": [
        network("net.addHost('h3')", "net.addHost('h3', cls=Node)", "net.addHost('h4')"),
        network("h3 = net.addHost('h3')", "class R(Node):\n  def config(self, **k):\n    super().config(**k)\n    self.cmd('sysctl net.ipv4.ip_forward=1')\n"
                "h3 = net.addHost('h3', cls=R)"),
        here("h3.cmd('sysctl net.ipv4.ip_forward=0')", "h3.cmd('sysctl net.ipv4.ip_forward=1')"), left("h3.cmd('frobnicate x')"),
    ],
    "`cpu` of a `CPULimitedHost`": [
        both("net.addHost('h3')", "net.addHost('h3', cls=CPULimitedHost, cpu=0.5)"),
        both("net.addHost('h3')", "net.addHost('h3', cls=CPULimitedHost, cpu=0.5)", "net.addHost('h3', cls=CPULimitedHost, cpu=0.25)"),
        both("h3 = net.addHost('h3')", "h3 = net.addHost('h3', cls=CPULimitedHost)\nh3.setCPUFrac(0.3)"),
        said("net.addHost('h3')", "net.addHost('h3', cpu=0.5)"),
    ],
    "switch, of any class": [
        network("net.addLink(h2, s1)", "net.addLink(h2, net.addSwitch('s2', cls=LinuxBridge))"),
        refused("#made", LOOP), network("'s1', cls=OVSBridge)", "'s1', cls=OVSBridge, stp=True)\n" + LOOP.replace("=OVSBridge", "=OVSBridge, stp=True"),
                "'s1', cls=OVSBridge)"),
    ],
    "link between hosts; with a switch": [
        network(LINK, "net.addLink(h1, h3)"), network("net.addLink(h3, s1)", "net.addLink(h3, h1)"),
        network("net.addLink(h3, s1)", "net.addLink(h3, s1, cls=TCLink, delay='4ms')", "net.addLink(h3, s1, cls=TCLink, delay='3ms')"),
    ],
    "`bw`, `delay`, `jitter`": [
        *(shaped(f"cls=TCLink, delay='9ms', {one}", f"cls=TCLink, delay='9ms', {two}") for one, two in (
            ("bw=10", "bw=11"), ("jitter='1ms'", "jitter='2ms'"), ("loss=1", "loss=2"), ("max_queue_size=10", "max_queue_size=11"))),
        shaped("cls=TCLink, delay='5ms'", "cls=TCLink, delay='6ms'"), shaped("cls=TCLink, delay='5000us'", "cls=TCLink, delay=6000"),
        shaped("intf=TCIntf, bw=5", "intf=TCIntf, bw=6"), shaped("cls1=TCIntf, params1={'bw': 5}", "cls1=TCIntf, params1={'bw': 6}"),
        shaped("cls2=TCIntf, params2={'bw': 5}", "cls2=TCIntf, params2={'bw': 6}"),
        network("", TOPO.replace("class Two", "from mininet.net import Mininet\nfrom mininet.link import TCLink\nclass Two").replace(
            "topos = {'two': Two}", "net = Mininet(topo=Two(lopts={'bw': 3}), link=TCLink)\nnet.start()"),
                TOPO.replace("class Two", "from mininet.net import Mininet\nfrom mininet.link import TCLink\nclass Two").replace(
            "topos = {'two': Two}", "net = Mininet(topo=Two(lopts={'bw': 4}), link=TCLink)\nnet.start()")),
        network(f"h12 = {LINK}", f"h12 = {SHAPED}\nh12.intf1.config(bw=2)", f"h12 = {SHAPED}\nh12.intf1.config(bw=3)"),
        here("h1.cmd('tc qdisc add dev h1-eth0 root netem delay 3ms')", "h1.cmd('tc qdisc add dev h1-eth0 root netem delay 4ms')"),
    ],
    "`hopts`, `sopts`, `lopts` of a `Topo`": [
        *(network("", topo(f"Two({key}={{{one}}})"), topo(f"Two({key}={{{two}}})")) for key, one, two in (
            ("lopts", "'bw': 3", "'bw': 4"), ("hopts", "'cls': CPULimitedHost, 'cpu': .3", "'cls': CPULimitedHost, 'cpu': .4"))),
        said("", topo("Two(sopts={'color': 'red'})").replace(", cls=OVSBridge", ""), topo("Two()").replace(", cls=OVSBridge", "")),
        network(LINK, "net.addLink(h1, h2, cls=TCLink, params1={'bw': 3}, bw=5)", "net.addLink(h1, h2, cls=TCLink, params1={'bw': 3})"),
    ],
    "functions of `mininet.util`": [
        *(here(f"from mininet.util import *\nh1.setIP({one})", f"from mininet.util import *\nh1.setIP({two})") for one, two in (
            ("ipAdd(7, 24, 0x0a010000) + '/24'", "ipAdd(8, 24, 0x0a010000) + '/24'"), ("ipStr(ipParse('10.1.7')) + '/24'", "ipStr(ipParse('10.1.8')) + '/24'"))),
        *(network("net.addHost('h3')", f"net.addHost('h3', cls=__import__('mininet.util').util.{one})", f"net.addHost('h3', cls=__import__('mininet.util').util.{two})")
          for one, two in (("custom(CPULimitedHost, cpu=.3)", "custom(CPULimitedHost, cpu=.4)"),)),
        network("net.addHost('h3')", "net.addHost('h3', cls=__import__('mininet.util').util.specialClass(CPULimitedHost, defaults={'cpu': .3}))",
                "net.addHost('h3', cls=__import__('mininet.util').util.specialClass(CPULimitedHost, defaults={'cpu': .4}))"),
        here("", "from mininet.util import retry\nretry(3, 1, net.delLink, h12)"),
    ],
    "the same on a link without traffic control": [said(LINK, "net.addLink(h1, h2, bw=10)"), left("h12.intf1.config(delay='5ms')")],
    "`delLink`, `delLinkBetween`": [
        here("", "net.delLink(h12)"), here("", "net.delLinkBetween(h1, h2)"), here("", "net.delHost(h3)"), here("", "net.delSwitch(s1)"),
        here("", "h12.delete()"),
    ],
    "`configLinkStatus(..., 'down')`": [
        here("net.configLinkStatus('h1', 'h2', 'up')", "net.configLinkStatus('h1', 'h2', 'down')"),
        here("h1.cmd('ifconfig h1-eth0 up')", "h1.cmd('ifconfig h1-eth0 down')"), here("", "h12.intf1.ifconfig('down')"),
    ],
    "`setIP`, `setDefaultRoute`": [
        here("h1.setIP('10.1.0.5/24')", "h1.setIP('10.1.0.6/24')"), here("h12.intf2.setIP('10.1.0.3/24')", "h12.intf2.setIP('10.1.1.4/24')"),
        here(ETH1, f"{ETH1}\nh1.setDefaultRoute('via 10.1.0.2')"),
        network("ip='10.1.0.1/24')", "ip='10.1.0.1/24', defaultRoute='via 10.1.0.2')"),
        network("ip='10.1.0.1/24'", "ip='10.1.0.7/24'"), network("ip='10.1.0.1/24'", "ip='10.7.0.7/24'"),
    ],
    "`ovs-vsctl`, `brctl`, `ip link set": [
        *(both("#here", text) for text in (
            "s1.cmd('ovs-vsctl del-port s1 s1-eth1')", "h1.cmd('ovs-vsctl del-port s1-eth2')", "s1.cmd('ovs-vsctl del-br s1')",
            "s1.detach('s1-eth1')\nnet.addSwitch('s7').attach('s1-eth1')", "s1.vsctl('--if-exists del-port s1 s1-eth1')", "s1.detach('s1-eth1')")),
        *(both("h3s = net.addLink(h3, s1)", f"h3s = net.addLink(h3, net.addSwitch('s3', cls=LinuxBridge))\ns1.cmd('{text}')",
               "h3s = net.addLink(h3, net.addSwitch('s3', cls=LinuxBridge))")
          for text in ("ip link set s3-eth1 nomaster", "brctl delif s3 s3-eth1", "brctl delbr s3")),
        *(network("h3s = net.addLink(h3, s1)", f"h3s = net.addLink(h3, s1)\ns1.cmd('{text}')") for text in (
            "ovs-vsctl add-br s8; ovs-vsctl del-port s1-eth1; ovs-vsctl add-port s8 s1-eth1", "ovs-vsctl add-br s9; ovs-vsctl del-port s1-eth2; ovs-vsctl add-port s9 s1-eth2")),
        network("#made", LOOP.replace("#made", "for s in (s1, s2, s4): s.cmd(f'ovs-vsctl set bridge {s} stp_enable=true')")),
        left("s1.cmd('ovs-vsctl del-port s1 nosuch')"), left("s1.cmd('brctl delif s1 s1-eth1')"), left("s1.cmd('ip link set s1-eth1 nomaster')"),
    ],
    "default addresses in 10.0.0.0/8": [
        network("Mininet(controller", "Mininet(ipBase='10.5.0.0/24', controller", "Mininet(ipBase='10.6.0.0/24', controller"),
        network("h1 = net", "h0 = net.addHost('h0')\nh1 = net"),
    ],
    "`bw` above 1000": [
        said(LINK, "net.addLink(h1, h2, cls=TCLink, bw=5000)"),
        both(f"h12 = {LINK}", "TCIntf.bwParamMax = 9000\nh12 = net.addLink(h1, h2, cls=TCLink, bw=5000)",
             "h12 = net.addLink(h1, h2, cls=TCLink, bw=5000)"),
    ],
    "what only a running network or machine": [
        *(left(text) for text in (
            "if '0% packet' in h1.cmd('ping -c1 10.1.0.2'): pass", "x = 3 if net.pingAll() else 4", "x = h1.popen('iperf -c 10.1.0.2').wait() == 0",
            "import re\nre.search('x', h1.cmd('ifconfig'))", "import os\nos.path.exists('/etc/passwd')", "import os\nos.getenv('HOME')",
            "import random\nrandom.random()", "time.time()", "import datetime\ndatetime.datetime.now()", "input('?')",
            "try: import nosuchmodule\nexcept ImportError: pass", "open('/usr/share/dict/words') if 0 else __import__('os').listdir('/usr')")),
        said("#here", "import random\nrandom.random()", "import random\nrandom.seed(1)\nrandom.random()"),
    ],
    "`CLI` with a file": [
        network("#here", "from mininet.cli import CLI\nopen('/tmp/x', 'w').write('link h1 h2 down')\nCLI(net, script='/tmp/x')"),
        left("from mininet.cli import CLI\nopen('/tmp/x', 'w').write('py 1')\nCLI(net, script='/tmp/x')"),
    ],
    "`threading.Timer`": [
        both("#here", "import threading\nthreading.Timer(5, lambda: net.delLink(h12)).start()"),
        both("#here", "import threading\nthreading.Thread(target=lambda: net.delLink(h12)).start()"),
        both("#here", "import sched\ns = sched.scheduler(time.time, time.sleep)\ns.enter(3, 1, lambda: net.delLink(h12))\ns.run()"),
        network("#here", "import atexit\natexit.register(lambda: net.delLink(h12))"),
        said("#here", "net.stop()\nnet.delLink(h12)"), left("import signal\nsignal.alarm(3)"),
    ],
    "a change after `sleep`": [
        said("#here", "time.sleep(5)\nh1.cmd('ifconfig h1-eth0 down')", "h1.cmd('ifconfig h1-eth0 down')"),
        said("#here", "net.pingAll()\nnet.delLink(h12)", "net.delLink(h12)"), said("#here", "net.iperf()\nh1.setIP('10.1.0.1/24')", "h1.setIP('10.1.0.1/24')"),
    ],
    "a switch without a controller": [
        said("'s1', cls=OVSBridge", "'s1', cls=OVSSwitch"), said("'s1', cls=OVSBridge", "'s1', cls=OVSSwitch", "'s1', cls=OVSSwitch, failMode='standalone'"),
    ],
    "controllers, NAT, MACs, ARP": [
        *(left(text) for text in (
            "net.addController('c0', controller=RemoteController)", "net.addNAT().configDefault()", "h1.setMAC('00:00:00:00:00:01')",
            "h1.setARP('10.0.0.2', '00:00:00:00:00:02')", "net.moveHost('h1', 's2')", "h1.frobnicate()", "net.hosts = []", "Intf('eth1', node=h1)",
            "h1.setHostRoute('10.9.0.1', 'h1-eth0')", "s1.dpctl('add-flow', 'actions=drop')", "h12.intf1.rename('wan')", "h1.linkTo(h3)",
            "net.staticArp()")),
        said("addHost('h3'", "addHost('h3', mac='00:00:00:00:00:01'"), said("addHost('h3'", "addHost('h3', privateDirs=['/tmp']"),
        said("addHost('h3'", "addHost('h3', inNamespace=False"), said("Mininet(", "Mininet(autoSetMacs=True, "),
        said("Mininet(controller=Controller)", "Mininet(controller=Controller, autoStaticArp=True)"),
        said("Mininet(controller=Controller)", "Mininet(controller=Controller, inNamespace=True)"),
        said(LINK, "net.addLink(h1, h2, addr1='00:00:00:00:00:01')"), said(LINK, "net.addLink(h1, h2, fast=True)"),
        said("'s1', cls=OVSBridge", "'s1', cls=OVSBridge, color='red'"),
    ],
}  # fmt: skip
TOOL = Tool("Mininet's scripts", {"x.py": SCRIPT}, "x.py", imported(mininet.read), ROWS)
