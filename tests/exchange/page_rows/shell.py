"""Holds the cases for the page's section on startup scripts; each is a line in the script of a Kathará machine."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import kathara

from . import Case, Tool, both, imported, network, refused, said

FILES = {
    "lab/lab.conf": "a[0]=A\na[1]=B\nb[0]=A\nc[0]=B\n",
    "lab/a.startup": "ip addr add 10.1.0.1/24 dev eth0\n#here\n",
    "lab/b.startup": "ip addr add 10.1.0.2/24 dev eth0\n#here\n",
    "lab/c.startup": "ip addr add 10.2.0.9/24 dev eth0\n",
}
A = "lab/a.startup"
ONE, THREE = "ip addr add 10.2.0.1/24 dev eth1", "ip addr add 10.2.0.3/24 dev eth1"
ADDRESS = "ip addr add 10.2.0.{}/24 dev eth1"


def run(before: str, new: str, file: str = A) -> Case:
    """Returns a case of two scripts that make two networks."""
    return network("#here", new, before, file)


def value(text: str, before: str, new: str) -> Case:
    """Returns a case of an address whose last number is `text`, with `before` or `new` in place of @."""
    setting, _, number = text.rpartition(" => ")
    line = f"{setting}\n{ADDRESS.format(number)}\n"
    return run(line.replace("@", before), line.replace("@", new))


def left(text: str) -> Case:
    return said("#here", text, None, A)


BRIDGE = "{0}\nip link set eth0 up\nip link set eth1 up\nip link set br0 up"
NO_ADDRESS = "ip addr add 10.1.0.1/24 dev eth0\n#here"
JOIN = "ip link add br0 type bridge\nip link set eth0 master br0\nip link set br0 up\n"


def bridge(before: str, new: str) -> Case:
    return network(NO_ADDRESS, new, before, A)


ROWS = {
    "`if`, `elif`": [
        run(f"if [ 1 = 1 ]; then {ONE}; fi", f"if [ 1 = 2 ]; then {ONE}; fi"),
        run(f"if false; then :; elif [ 1 = 1 ]; then {ONE}; fi", f"if false; then :; elif [ 1 = 2 ]; then {ONE}; fi"),
        run(f"case a in a) {ONE};; *) {THREE};; esac", f"case b in a) {ONE};; *) {THREE};; esac"),
        value("for i in @; do :; done => $i", "1", "3"),
        value("i=1; while [ $i -lt @ ]; do i=$((i+1)); done => $i", "3", "5"),
        value("i=1; until [ $i -ge @ ]; do i=$((i+1)); done => $i", "3", "5"),
        run(f"true && {ONE}", f"false && {ONE}"), run(f"false || {ONE}", f"true || {ONE}"),
        run(f"! false && {ONE}", f"! true && {ONE}"),
        run("f() { ip addr add 10.2.0.$1/24 dev eth1; }\nf 1", "f() { ip addr add 10.2.0.$1/24 dev eth1; }\nf 3"),
        run(f"( {ONE} )", f"( {THREE} )"), run(f"{{ {ONE}; }}", f"{{ {THREE}; }}"),
        run(f"sh -c '{ONE}'", f"sh -c '{THREE}'"), run(f"eval '{ONE}'", f"eval '{THREE}'"),
        run(f"true; {ONE}", f"exit 0; {ONE}"),
        run(f"f() {{ true; {ONE}; }}\nf", f"f() {{ return; {ONE}; }}\nf"),
        value("for i in 1 2; do for j in 1 2; do break @; done; done => $i$j", "1", "2"),
        run(f"exec {ONE}", f"exec {THREE}"), run(f"set +e; false; {ONE}", f"set -e; false; {ONE}"),
        run(f"trap '{ONE}' EXIT", f"trap '{THREE}' EXIT"),
        run("f() { local n=1; ip addr add 10.2.0.$n/24 dev eth1; }\nf",
            "f() { local n=3; ip addr add 10.2.0.$n/24 dev eth1; }\nf"),
        run(f"echo '{ONE}' > /tmp/f; . /tmp/f", f"echo '{THREE}' > /tmp/f; . /tmp/f"),
    ],
    "variables, `${X#Y}`": [
        value("n=@ => $n", "1", "3"), value("n=a@ => ${n#a}", "1", "3"), value("true => $(echo @)", "1", "3"),
        value("true => $((1+@))", "1", "3"), value("for i in {@..3}; do n=$n$i; done => $n", "2", "3"),
        value("for i in {1..@}; do :; done => $i", "3", "4"),
        run(f"for i in {{1..3}}; do {ADDRESS.format('$i')}; done", f"for i in {{2..3}}; do {ADDRESS.format('$i')}; done"),
        run(f"sh <<E\n{ONE}\nE", f"sh <<E\n{THREE}\nE"), run(f"echo '{ONE}' | sh", f"echo '{THREE}' | sh"),
    ],
    "`hostname`, also with a new name": [
        run(f"hostname x\n[ $(hostname) = x ] && {ONE}", f"hostname y\n[ $(hostname) = x ] && {ONE}"), value("true => $(expr 0 + @)", "1", "3"),
        run(f'[ "$(hostname)" = a ] && {ONE}', f'[ "$(hostname)" = b ] && {ONE}'),
        value("true => $(echo @)", "1", "3"), value("true => $(printf %d @)", "1", "3"),
        value("for i in $(seq 1 @); do :; done => $i", "1", "3"),
        value("n=$(echo 1:3 | cut -d: -f@) => $n", "1", "2"), value("n=$(echo 1 | tr 1 @) => $n", "1", "3"),
        run(f"echo a | grep -q a && {ONE}", f"echo a | grep -q b && {ONE}"),
        run(f"test 1 = 1 && {ONE}", f"test 1 = 2 && {ONE}"), run(f"[ 1 -lt 2 ] && {ONE}", f"[ 2 -lt 1 ] && {ONE}"),
        run(f"[[ ab == a* ]] && {ONE}", f"[[ ab == b* ]] && {ONE}"),
    ],
    "`ethtool` that sets more": [
        left("ethtool -s eth0 speed 10"), left("ip link set dev eth0 mtu 1400 nosuch"), left("ifconfig eth0 mtu 1400 nosuch"),
    ],
    "a condition that needs a running machine": [
        left("f() { :; }; [ -f FILE ] && f() { ip link set eth0 down; }; f"), left("[ -f FILE ] && trap 'ip link set eth0 down' EXIT"),
        left("[ -f FILE ] && echo ip link set eth0 down | tee /x.sh; sh /x.sh"),
        left(f"if ping -c 1 10.1.0.2; then {ONE}; else {THREE}; fi"), left(f"if ip link show eth1; then {ONE}; fi"),
        left(f"if [ -f /etc/x ]; then {ONE}; fi"), left(f"for f in /etc/*; do {ONE}; done"),
    ],
    "`sudo`, `env`": [
        *(run(f"{word} {ONE}", f"{word} {THREE}") for word in ("sudo", "env A=1", "timeout 5", "nice -n 5", "nohup")),
        value("echo addr add 10.2.0.@/24 dev eth1 > /tmp/b; ip -batch /tmp/b => 77", "1", "3"),
        run("echo net.ipv4.ip_forward=0 > /etc/sysctl.conf; sysctl -p", "echo net.ipv4.ip_forward=1 > /etc/sysctl.conf; sysctl -p"),
        run(f"echo '{ONE}' | sh", f"echo '{THREE}' | sh"),
    ],
    "a program that is not known": [both("#here", f"frobnicate && {ONE}", None, A), left("frobnicate && true")],
    "what follows a loop that never ends": [
        left(f"while true; do sleep 1; done\n{ONE}"),
        run(f"(while true; do sleep 1; done) &\n{ONE}", f"(while true; do sleep 1; done) &\n{THREE}"),
    ],
    "`ip addr`, `ip link`": [
        run(ONE, THREE), run("ip a a 10.2.0.1/24 dev eth1", "ip a a 10.2.0.3/24 dev eth1"),
        run("ip address add dev eth1 10.2.0.1/24", "ip address add dev eth1 10.2.0.1/25"),
        run("ip link set eth1 mtu 1300", "ip link set eth1 mtu 1400"), run("ip l set up dev eth1", "ip l set down dev eth1"),
        run(f"{ONE}\nip route add default via 10.2.0.9", f"{ONE}\nip route add default via 10.2.0.9\nip link set eth1 down; ip link set eth1 up"),
        run(f"{ONE}\nip route add default via 10.2.0.9", f"{ONE}\nip route add default via 10.1.0.2"),
        run(f"{ONE}\nip r a default via 10.2.0.9 metric 5; ip r a default via 10.1.0.2 metric 7",
            f"{ONE}\nip r a default via 10.2.0.9 metric 9; ip r a default via 10.1.0.2 metric 7"),
        run("ifconfig eth1 10.2.0.1 netmask 255.255.255.0", "ifconfig eth1 10.2.0.1 netmask 255.255.255.128"),
        run("ifconfig eth1 10.2.0.1", "ifconfig eth1 10.2.0.1/24"),
        run(f"{ONE}\nroute add default gw 10.2.0.9", f"{ONE}\nroute add default gw 10.1.0.2"),
        run("sysctl -w net.ipv4.ip_forward=1", "sysctl -w net.ipv4.ip_forward=0"),
        run("echo 1 > /proc/sys/net/ipv4/ip_forward", "echo 0 > /proc/sys/net/ipv4/ip_forward"), left("vconfig add eth1 5"),
    ],
    "`tc qdisc` with netem": [
        run("tc qdisc add dev eth0 root netem delay 5ms", "tc qdisc add dev eth0 root netem delay 6ms"),
        run("tc qdisc add dev eth0 root netem loss 5%", "tc qdisc add dev eth0 root netem loss 6%"),
        run("tc qdisc add dev eth0 root tbf rate 1mbit burst 9k latency 5ms", "tc qdisc add dev eth0 root tbf rate 2mbit burst 9k latency 5ms"),
        said("#here", "tc qdisc add dev eth0 root tbf rate 1mbit burst 9k latency 5ms",
             "tc qdisc add dev eth0 root netem rate 1mbit", A),
    ],
    "`ip link type bridge`": [
        bridge(f"{JOIN}ip link set eth1 master br0", JOIN), bridge(f"{JOIN}brctl addif br0 eth1", JOIN),
        bridge("brctl addbr br0; brctl addif br0 eth0; ifconfig br0 up\nbrctl addif br0 eth1", "brctl addbr br0; brctl addif br0 eth0; ifconfig br0 up"),
        bridge("ovs-vsctl add-br b -- add-port b eth0 -- add-port b eth1", "ovs-vsctl add-br b -- add-port b eth0"),
        bridge(f"{JOIN}ip link set eth1 master br0", f"{JOIN}ip link set eth1 master br0; ip link set br0 down"),
        said(NO_ADDRESS, f"{JOIN}ip link set eth1 master br0".replace("ip link set br0 up\n", ""), f"{JOIN}ip link set eth1 master br0", A),
    ],
    "what follows a `sleep`": [said("#here", f"sleep 5; {ONE}", ONE, A)],
    "VLANs on a bridge": [
        refused("#here", "ip link add br0 type bridge vlan_filtering 1", A), refused("#here", "ip link set eth1 name wan", A),
        refused("#here", "if then (", A),
        refused("#here", "i=0; while [ $i -lt 99999 ]; do i=$((i+1)); ip link set eth1 up; done", A),
    ],
    "a bridge's MTU, tagged interfaces": [
        said("#here", "ip link add br0 type bridge; ip link set br0 mtu 900", "ip link add br0 type bridge", A),
        left("ip link add link eth1 name eth1.5 type vlan id 5"), left("ip link add d0 type dummy"),
        left("ip tunnel add t0 mode gre remote 10.1.0.2"), left("ip rule add from 10.1.0.0/24 table 5"),
        left("iptables -A FORWARD -j DROP"), left("ip route add 10.9.0.0/24 dev eth1"), left("frobnicate --fast"),
    ],
}  # fmt: skip
TOOL = Tool("Startup scripts", FILES, "lab/lab.conf", imported(kathara.read), ROWS)
