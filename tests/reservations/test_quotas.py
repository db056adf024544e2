"""Tests that an account's quota limits its reservations and its labs, and that the labs of other accounts are
seen and not changed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.lab.state import start_ticks
from orchestrator.language.problem import TopologyError
from orchestrator.plan.build import make_plan
from orchestrator.reservations import files, quotas, running, store
from orchestrator.reservations.labs import admit
from orchestrator.reservations.model import Amount, Reservation, ReservationError
from orchestrator.topology import load

PROJECT = Path(__file__).resolve().parents[2]
HAVE = Amount(16.0, 64_000_000_000)
HOUR = 3600 * 10**9
START = 2_000_000_000 * 10**9  # ns since 1970: in 2033
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of two accounts")


def wish(amount: Amount, start: int = START, end: int = START + HOUR) -> Reservation:
    return Reservation("", os.geteuid(), "alice", amount, start, end)


def test_reservations_of_one_account_stay_within_its_quota_at_every_moment(tmp_path: Path) -> None:
    quota = quotas.Quota("alice", "quotas.yaml", cores=4.0, nics=1)
    first = store.add(tmp_path, wish(Amount(3.0)), HAVE, False, quota)
    store.add(tmp_path, wish(Amount(4.0), START + 2 * HOUR, START + 3 * HOUR), HAVE, False, quota)
    with pytest.raises(ReservationError) as refused:
        store.add(tmp_path, wish(Amount(2.0), START, START + HOUR), HAVE, False, quota)
    text = str(refused.value)
    assert "quota of alice (quotas.yaml): 2 cores wanted, 3 of 4 are taken" in text
    assert first.name in text
    assert "free from 2033-05-18T04:33:20Z: --queue" in text
    queued = store.add(tmp_path, wish(Amount(2.0), START, START + 2 * HOUR), HAVE, True, quota)
    # the gap between the two is one hour, and the reservation needs two
    assert queued.start_ns == START + 3 * HOUR
    with pytest.raises(
        ReservationError, match=r"5 cores wanted, 0 of 4 are taken; reserve less, or ask root"
    ):
        store.add(tmp_path, wish(Amount(5.0)), HAVE, True, quota)
    with pytest.raises(ReservationError, match="2 NICs wanted, 0 of 1"):
        store.add(tmp_path, wish(Amount(nics=("a", "b"))), HAVE, True, quota)


def test_quotas_are_by_account_with_a_default_that_is_not_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "quotas.yaml"
    monkeypatch.setenv("VNET_QUOTAS", str(file))
    assert quotas.of(1000, "alice") == quotas.Quota("alice", str(file))  # the account has no file of quotas
    file.write_text('default: {cores: 2}\naccounts:\n  alice: {cores: 8, memory: "16 GB", labs: 0}\n')
    assert quotas.of(1000, "alice") == quotas.Quota("alice", str(file), 8.0, 16 * 10**9, None, 0)
    assert quotas.of(1001, "bob").cores == 2.0
    assert quotas.of(0, "root").cores is None


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("default: {cores: 2}\naccounts:\n  alice: {core: 8}\n", 3, "core"),
        ("default: {memory: 16}\n", 1, "memory"),
        ("accounts:\n  alice: {cores: -1}\n", 2, "cores"),
        ("[]\n", 1, ""),
        ("default: {cores: 2\n", 2, ""),
    ],
)
def test_wrong_quotas_are_told_with_their_line_and_admit_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, told: str
) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(text)
    monkeypatch.setenv("VNET_QUOTAS", str(file))
    with pytest.raises(TopologyError) as refused:
        quotas.of(1000, "alice")
    assert any(p.file == str(file) and p.line == line and told in p.path for p in refused.value.problems)
    plan = make_plan(load(PROJECT / "topologies/pair.yaml", {}), None, None)
    with pytest.raises(TopologyError):
        admit(plan, tmp_path / "state", tmp_path)
    assert running.every(tmp_path) == []


@ROOT
def test_a_usual_file_that_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text("default: {cores: 2}\n")
    monkeypatch.delenv("VNET_QUOTAS", raising=False)
    monkeypatch.setattr(quotas, "USUAL", file)
    assert quotas.of(1000, "alice").cores == 2.0
    file.chmod(0o666)
    with pytest.raises(TopologyError, match="can be written by others than root"):
        quotas.of(1000, "alice")
    file.chmod(0o644)
    os.chown(file, 65534, -1)
    with pytest.raises(TopologyError, match="can be written by others than root"):
        quotas.of(1000, "alice")


def test_a_second_lab_over_the_quota_is_refused_and_names_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(load(PROJECT / "topologies/pair.yaml", {}), None, None)
    me = store.name_of(store.account())
    monkeypatch.setenv("VNET_QUOTAS", str(tmp_path / "quotas.yaml"))
    (tmp_path / "quotas.yaml").write_text(f"accounts: {{{me}: {{labs: 1}}}}\n")
    admit(plan, tmp_path / "one", tmp_path)
    with pytest.raises(ReservationError) as refused:
        admit(plan, tmp_path / "two", tmp_path)
    assert f"quota of {me}" in str(refused.value)
    assert "1 of 1 labs run" in str(refused.value)
    assert f"lab pair of {me}: 1 cores" in str(refused.value)
    running.leave("pair", tmp_path / "one", tmp_path)
    admit(plan, tmp_path / "two", tmp_path)


def test_the_record_of_a_lab_whose_process_was_killed_counts_for_nothing_and_goes(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        ticks = start_ticks(process.pid)
        record = {
            "lab": "one", "amount": {"cores": 1.0, "memory_bytes": 1, "nics": []}, "pid": process.pid,
            "start_ticks": ticks, "since_ns": 1, "state_dir": "/run/vnet/one",
        }  # fmt: skip
        files.write(tmp_path / "one.1.lab", os.geteuid(), record)
        files.write(tmp_path / "two.1.lab", os.geteuid(), {**record, "lab": "\x1b[2J"})
        assert [one.lab for one in running.every(tmp_path)] == ["one"]
        process.send_signal(signal.SIGKILL)
    assert running.every(tmp_path) == []
    assert not (tmp_path / "one.1.lab").exists()


@ROOT
def test_a_lab_of_another_account_is_seen_and_not_touched(tmp_path: Path) -> None:
    kept = tmp_path / "reservations"
    kept.mkdir()
    kept.chmod(0o1777)
    pair = tmp_path / "pair.yaml"
    pair.write_text(
        "name: pair\nsegments: {lan: {subnet: 10.9.0.0/24}}\nnodes: {a: {segment: lan}, b: {segment: lan}}\n"
    )
    quota = tmp_path / "quotas.yaml"
    quota.write_text("default: {labs: 1}\n")

    def vnet(*argv: str, uid: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"VNET_RESERVATIONS": str(kept), "VNET_STATE_DIR": str(tmp_path / "state")}
        env |= {"PYTHONPATH": str(PROJECT), "COLUMNS": "150", "SUDO_UID": uid, "VNET_QUOTAS": str(quota)}
        command = [sys.executable, "-m", "orchestrator.cli.main", *argv]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    theirs = store.name_of(65534)
    up = vnet("up", str(pair), "--kernel", "host", uid="65534")
    assert up.returncode == 0, up.stderr
    try:
        listed = vnet("ls", uid="1000")
        assert f"another account: lab pair of {theirs}: 1 cores, " in listed.stderr
        for command in (
            ("down", "pair"),
            ("exec", "pair", "a", "--", "true"),
            ("link", "pair", "a", "--down"),
        ):
            refused = vnet(*command, uid="1000")
            assert refused.returncode != 0
            assert f"lab pair of {theirs}" in refused.stderr, refused.stderr
        assert vnet("down", "--all", uid="1000").returncode == 0
        assert vnet("inspect", "pair", uid="1000").returncode == 0  # the lab still runs
        again = vnet("run", str(pair), uid="1000")
        assert f"runs already as {theirs}'s; wait" in again.stderr
        assert "vnet down" not in again.stderr
        second = vnet("run", str(pair), "--lab", "other", uid="65534")
        assert (second.returncode, "1 of 1 labs run" in second.stderr) == (4, True), second.stderr
        assert vnet("inspect", "pair", uid="65534").returncode == 0
    finally:
        ended = vnet("down", "pair", uid="65534")
    assert ended.returncode == 0, ended.stderr
    assert list(kept.iterdir()) == []


@ROOT
def test_a_forged_record_takes_nobodys_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNET_RESERVATIONS", str(tmp_path))
    monkeypatch.setenv("VNET_STATE_DIR", "/run/state")
    monkeypatch.setenv("SUDO_UID", "1000")
    record = {
        "lab": "one", "amount": {"cores": 1.0, "memory_bytes": 1, "nics": []}, "pid": os.getpid(),
        "start_ticks": start_ticks(os.getpid()), "since_ns": 1, "state_dir": "/run/state/one",
    }  # fmt: skip
    files.write(tmp_path / "one.1.lab", 65534, record)
    found = running.of_another("one")
    assert found is not None and found.uid == 65534
    files.write(tmp_path / "one.2.lab", 1000, record)
    assert running.of_another("one") is None
    assert running.of_another("two") is None
