"""Tests the parts without side effects: read-back, tc text, control group layouts, limits, the loop, the
lock.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_plans import MS, make_plan, mqtt_plan, node

from contract.plan import Impairment
from orchestrator.lab import apply, cgroup, evidence, limits, mounts, namespaces, readback
from orchestrator.lab.captures import counts
from orchestrator.lab.clock import SECOND, JumpingClock, wall_offset_ns
from orchestrator.lab.drivers.fake_tools import netem_options
from orchestrator.lab.errors import Interrupted, LabError, TimedOut
from orchestrator.lab.events import Events, Warning
from orchestrator.lab.links import merged
from orchestrator.lab.loop import Loop
from orchestrator.lab.manifest import Manifest
from orchestrator.lab.state import State
from orchestrator.plan.clone import CloneError, clones
from orchestrator.queueing import change_text
from orchestrator.queueing.netem import text as netem_text

# Each entry has the output of iproute2 6.1 on Linux 6.1 (`tc -j qdisc show`), and the settings that had been
# requested.
REAL: list[tuple[Impairment, dict[str, Any]]] = [
    (
        Impairment(delay_ns=20 * MS, jitter_ns=2 * MS, limit_packets=1000),
        {"limit": 1000, "delay": {"delay": 0.02, "jitter": 0.002, "correlation": 0}, "ecn": False, "gap": 0},
    ),
    (
        Impairment(
            delay_ns=20_123_000,
            jitter_ns=2 * MS,
            distribution="normal",
            delay_correlation=0.25,
            loss=0.0137,
            loss_correlation=0.25,
            duplicate=0.01,
            duplicate_correlation=0.1,
            corrupt=0.003,
            corrupt_correlation=0.05,
            reorder=0.02,
            reorder_correlation=0.5,
            rate_bps=250_000,
            limit_packets=50,
        ),
        {
            "limit": 50,
            "delay": {"delay": 0.020122, "jitter": 0.002, "correlation": 0.25},
            "loss-random": {"loss": 0.0137, "correlation": 0.25},
            "duplicate": {"duplicate": 0.01, "correlation": 0.1},
            "reorder": {"reorder": 0.02, "correlation": 0.5},
            "corrupt": {"corrupt": 0.003, "correlation": 0.05},
            "rate": {"rate": 31250, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0},
            "ecn": False,
            "gap": 1,
        },
    ),
    (
        Impairment(gemodel=(0.01, 0.1, 0.7, 0.001), limit_packets=100),
        {"limit": 100, "loss-gemodel": {"p": 0.01, "r": 0.1, "1-h": 0.7, "1-k": 0.001}, "gap": 0},
    ),
    (
        Impairment(delay_ns=1500 * MS, jitter_ns=300_000, limit_packets=1000),
        {"limit": 1000, "delay": {"delay": 1.5, "jitter": 0.000299, "correlation": 0}, "gap": 0},
    ),
    (
        Impairment(loss=1e-7, limit_packets=9),
        {"limit": 9, "loss-random": {"loss": 9.98843e-08, "correlation": 0}},
    ),
]


def entry(options: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"kind": "netem", "dev": "v", "root": True, "options": options}]


@pytest.mark.parametrize(("asked", "options"), REAL)
def test_what_the_kernel_rounds_is_no_difference(asked: Impairment, options: dict[str, Any]) -> None:
    assert readback.impairment("x", asked, entry(options), "v") == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("delay_ns", 21 * MS), ("jitter_ns", 3 * MS), ("loss", 0.02), ("rate_bps", 251_000),
     ("limit_packets", 51),
     ("reorder", 0.0), ("corrupt", 0.004), ("duplicate_correlation", 0.2), ("gemodel", (0.1, 0.1, 1.0, 0.0))],
)  # fmt: skip
def test_every_other_value_is_a_difference(field: str, value: Any) -> None:
    asked = dataclasses.replace(REAL[1][0], **{field: value})
    found = readback.impairment("links.wan.forward", asked, entry(REAL[1][1]), "v")
    assert [d.place for d in found] == [f"links.wan.forward.{field}"]


def test_a_missing_qdisc_and_one_too_many_are_differences() -> None:
    asked, none = REAL[0][0], [{"kind": "noqueue", "dev": "v", "root": True, "options": {}}]
    assert str(readback.impairment("w", asked, none, "v")[0]) == "w.v: requested netem, read back noqueue"
    assert (
        str(readback.impairment("w", Impairment(), entry({}), "v")[0])
        == "w.v: requested no netem, read back netem"
    )
    assert readback.impairment("w", Impairment(), none, "v") == []


def test_devices_that_are_not_as_planned_are_named() -> None:
    plan = make_plan("d", (node("d", 0, "alpha"),))
    entries = [
        {"ifname": "br-lan", "mtu": 1400, "flags": ["UP"]},
        {"ifname": "alpha", "mtu": 1500, "flags": []},
    ]
    assert [str(d) for d in readback.core_devices(plan, entries)] == [
        "segments.lan.br-lan.mtu: requested 1500, read back 1400",
        "nodes.alpha.alpha.up: requested True, read back False",
        "nodes.alpha.alpha.bridge: requested br-lan, read back None",
    ]
    with pytest.raises(LabError, match="not as planned"):
        readback.insist(readback.agents(plan.nodes, {}))


def test_a_port_that_does_not_forward_yet_is_waited_for_by_name() -> None:
    def port(name: str, state: str) -> dict[str, Any]:
        info = {"info_kind": "veth", "info_slave_kind": "bridge", "info_slave_data": {"state": state}}
        return {"ifname": name, "flags": ["UP"], "linkinfo": info}

    entries = [
        {"ifname": "br-lan"},
        port("alpha", "forwarding"),
        port("beta", "disabled"),
        port("c", "listening"),
    ]
    assert readback.not_forwarding(entries, None) == ["beta", "c"]
    assert readback.not_forwarding(entries, ["alpha", "c"]) == ["c"]


shares = st.integers(0, 1000).map(lambda n: n / 1000)
impairments = st.builds(
    Impairment,
    delay_ns=st.integers(1, 10**6).map(lambda us: us * 1000),
    jitter_ns=st.integers(0, 1000).map(lambda us: us * 1000),
    loss=shares, loss_correlation=shares, duplicate=shares, corrupt=shares, reorder=shares,
    rate_bps=st.integers(0, 10**9).map(lambda n: n * 8), limit_packets=st.integers(1, 10**6),
)  # fmt: skip


@given(impairments)
def test_the_text_for_tc_says_the_impairment(wanted: Impairment) -> None:
    planned = netem_options(netem_text(wanted).split()[1:])
    assert readback.impairment("x", wanted, entry(planned), "v") == []


@given(impairments, impairments)
def test_a_change_leaves_nothing_of_what_was_before(before: Impairment, after: Impairment) -> None:
    """Shows that a netem change sets every option anew, because the kernel keeps the options that a change
    does not name.
    """
    kept = netem_options(netem_text(before).split()[1:])
    changed = kept | netem_options(netem_text(after, before).split()[1:])
    assert readback.impairment("x", after, entry(changed), "v") == []


def test_a_change_names_zeros_and_makes_anew_only_what_cannot_be_taken_back() -> None:
    plain, delayed = Impairment(), Impairment(delay_ns=MS, limit_packets=5)
    normal = dataclasses.replace(delayed, jitter_ns=1000, distribution="normal")
    assert change_text("v", plain, plain) == ""
    assert change_text("v", delayed, plain) == "qdisc del dev v root\n"
    lossy = dataclasses.replace(delayed, loss=0.1, loss_correlation=0.2)
    assert "loss random 0% 0%" in change_text("v", lossy, delayed)
    assert change_text("v", normal, delayed).startswith("qdisc del dev v root\nqdisc replace")
    rate = Impairment(rate_bps=10**6, limit_packets=5, backpressure=True)
    assert change_text("v", delayed, rate).startswith(
        "qdisc del dev v root\nqdisc replace dev v root handle 1: tbf"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"loss": -0.1}, "not between"), ({"jitter_ns": 5, "delay_ns": 0}, "needs a delay of at least"),
     ({"x": 1}, "no such quantity"),
     ({"limit_packets": 0}, "drops everything")],
)  # fmt: skip
def test_changes_out_of_range_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LabError, match=words):
        merged(Impairment(delay_ns=MS, limit_packets=5), changes, "links.wan.forward")


V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
V1 = """cg /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cg /cg/memory cgroup rw,memory 0 0
cg /cg/unified cgroup2 rw 0 0
"""


def test_control_group_layouts() -> None:
    two = cgroup.detect(V2, {Path("/sys/fs/cgroup"): "cpuset cpu io memory pids\n"})
    assert (two.version, set(two.mounts)) == (2, {"cpu", "cpuacct", "memory", "pids"})
    one = cgroup.detect(V1, {Path("/cg/unified"): "hugetlb\n"})
    assert (one.version, one.mounts["cpuacct"]) == (1, Path("/cg/cpu,cpuacct"))
    assert one.roots(("cpu", "cpuacct")) == [Path("/cg/cpu,cpuacct")]
    none = cgroup.detect("cg /cg/unified cgroup2 rw 0 0\n", {Path("/cg/unified"): ""})
    assert none.version == 0


def test_limits_without_their_controller_are_refused() -> None:
    groups = cgroup.Groups(cgroup.Layout(0), "x")
    asked = limits.Limits(groups, 2, 2000.0)
    with pytest.raises(LabError, match=r"nodes.alpha: CPU limit: needs the cpu controller"):
        asked.need([node("x", 0, "alpha", cpu_limit_mhz=100.0)])
    with pytest.raises(LabError, match=r"nodes.alpha: memory limit: needs the memory controller"):
        asked.need([node("x", 0, "alpha", memory_limit_bytes=1)])
    with pytest.raises(LabError, match="does not report its clock rate"):
        limits.Limits(groups, 2, None).need([node("x", 0, "alpha", cpu_limit_mhz=100.0)])


def test_quotas_and_weights() -> None:
    assert limits.quota(0.5) == limits.Quota(50_000, 100_000)
    assert limits.quota(0.002) == limits.Quota(2_000, 1_000_000)
    with pytest.raises(LabError, match=r"least is 0\.001"):
        limits.quota(0.0001)
    assert limits.weights({"a": 1.0, "b": None, "c": None}, 2, 1000, 2) == {"a": 1000, "b": 500, "c": 500}
    assert limits.weights({"a": None}, 2, 1000, 2) == {}
    with pytest.raises(LabError, match="the machine has 2"):
        limits.weights({"a": 1.5, "b": 1.0}, 2, 1000, 2)
    assert limits.real_mhz("cpu MHz : 1000.5\ncpu MHz : 2000.0\n", None) == 2000.0
    assert limits.real_mhz("cpu MHz : 1000.5\n", "3600000") == 3600.0
    assert limits.real_mhz("model name : UML\n", None) is None


def test_waits_have_a_subject_and_a_deadline_and_can_be_interrupted() -> None:
    loop = Loop(JumpingClock(0))
    ticks: list[int] = []
    loop.every(10, lambda: ticks.append(loop.clock.now_ns()))
    with pytest.raises(TimedOut, match="for the moon, in vain"):
        loop.until(35, "the moon", lambda: False)
    assert ticks == [10, 20, 30]
    loop.interrupt(Interrupted("first"))
    loop.interrupt(Interrupted("second"))
    with pytest.raises(Interrupted, match="first"):
        loop.sleep_until(100)
    loop.suspend_interruption(lambda: loop.sleep_until(100))
    assert loop.clock.now_ns() == 100
    with pytest.raises(Interrupted):
        loop.sleep_until(200)
    loop.shield()
    loop.sleep_until(200)


def test_a_name_is_claimed_once_and_free_again_after(tmp_path: Path) -> None:
    first = State(tmp_path / "a", "a", "host", tmp_path)
    with pytest.raises(LabError, match="the name is in use by process"):
        State(tmp_path / "a", "a", "host", tmp_path)
    first.release()
    State(tmp_path / "a", "a", "host", tmp_path).release()
    assert not (tmp_path / "a").exists()


def test_evidence_that_only_a_running_lab_sees() -> None:
    assert evidence.lateness([10**6] * 5) == []
    assert [w.code for w in evidence.lateness([10**6, 10**9])] == ["late"]
    assert "2 of 5" in evidence.sessions(3, 5)[0].text


def test_drops_of_the_proof_are_none_of_the_run(tmp_path: Path) -> None:
    """Shows that drops during the link proof do not make the run suspect: the proof's frames overrun the
    queue of a half-duplex link.
    """
    rows = [
        (1, "way", "both", 0, 0, 201), (2, "way", "both", 0, 0, 201), (1, "full", "forward", 0, 0, 3),
        (2, "full", "forward", 0, 0, 10), (1, "anew", "forward", 0, 0, 9), (2, "anew", "forward", 0, 0, 4),
    ]  # fmt: skip
    file = tmp_path / "links.csv"
    heads = "t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets"
    file.write_text("\n".join([heads, *(",".join(map(str, (*row, 0, 0, 0))) for row in rows)]))
    found = [warning.text.split(" packets")[0] for warning in evidence.queue_drops(file, set())]
    assert found == ["link full forward: its queue dropped 7", "link anew forward: its queue dropped 4"]
    assert [w.text.split(":")[0] for w in evidence.queue_drops(file, {("full", "forward")})] == [
        "link anew forward"
    ]


def test_a_clock_that_is_set_marks_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a clock set away and back again marks the run as suspect, with the largest offset."""
    real = wall_offset_ns()
    wall = evidence.WallClock(real)
    wall.look()
    assert wall.warnings() == []
    for moved in (-3600 * 10**9, 0):
        monkeypatch.setattr(evidence, "wall_offset_ns", lambda moved=moved: real + moved)
        wall.look()
    (warning,) = wall.warnings()
    assert warning.code == "clock-set" and warning.suspect and "set by -3600.0" in warning.text


@pytest.mark.parametrize(("by_ns", "marked"), [(400_000, False), (1_000_000, True), (-5_000_000, True)])
def test_a_clock_set_by_a_millisecond_marks_the_run(
    monkeypatch: pytest.MonkeyPatch, by_ns: int, marked: bool
) -> None:
    wall = evidence.WallClock(10**18)
    monkeypatch.setattr(evidence, "wall_offset_ns", lambda: 10**18 + by_ns)
    wall.look()
    assert [warning.code for warning in wall.warnings()] == ["clock-set"] * marked


def test_counts_of_tcpdump() -> None:
    text = "tcpdump: listening on v\n1 packet captured\n25 packets received by filter\n"
    text += "4 packets dropped by kernel\n"
    known = {"packets": 1, "received": 25, "dropped_kernel": 4, "dropped_interface": 0}
    assert counts(text) == known
    with pytest.raises(LabError, match="ended without its statistics"):
        counts("tcpdump: listening on v\n")


def test_a_clone_has_no_part_in_the_scenario() -> None:
    """Shows that a clone with scenario software is refused, or made without it (--idle), because the plan has
    no flows for it.
    """
    plan = mqtt_plan("clone")
    with pytest.raises(CloneError, match=r'"client": meter takes part in the scenario.*--idle'):
        clones(plan, {}, "client", 1)
    (clone,) = clones(plan, {}, "client", 1, idle=True)
    assert (clone.node.name, clone.node.software) == ("client3", ())
    (broker,) = clones(plan, {}, "broker", 1)
    assert [one.name for one in broker.node.software] == ["mosquitto"]


def test_the_manifest_keeps_what_a_reduction_added(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    events = Events()
    manifest = Manifest(make_plan("m", (node("m", 0, "alpha"),)), tmp_path, {}, {}, "fake")
    events.warn(Warning("late", "came late", "repeat"))
    manifest.write(events)
    path = tmp_path / "manifest.json"
    data = json.loads(path.read_text())
    added = {"code": "reduce-cut", "text": "cut", "remedy": "none"}
    check = {"name": "bytes", "verdict": "fails", "text": "node 0 beside link 6 Mbit/s", "numbers": {}}
    reduced = {"warnings": [*data["warnings"], added], "checks": [check], "sealed": True}
    path.write_text(json.dumps(data | reduced))
    events.warn(Warning("teardown", "busy", "wait", suspect=False))
    manifest.finish(events, "complete", None)
    manifest.write(events)
    found = json.loads(path.read_text())
    assert [w["code"] for w in found["warnings"]] == ["late", "teardown", "reduce-cut"]
    assert (found["checks"], found["sealed"]) == ([check], True)


def test_a_state_directory_that_cannot_be_made_is_said_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match=r"file/state: cannot be made: Not a directory; set VNET_STATE_DIR"):
        State(tmp_path / "file" / "state" / "lab", "lab", "fake", tmp_path)


def test_patience_with_ports_is_patience_with_so_many() -> None:
    """Shows that the timeout grows with the number of ports: the kernel reports a hundred at a time, so 3,000
    ports can take 11 s.
    """
    assert apply.patience(1) < 11 * SECOND < apply.patience(3000)
    assert apply.patience(1, trees=True) > 60 * SECOND


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_name_goes_with_all_its_mounts_and_what_a_link_leads_to_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a name and all its mounts are removed without reading the machine's mount table, which would
    take hours for 10,000 names; the target of a symbolic link stays.
    """
    name, other, link = tmp_path / "name", tmp_path / "other", tmp_path / "link"
    for file, times in ((name, 2), (other, 1)):
        file.touch()
        for _ in range(times):
            subprocess.run(["mount", "--bind", file, file], check=True)
    link.symlink_to(other)
    try:
        with monkeypatch.context() as without:
            without.setattr(mounts, "below", lambda top: pytest.fail("reads all mounts"))
            for path in (name, link, tmp_path / "none"):
                namespaces.remove(path)
        assert not name.exists() and not link.is_symlink()
        assert mounts.below(other) == [other]
    finally:
        mounts.clear(other)
