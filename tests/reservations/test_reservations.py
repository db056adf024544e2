"""Tests that overlapping reservations are refused or queued, that only their own account ends them, and that
labs may not use the reserved resources of others.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.plan.build import make_plan
from orchestrator.reservations import store
from orchestrator.reservations.labs import insist_unreserved
from orchestrator.reservations.model import Amount, Reservation, ReservationError, clashes
from orchestrator.topology import load

PROJECT = Path(__file__).resolve().parents[2]
HAVE = Amount(4.0, 16_000_000_000)
HOUR = 3600 * 10**9
START = 2_000_000_000 * 10**9  # ns since 1970: in 2033
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of two accounts")


def wish(amount: Amount, start: int = START, end: int = START + HOUR, uid: int | None = None) -> Reservation:
    return Reservation("", os.geteuid() if uid is None else uid, "alice", amount, start, end, "night")


def test_what_fits_side_by_side_is_reserved_and_an_overlap_names_who_what_and_until_when(
    tmp_path: Path,
) -> None:
    first = store.add(tmp_path, wish(Amount(3.0)), HAVE, queue=False)
    store.add(tmp_path, wish(Amount(1.0, 10**9)), HAVE, queue=False)
    with pytest.raises(ReservationError) as refused:
        store.add(tmp_path, wish(Amount(1.0), START + HOUR // 2, START + 2 * HOUR), HAVE, queue=False)
    text = str(refused.value)
    assert "1 cores wanted, 4 of 4 are reserved" in text
    assert f"{first.name} of " in text
    assert "(night): 3 cores, from 2033-05-18T03:33:20Z until 2033-05-18T04:33:20Z" in text
    assert "free from 2033-05-18T04:33:20Z: --queue" in text
    assert len(store.read(tmp_path)[0]) == 2


def test_a_queued_reservation_takes_the_first_time_at_which_it_fits_whole(tmp_path: Path) -> None:
    store.add(tmp_path, wish(Amount(4.0)), HAVE, queue=False)
    store.add(tmp_path, wish(Amount(4.0), START + HOUR * 3 // 2, START + 2 * HOUR), HAVE, queue=False)
    long = store.add(tmp_path, wish(Amount(1.0)), HAVE, queue=True)
    assert (long.start_ns, long.end_ns) == (START + 2 * HOUR, START + 3 * HOUR)  # the gap is half an hour
    short = store.add(tmp_path, wish(Amount(4.0), START, START + HOUR // 2), HAVE, queue=True)
    assert short.start_ns == START + HOUR


def test_an_amount_that_the_machine_never_has_is_refused_even_in_the_queue(tmp_path: Path) -> None:
    with pytest.raises(ReservationError, match="this machine never has it: 5 cores wanted, 0 of 4"):
        store.add(tmp_path, wish(Amount(5.0)), HAVE, queue=True)
    assert store.read(tmp_path) == ([], [])


def test_a_nic_has_one_account_at_a_time_and_ends_do_not_overlap_starts() -> None:
    held = replace(wish(Amount(nics=("0000:01:00.0",))), name="r1")
    assert clashes(wish(Amount(nics=("0000:01:00.0",))), HAVE, [held])[0] == "NIC 0000:01:00.0 is reserved"
    assert clashes(wish(Amount(nics=("0000:01:00.1",))), HAVE, [held]) == []
    assert clashes(wish(held.amount, START + HOUR, START + 2 * HOUR), HAVE, [held]) == []


def test_ended_reservations_and_parts_of_a_killed_addition_go_with_the_next_one(tmp_path: Path) -> None:
    old = store.add(tmp_path, wish(Amount(4.0), HOUR, 2 * HOUR), HAVE, queue=False)
    part = tmp_path / f".{os.geteuid()}.r000000.part"
    part.write_text("{")
    new = store.add(tmp_path, wish(Amount(4.0)), HAVE, queue=False)
    assert [path.name for path in tmp_path.iterdir()] == [f"{new.name}.json"]
    assert old.name != new.name


def test_the_lock_of_a_killed_process_is_free_and_a_held_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import fcntl, os, time\n"
        f"fcntl.flock(os.open({str(tmp_path)!r}, os.O_RDONLY), fcntl.LOCK_EX)\n"
        "print(1, flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        monkeypatch.setattr(store, "LOCK_S", 0.1)
        with pytest.raises(ReservationError, match=r"has held the lock for 0\.1 s; try again"):
            store.add(tmp_path, wish(Amount(1.0)), HAVE, queue=False)
        holder.send_signal(signal.SIGKILL)
    assert store.add(tmp_path, wish(Amount(1.0)), HAVE, queue=False).name
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"amount": 1}', "[" * 4000, "x" * 5000])
def test_a_file_that_is_no_reservation_is_named_and_hides_no_other(tmp_path: Path, text: str) -> None:
    kept = store.add(tmp_path, wish(Amount(1.0)), HAVE, queue=False)
    (tmp_path / "bad.json").write_text(text)
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.json")
    found, wrong = store.read(tmp_path)
    assert [one.name for one in found] == [kept.name]
    assert [line.partition(":")[0] for line in wrong] == [
        str(tmp_path / name) for name in ("bad.json", "link.json", "pipe.json")
    ]


def test_a_note_with_control_characters_is_no_reservation(tmp_path: Path) -> None:
    made = store.add(tmp_path, wish(Amount(1.0)), HAVE, queue=False)
    path = tmp_path / f"{made.name}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"note": "\x1b[2J"}))
    assert store.read(tmp_path)[0] == []


@ROOT
def test_the_owner_of_the_file_has_the_reservation_and_only_he_ends_it(tmp_path: Path) -> None:
    theirs = store.add(tmp_path, wish(Amount(1.0), uid=65534), HAVE, queue=False)
    assert store.read(tmp_path)[0][0].account == store.name_of(65534)
    with pytest.raises(ReservationError, match=f"only {store.name_of(65534)} ends it"):
        store.end(tmp_path, theirs.name, os.geteuid())
    assert store.end(tmp_path, theirs.name, 65534) == Reservation(
        theirs.name, 65534, store.name_of(65534), Amount(1.0), START, START + HOUR, "night"
    )
    with pytest.raises(ReservationError, match="no such reservation"):
        store.end(tmp_path, theirs.name, 65534)


@ROOT
def test_a_lab_is_refused_what_another_account_has_now_and_has_its_own(tmp_path: Path) -> None:
    plan = make_plan(load(PROJECT / "topologies/pair.yaml", {}), None, None)
    now, have = time.time_ns(), store.machine()
    whole = Amount(have.cores)
    store.add(tmp_path, wish(whole, now + HOUR, now + 2 * HOUR, 65534), have, queue=False)
    insist_unreserved(plan, tmp_path)  # the other account's reservation begins in an hour
    own = store.add(tmp_path, wish(whole, now, now + HOUR), have, queue=False)
    insist_unreserved(plan, tmp_path)
    store.end(tmp_path, own.name, os.geteuid())
    theirs = store.add(tmp_path, wish(whole, now, now + HOUR, 65534), have, queue=False)
    with pytest.raises(ReservationError) as refused:
        insist_unreserved(plan, tmp_path)
    assert str(refused.value).startswith(f"lab pair: 1 cores wanted, {have.cores:g} of {have.cores:g} are")
    assert f"{theirs.name} of {store.name_of(65534)} (night)" in str(refused.value)
    assert "vnet down" not in str(refused.value)


@ROOT
def test_two_accounts_at_the_command_line(tmp_path: Path) -> None:
    kept = tmp_path / "reservations"
    kept.mkdir()
    kept.chmod(0o1777)

    def vnet(*argv: str, uid: str = "") -> subprocess.CompletedProcess[str]:
        env = os.environ | {"VNET_RESERVATIONS": str(kept), "VNET_STATE_DIR": str(tmp_path / "state")}
        env |= {"PYTHONPATH": str(PROJECT), "VNET_AGENT": "/bin/true", "COLUMNS": "150", "SUDO_UID": uid}
        command = [sys.executable, "-m", "orchestrator.cli.main", *argv]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    cores = f"{store.machine().cores:g}"
    made = json.loads(vnet("reserve", "add", "--cores", cores, "--for", "1 h", "--json", uid="65534").stdout)
    assert (made["account"], made["state"]) == (store.name_of(65534), "now")
    assert f"reserved: {made['name']} of {store.name_of(65534)}: {cores} cores" in vnet("ls").stderr
    assert json.loads(vnet("ls", "--json").stdout) == []
    refused = vnet("run", str(PROJECT / "topologies/pair.yaml"))
    assert refused.returncode == 4, refused.stderr
    assert made["name"] in refused.stderr
    assert not (tmp_path / "results").exists()
    assert vnet("reserve", "add", "--cores", "1", "--for", "1 h").returncode == 3
    queued = json.loads(vnet("reserve", "add", "--cores", "1", "--for", "1 h", "--queue", "--json").stdout)
    assert (queued["state"], queued["from"]) == ("later", made["until"])
    assert vnet("reserve", "end", made["name"]).returncode == 3
    assert vnet("reserve", "end", made["name"], uid="65534").returncode == 0
    assert [one["name"] for one in json.loads(vnet("reserve", "ls", "--json").stdout)] == [queued["name"]]
    assert vnet("reserve", "add", "--for", "1 h").returncode == 2
    absent = vnet("reserve", "add", "--nic", "nosuch0", "--for", "1 h")
    assert (absent.returncode, "no such NIC" in absent.stderr) == (3, True)
