"""Tests that the effect of startup scripts is interpreted: conditions, loops, functions, forms of ip and
ifconfig.
"""

from __future__ import annotations

import pytest

from orchestrator.exchange.linux.tc import duration, rate
from orchestrator.exchange.network import Machine, Route
from orchestrator.exchange.startup import Startup


def run(text: str, hostname: str = "r1") -> tuple[Machine, list[str]]:
    """Returns the machine after the script, and the messages about the parts that were left out."""
    machine = Machine("m")
    startup = Startup(machine, hostname, lambda line: f"line {line}")
    startup.script(text)
    assert not startup.problems
    return machine, startup.left


A = "ip addr add 10.0.0.1/24 dev eth0"
HAS = {"eth0": ["10.0.0.1/24"]}


@pytest.mark.parametrize(
    "text",
    [
        f'if [ "$(hostname)" = r1 ]; then {A}; else ip addr add 10.0.0.2/24 dev eth0; fi',
        f"if test $HOSTNAME != r1; then :; elif [ 1 -eq 1 ]; then {A}; fi",
        f"case `hostname` in r[2-9]) ip a a 9.9.9.9/24 dev eth0;; r*) {A};; *) :;; esac",
        "for i in 0; do ip addr add 10.0.$i.1/24 dev eth$i; done",
        "for i in $(seq 1 1); do ip addr add 10.0.$((i-1)).1/24 dev eth$((i - 1)); done",
        f"i=0; while [ $i -lt 1 ]; do {A}; i=$((i+1)); done",
        f"for ((i=0; i<1; i++)); do {A}; done",
        f"false || {A}",
        f"true && {A}",
        f"! false && {A} || ip addr add 10.0.0.9/24 dev eth0",
        f"give() {{ {A}; }}; give",
        'N=${HOSTNAME#r}; ip addr add "10.0.0.$N/24" dev eth0',
        f'sh -c "{A}"',
        f"{A} || true",
        f"[[ $HOSTNAME == r? && -z $NONE ]] && {A}",
        f"ip link set eth0 up; {A} 2>/dev/null &",
        f"cat > /x.sh <<EOF\n{A}\nEOF\nsh /x.sh",
        f"echo '{A}' | while read line; do $line; done",
        f"exit_later() {{ return 1; }}; exit_later || {A}\nexit 0\nip addr add 8.8.8.8/8 dev eth0",
        "ip a a 10.0.0.1/24 dev eth0",
        f"false; [ $? -eq 1 ] && {A}",
        "true; ip addr add 10.0.0.$((1 + $?))/24 dev eth0",
        "give() { ip addr add 10.0.0.$(($1 - 3))/24 dev eth$(($# - 1)); }; give 4",
        "false || ip addr add 10.0.0.$?/24 dev eth0",
        "/sbin/ip addr add dev eth0 10.0.0.1/24",
        "ip -4 address add local 10.0.0.1/24 brd + dev eth0 label eth0:x",
        "ip ad replace 10.0.0.1/24 dev eth0",
        "ip addr add 10.9.0.1/24 dev eth0; ip addr flush dev eth0; " + A,
        "ip addr add 10.9.0.1/24 dev eth0; ip addr del 10.9.0.1/24 dev eth0; " + A,
        "/sbin/ifconfig eth0 10.0.0.1 netmask 255.255.255.0 up",
        "ifconfig eth0 inet 10.0.0.1/24",
        "ifconfig eth0 10.9.0.1/24; ifconfig eth0 10.0.0.1 netmask 0xffffff00 broadcast 10.0.0.255",
        "busybox ip addr add 10.0.0.1/24 dev eth0",
    ],
)
def test_every_way_to_one_address(text: str) -> None:
    machine, left = run(text)
    assert machine.addresses == HAS and not left


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"ping -c1 x || {A}", "line 1: `ip addr add 10.0.0.1/24 dev eth0` is not run: whether it would run"),
        (f"if [ -f /etc/x ]; then {A}; fi", "whether it would run"),
        (f"if grep -q x /etc/x; then :; else {A}; fi", "whether it would run"),
        (f"while true; do {A}; sleep 1; done", "whether it would run"),
        (f"case $(cat /etc/x) in a) {A};; esac", "whether it would run"),
        ("ip addr add $(cat /etc/x) dev eth0", "the text at (?) is not known"),
        ("ip addr add 10.0.0.1/24 dev eth0 nonsense", "is not run"),
        ("iptables -A FORWARD -j DROP", "line 1: `iptables -A FORWARD -j DROP` is not run"),
        ("ip rule add from 10.0.0.0/8 table 7", "is not run"),
        ("ip route add 10.1.0.0/16 dev eth0", "is not run"),
        ("route add default gw 10.0.0.9 nonsense eth0", "is not run"),
        ("route add default gw 10.0.0.9 10.0.0.8", "is not run"),
        ("route add default gw 10.0.0.9 metric low", "is not run"),
        ("route add default gw 10.0.0.9 reject", "is not run"),
        ("route add -net 10.5.0.0 netmask 0xffgg0000 gw 10.0.0.9", "is not run"),
        ("route add -net 10.5.0.0 netmask 0xff00ff00 gw 10.0.0.9", "is not run"),
        ("ifconfig eth0 mtu \u00b2", "is not run"),
        ("vconfig add eth0 five", "is not run"),
        ("vconfig add eth0 4095", "is not run"),
        ("ip link add link eth0 name eth0.5 type vlan id 5000", "is not run"),
        ("tc qdisc add dev eth0 root fq_codel", "is not run"),
        ("tc qdisc add dev eth0 root netem delay 5ms slot 1ms", "is not run"),
        ("tc qdisc add dev eth0 root netem delay 5ms 1.2.3ms", "is not run"),
        ("tc qdisc add dev eth0 root netem loss 1.2.3%", "is not run"),
        ("tc qdisc add dev eth0 root netem limit \u00b2", "is not run"),
    ],
)
def test_what_is_not_known_is_left_out_with_its_line(text: str, said: str) -> None:
    machine, left = run(text)
    assert not machine.addresses.get("eth0") and not machine.queues and any(said in line for line in left)
    assert not machine.routes and not machine.made and not machine.mtus


def test_a_removal_without_an_address_removes_none_and_is_told() -> None:
    for text in ("ifconfig eth0 del", "ifconfig eth0 del nonsense"):
        machine, left = run(f"{A}; {text}")
        assert machine.addresses == HAS and left == [f"line 1: `{text}` is not run"], text
    assert not run(f"{A}; ifconfig eth0 del 10.0.0.1")[0].addresses["eth0"]


def test_a_program_that_is_not_run_is_taken_as_successful_and_said() -> None:
    machine, left = run(f"apt install x && {A}")
    assert machine.addresses == HAS
    assert left[0] == "line 1: `apt install x` is not run" and "taken as successful" in left[1]


@pytest.mark.parametrize(
    ("text", "routes"),
    [
        ("ip route add default via 10.0.0.9", [("default", "10.0.0.9")]),
        ("ip r add 0.0.0.0/0 via 10.0.0.9 dev eth0 metric 5", [("default", "10.0.0.9")]),
        ("ip ro a 10.5.0.0/16 dev eth0 via 10.0.0.9 proto static", [("10.5.0.0/16", "10.0.0.9")]),
        ("ip route add 10.5.1.1 via 10.0.0.9", [("10.5.1.1/32", "10.0.0.9")]),
        (
            "ip route add default via 10.0.0.1; ip route replace default via 10.0.0.9",
            [("default", "10.0.0.9")],
        ),
        ("ip route add default via 10.0.0.9; ip route add default via 10.0.0.8", [("default", "10.0.0.9")]),
        ("route add default gw 10.0.0.9 eth0", [("default", "10.0.0.9")]),
        ("route add -net 10.5.0.0 netmask 255.255.0.0 gw 10.0.0.9", [("10.5.0.0/16", "10.0.0.9")]),
        ("route add -net 192.168.7.0 gw 10.0.0.9 dev eth0", [("192.168.7.0/24", "10.0.0.9")]),
        ("route add 10.5.1.1 gw 10.0.0.9 metric 2 wan0", [("10.5.1.1/32", "10.0.0.9")]),
        ("route add -host 10.5.1.1 gw 10.0.0.9", [("10.5.1.1/32", "10.0.0.9")]),
        ("route add default gw 10.0.0.9; route del default", []),
    ],
)
def test_every_spelling_of_a_route(text: str, routes: list[tuple[str, str]]) -> None:
    assert [(route.to, route.via) for route in run(text)[0].routes] == routes


def test_forwarding_on_and_off() -> None:
    for text in (
        "sysctl -w net.ipv4.ip_forward=1",
        "sysctl net/ipv4/ip_forward=1",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo 1 | sudo tee /proc/sys/net/ipv4/ip_forward",
        "sysctl -w net.ipv4.conf.all.forwarding = 1",
    ):
        assert run(text)[0].forward, text
    assert not run("sysctl -w net.ipv4.ip_forward=1; echo 0 > /proc/sys/net/ipv4/ip_forward")[0].forward


def test_classes_queues_states_and_bridges() -> None:
    machine, left = run(
        "ifconfig eth0 192.168.0.10 up\nifconfig eth1 172.16.3.4\nifconfig eth2 10.1.1.1\n"
        "ip link set dev eth0 mtu 1400\nip link set eth1 down\n"
        "tc qdisc add dev eth0 root handle 1: netem delay 20ms 2ms 25% loss 0.5%\n"
        "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 2mbit burst 32kbit latency 400ms\n"
        "brctl addbr br0; brctl addif br0 eth3 eth4; brctl stp br0 on\n"
        "ip link add name br1 type bridge && ip link set eth5 master br1\n"
    )
    assert len(left) == 1 and left[0].startswith("line 7: burst and queue of `tc qdisc add dev eth0")
    assert machine.addresses == {
        "eth0": ["192.168.0.10/24"],
        "eth1": ["172.16.3.4/16"],
        "eth2": ["10.1.1.1/8"],
    }
    assert machine.mtus == {"eth0": 1400} and machine.down == {"eth1"}
    queue = {"delay": "20 ms", "jitter": "2 ms", "delay_correlation": "25 %", "loss": "0.5 %"}
    assert machine.queues == {"eth0": {**queue, "rate": "2000000 bit/s"}}
    assert machine.bridges["br0"].ports == ["eth3", "eth4"] and machine.bridges["br0"].stp
    assert machine.bridges["br1"].ports == ["eth5"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("if [ 1 ]; then", "is no shell syntax"),
        ("f() { f; }; f", "nests more than"),
        ("i=0; while [ $i -ge 0 ]; do i=$((i+1)); done", "runs more than"),
        ("for i in {1..99999999}; do :; done", "expands to more than"),
        ("echo $((1/0))", "divides by zero"),
        ("bridge vlan add dev eth0 vid 5", "is a bridge with VLANs"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_line(text: str, rule: str) -> None:
    startup = Startup(Machine("m"), "r1", str)
    startup.script(f"# first\n{text}\n")
    ((line, _, said, _),) = startup.problems
    assert rule in said and line in (2, 3)


def test_of_two_routes_the_lower_metric_is_first() -> None:
    machine, _ = run("ip route add default via 10.0.0.8 metric 9; ip route add default via 10.0.0.9 metric 1")
    assert Route("default", "10.0.0.9", 1) in machine.routes and len(machine.routes) == 2


def test_text_of_tc_that_is_no_number_is_kept_for_the_topology_to_refuse() -> None:
    for text in ("1.2.3", "1.2.3ms", ".", "..5mbit", "\u0663ms"):
        assert (duration(text), rate(text)) == (text, text)
    assert (duration("1.5ms"), duration(".5ms"), rate("2.mbit")) == ("1500 us", "500 us", "2000000 bit/s")
