"""Tests the parts of a lab over several hosts, without hosts."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_plans import MS, access, make_plan, node, on_host

from contract.plan import Host, Impairment, Plan, Step, Tunnel
from orchestrator.lab import operations, readback
from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.errors import LabError
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host import crossing, encoding, host_commands, tunnels
from orchestrator.lab.multi_host.channel import Channel
from orchestrator.lab.multi_host.crossing import Crossing
from orchestrator.lab.multi_host.files import Packets, Rows
from orchestrator.lab.multi_host.part import states
from orchestrator.lab.multi_host.parting import of_host
from orchestrator.lab.multi_host.places import Places
from orchestrator.lab.multi_host.underlay import TRAIN, Underlay
from orchestrator.lab.vm.connection import LONGEST_ROOT

LAB = "spread"


def two_hosts() -> Plan:
    """Returns the parts of a plan: alpha on h1, beta and its link on h2, the segment on both."""
    alpha, beta = node(LAB, 0, "alpha"), node(LAB, 1, "beta")
    link = access(LAB, "slow", beta, Impairment(delay_ns=20 * MS, limit_packets=100), Impairment())
    plan = on_host(make_plan(LAB, (alpha, beta), (link,)), "h2")
    nodes = (dataclasses.replace(plan.nodes[0], host="h1"), plan.nodes[1])
    tunnel = Tunnel("lan", "br-lan", 77, "vx-lan", 1500, ("h1", "h2"))
    return dataclasses.replace(plan, hosts=(Host("h1"), Host("h2")), nodes=nodes, tunnels=(tunnel,))


def test_a_host_gets_its_share_of_the_plan() -> None:
    first, second = of_host(two_hosts(), "h1"), of_host(two_hosts(), "h2")
    assert [n.name for n in first.nodes] == ["alpha"] and not first.links and not first.steps
    assert [n.name for n in second.nodes] == ["beta"] and [li.name for li in second.links] == ["slow"]
    assert first.tunnels == second.tunnels


def test_a_step_goes_to_the_host_of_its_devices() -> None:
    places = Places(two_hosts())
    core = places.core
    assert places.steps(Step("ip", core, "link set dev alpha down\nlink set dev beta down\n", "")) == {
        "h1": "link set dev alpha down\n", "h2": "link set dev beta down\n",
    }  # fmt: skip
    everywhere = "link add ref.a type veth peer name ref.b\n"
    assert places.steps(Step("ip", core, everywhere, "")) == {"h1": everywhere, "h2": everywhere}
    assert places.steps(Step("tc", f"vnet-{LAB}.beta", "x\n", "")) == {"h2": "x\n"}
    assert places.steps(Step("tc", core, "x\n", "", "h1")) == {"h1": "x\n"}


def test_what_came_with_a_node_later_is_at_its_host() -> None:
    places = Places(two_hosts())
    clone = dataclasses.replace(node(LAB, 5, "beta2"), host="h2")
    places.add([clone])
    port = clone.interfaces[0].port
    assert places.on("h2") == ["beta", "beta2"]
    assert places.link("beta2-slow", "forward", clone.netns, "eth0") == "h2"
    assert places.link("beta2-slow", "reverse", places.core, str(port)) == "h2"
    assert places.device(places.core, "ref.a") is None, "which each host has"
    places.drop([clone])
    assert places.on("h2") == ["beta"]


def test_hosts_of_two_families_have_no_tunnel() -> None:
    plan = dataclasses.replace(two_hosts(), hosts=(Host("h1", "ssh://x"), Host("h2", "ssh://y")))
    parts = {"h1": Told("10.0.0.1"), "h2": Told("fd00::2")}
    with pytest.raises(LabError, match=r"of IPv4 and of IPv6 \(10.0.0.1, fd00::2\).* of the same family"):
        tunnels.addresses_of(plan, parts)  # type: ignore[arg-type]


def test_operations_are_told_and_understood() -> None:
    for request in (
        operations.Go(5), operations.Exec("alpha", ["true"], {}, None), operations.Input(7, data="YQ=="),
        operations.SendFrames("alpha", "eth0", "02:00:00:00:00:01", 3, 4, 64, 0.0, False, 9),
    ):  # fmt: skip
        assert encoding.decode_operation(encoding.encode_operation(request)) == request


def test_silence_is_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert encoding.silence_s() == 60
    for text in ("soon", "1", "nan"):
        monkeypatch.setenv(encoding.SILENCE, text)
        with pytest.raises(LabError, match=r"VNET_SILENCE_S.*write seconds"):
            encoding.silence_s()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B23C4D, 1), (0xA1B2C3D4, 1000)])
def test_packets_get_the_labs_time_however_the_file_is_cut(
    tmp_path: Path, order: str, magic: int, unit: int
) -> None:
    def pcap(shift_ns: int) -> bytes:
        head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
        body = b""
        for number in range(50):
            seconds, ns = divmod(10**18 + number * 10**9 // 3 // unit * unit + shift_ns, 10**9)
            body += struct.pack(f"{order}IIII", seconds, ns // unit, number, 99) + bytes([number]) * number
        return head + body

    whole = pcap(0)
    for chunk in (1, 7, 1000, len(whole)):
        packets = Packets(tmp_path / "out", lambda t: t - 5_000_000)
        for place in range(0, len(whole), chunk):
            packets.take(whole[place : place + chunk])
        packets.close()
        assert (tmp_path / "out").read_bytes() == pcap(-5_000_000)
    cut = Packets(tmp_path / "out", lambda t: t)
    cut.take(whole[:-3])
    cut.close()
    assert (tmp_path / "out").read_bytes() == whole[:-3], "what was cut off stays so, for its reader to say"


def test_samples_of_two_hosts_are_one_table(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    for shift in (1, 1000):
        rows = Rows(file, lambda t, shift=shift: t + shift)  # type: ignore[misc]
        for part in (b"t_ns,node\n5,al", b"pha\n6,al", b"pha\n"):
            rows.take(part)
    assert file.read_text() == "t_ns,node\n6,alpha\n7,alpha\n1005,alpha\n1006,alpha\n"


def heard(trips: list[int], train: list[int], probes: int = 100) -> dict[str, object]:
    return {"round_trips_ns": trips, "train": train, "probes": probes}


def test_what_lies_between_is_told_in_figures() -> None:
    tunnel = two_hosts().tunnels[0]
    trips, train = [20 * MS] * 90, [n * 121_120 for n in range(200)]
    found = crossing._crossing(
        ("h1", "h2"),
        tunnel,
        {"h1": {"1": heard(trips, train)}, "h2": {"0": heard([], train)}},
        {"h1": 0, "h2": 1},
    )
    assert (found.delay_ns, found.jitter_ns, found.loss) == (10 * MS, 0, 0.1)
    assert found.rate_bps == found.rate_back_bps == 100_000_000


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"vnet-test-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a namespace: needs root")
def test_a_train_waits_in_a_slow_network(namespace: str) -> None:
    """Shows that a train waits if a slow network leaves the sender's socket full of frames."""
    words = """link add slow type veth peer name far
        link set slow up
        link set far up"""
    subprocess.run(["ip", "-n", namespace, "-batch", "-"], input=words, text=True, check=True)
    slow = ["tbf", "rate", "1mbit", "burst", "2kb", "limit", "10mb"]
    subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", "slow", "root", *slow], check=True)
    underlay = Underlay(Loop(MonotonicClock()))
    underlay.listen({"netns": namespace, "devices": ["slow"], "me": 1})
    train = {"kind": TRAIN, "count": crossing.TRAIN_FRAMES, "size": 1486, "interval_ns": 0}
    underlay.send({"to": [{"device": "slow", "host": 2}], **train})
    told = ["tc", "-n", namespace, "-s", "-j", "qdisc", "show", "dev", "slow"]
    (queue,) = json.loads(subprocess.run(told, capture_output=True, text=True, check=True).stdout)
    assert queue["packets"] + queue["qlen"] >= crossing.TRAIN_FRAMES and queue["drops"] == 0
    underlay.heard({})


@pytest.mark.parametrize(
    ("trips", "train", "words"),
    [([], [], "let UDP to port 4789 pass"), ([20 * MS] * 50, [], "takes no packets so long; raise its MTU")],
)
def test_a_network_that_lets_nothing_through_ends_the_lab(
    trips: list[int], train: list[int], words: str
) -> None:
    tunnel = two_hosts().tunnels[0]
    with pytest.raises(LabError, match=words):
        crossing._crossing(
            ("h1", "h2"),
            tunnel,
            {"h1": {"1": heard(trips, train)}, "h2": {"0": heard([], train)}},
            {"h1": 0, "h2": 1},
        )


def test_links_are_held_against_what_lies_between_and_against_the_clocks() -> None:
    def between(delay_ns: int) -> list[Crossing]:
        return [Crossing("h1", "h2", "vx-lan", 1514, delay_ns, 0, 0.0, 1, 1)]

    plan = two_hosts()
    assert crossing.below(plan, between(19 * MS)) == []
    assert crossing.below(plan, between(21 * MS)) == ["slow asks for 20 ms, and h1 - h2 adds 21 ms"]
    good, bad = ({name: {"error_ns": error} for name in ("h1", "h2")} for error in (MS, 2 * MS))
    assert crossing.doubted(plan, between(1), good) == []
    (words,) = crossing.doubted(plan, between(1), bad)
    assert words == "slow asks for 20 ms, and clocks of h1 and h2 are known to 4 ms"


class Told:
    """A part of a lab with the facts that its tunnels need."""

    def __init__(self, address: str) -> None:
        self.facts = {"address": address}


@pytest.mark.parametrize(
    ("said", "asked", "found"),
    [
        ({"h1": "10.0.0.1", "h2": "10.0.0.2"}, {}, {"h1": "10.0.0.1", "h2": "10.0.0.2"}),
        ({"h1": "127.0.0.1", "h2": "10.0.0.2"}, {"h1": "10.0.0.9"}, {"h1": "10.0.0.9", "h2": "10.0.0.2"}),
        ({"h1": "127.0.0.1", "h2": "10.0.0.2"}, {}, None),
        ({"h1": "", "h2": ""}, {}, None),
        ({"h1": "", "h2": "127.0.0.1"}, {}, {"h1": "127.0.0.1", "h2": "127.0.0.1"}),
        ({"h1": "", "h2": "127.0.0.1", "h3": "10.0.0.2"}, {}, None),
    ],
)
def test_hosts_have_addresses_for_each_other(
    said: dict[str, str], asked: dict[str, str], found: dict[str, str] | None
) -> None:
    plan = dataclasses.replace(two_hosts(), hosts=tuple(Host(n, "ssh://x", asked.get(n, "")) for n in said))
    parts = {name: Told(address) for name, address in said.items()}
    if found is None:
        with pytest.raises(LabError, match="write its `address:`"):
            tunnels.addresses_of(plan, parts)  # type: ignore[arg-type]
    else:
        assert tunnels.addresses_of(plan, parts) == found  # type: ignore[arg-type]


def test_tunnels_of_two_ends_know_the_other_and_of_more_ask_all() -> None:
    one = {"device": "vx-lan", "bridge": "br-lan", "vni": 77, "port": 4789, "mtu": 1500, "learning": False,
           "local": "10.0.0.1", "remotes": ["10.0.0.2"]}  # fmt: skip
    assert tunnels.link_text("vnet-x", one) == (
        "link add vx-lan netns vnet-x mtu 1500 type vxlan id 77 "
        "local 10.0.0.1 remote 10.0.0.2 dstport 4789 nolearning\n"
    )
    assert (
        tunnels.port_text(one)
        == "link set dev vx-lan addrgenmode none\nlink set dev vx-lan master br-lan up\n"
    )
    assert tunnels.ends_text(one) == ""
    three = {**one, "learning": True, "remotes": ["10.0.0.2", "10.0.0.3"]}
    assert " remote " not in tunnels.link_text("vnet-x", three)
    assert [line.split()[-2] for line in tunnels.ends_text(three).splitlines()] == ["10.0.0.2", "10.0.0.3"]


def test_tunnels_are_read_back_on_each_host() -> None:
    def entry(host: str, **more: object) -> dict[str, object]:
        return {"host": host, "ifname": "vx-lan", "mtu": 1500, "flags": ["UP"], "master": "br-lan", **more}

    plan = two_hosts()
    assert readback.tunnels(plan, [entry("h1"), entry("h2")]) == []
    assert [str(d) for d in readback.tunnels(plan, [entry("h1", mtu=1450)])] == [
        "hosts.h1.vx-lan.mtu: requested 1500, read back 1450",
        "hosts.h2.vx-lan: requested present, read back absent",
    ]  # fmt: skip


def test_ways_to_hosts_are_kept_as_long_as_something_is_left(tmp_path: Path) -> None:
    ways = {
        "h1": host_commands.Way("ssh://h1", ("true",), ("true",)),
        "h2": host_commands.Way("ssh://h2", ("true",), ("sh", "-c", "echo gone >&2; false")),
    }
    host_commands.note(tmp_path, ways)
    assert host_commands.left(tmp_path) == ways
    assert host_commands.down(ways["h1"]) is None and host_commands.down(ways["h2"]) == "gone"
    host_commands.note(tmp_path, {})
    assert host_commands.left(tmp_path) == {} and not list(tmp_path.iterdir())
    with pytest.raises(LabError, match="start the lab with `vnet run`"):
        host_commands.of_run(tmp_path)


def lost(tmp_path: Path, script: str) -> tuple[Channel, list[str], float]:
    loop, news = Loop(MonotonicClock()), list[str]()
    (tmp_path / "log").touch()
    began = time.monotonic()
    channel = Channel(
        loop, "h1", [sys.executable, "-S", "-c", script], tmp_path / "log", lambda _: None, news.append
    )
    answers: list[dict[str, object]] = []
    channel.ask("devices", {"netns": "x"}, answers.append)
    loop.until(loop.clock.now_ns() + 30 * 10**9, "the end", lambda: bool(news))
    channel.close()
    assert not answers[0]["ok"] and news[0] in str(answers[0]["error"])
    with pytest.raises(LabError, match="host h1: devices"):
        channel.ask("devices", {}, answers.append)
    return channel, news, time.monotonic() - began


def test_a_part_that_ends_is_lost_with_its_last_words(tmp_path: Path) -> None:
    _, news, _ = lost(tmp_path, "import sys; sys.stdin.readline(); sys.exit('no room here')")
    assert news == ["its part ended: no room here"]


def test_a_shell_that_prints_something_is_told_so(tmp_path: Path) -> None:
    _, news, _ = lost(tmp_path, "print('Welcome!', flush=True); import time; time.sleep(60)")
    assert "its answer is not ours" in news[0] and "does its shell print something?" in news[0]


def test_a_silent_part_is_lost_after_the_time_that_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(encoding.SILENCE, "3")
    _, news, passed_s = lost(tmp_path, "import time; time.sleep(60)")
    assert news == ["not a word for 3 s"] and 3 <= passed_s < 20


def test_the_longest_usual_home_leaves_room_for_libvirts_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VNET_STATE_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    lab = "mqtt-many-to-many-long-name-30"
    homes = Path("~root").expanduser() / ".local/state/vnet/far"
    state = states(homes / f"{lab}-501cb688a870-lab1") / lab
    assert len(str(state / "v")) <= LONGEST_ROOT
    assert state.parent.parent == Path("/run/vnet"), "which QEMU's account passes, as it does not /root"
    assert state.parent != states(homes / "another")
    assert state.parent.name.startswith("."), "`vnet ls` there lists labs that were started there"


def test_a_part_whose_home_is_silent_ends_itself(tmp_path: Path) -> None:
    from orchestrator.lab.multi_host.part import Part

    read, write = os.pipe()
    began = time.monotonic()  # measured before the part exists, because it begins to wait at once
    if (child := os.fork()) == 0:
        os.dup2(read, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        (tmp_path / "home").mkdir()
        part = Part(tmp_path / "home")
        part.agree(1.0)
        os._exit(part.run())
    _, status = os.waitpid(child, 0)  # this end of the pipe is open, and nobody writes to it
    for end in (read, write):
        os.close(end)
    assert os.waitstatus_to_exitcode(status) == 0
    assert 1 <= time.monotonic() - began < 20 and not (tmp_path / "home").exists()
