"""Tests which runs and campaigns `vnet results` lists, removes and archives."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from contract import seal
from orchestrator.campaign import archiving, held
from orchestrator.cli import results
from orchestrator.lab.dead import note_owner

DAY = 86400


def run(where: Path, state: str = "complete", verdicts: dict[str, Any] | None = None, **more: Any) -> Path:
    """Makes a run directory that is `days` old and has a capture of `capture_bytes`."""
    days, capture = more.pop("days", 0), more.pop("capture_bytes", 0)
    (where / "pcap").mkdir(parents=True)
    (where / "raw").mkdir()
    (where / "pcap" / "wan.pcap").write_bytes(os.urandom(capture))
    (where / "manifest.json").write_text(json.dumps({"state": state, "suspect": state != "complete", **more}))
    if verdicts is not None:
        text = json.dumps({"format": 1, "verdicts": [], "counts": verdicts})
        (where / "verdicts.json").write_text(text)
    os.utime(where / "manifest.json", (time.time() - days * DAY,) * 2)
    return where


@pytest.fixture
def top(tmp_path: Path) -> Path:
    made = tmp_path / "results"
    run(made / "pair" / "good", verdicts={"proof": {"holds": 3}}, days=40)
    run(made / "pair" / "bad", verdicts={"proof": {"holds": 3, "fails": 1}}, days=2, capture_bytes=3_000_000)
    run(made / "pair" / "open", verdicts={"guarantee": {"cannot tell": 1, "holds": 9}}, days=1)
    run(made / "pair" / "odd", suspect=True, verdicts={"proof": {"holds": 3}})
    run(made / "field" / "cut", state="interrupted", days=100)
    run(made / "field" / "new", verdicts={})
    study = made / "study"
    run(study / "runs" / "a.r1", verdicts={"proof": {"holds": 1}}, days=50)
    run(study / "runs" / "a.r2", verdicts={"proof": {"fails": 1}}, days=50)
    (study / "campaign.json").write_text("{}")
    os.utime(study / "campaign.json", (time.time() - 50 * DAY,) * 2)
    return made


def names(top: Path, **choice: Any) -> dict[str, str]:
    return {h.path.name: h.word for h in held.chosen(top, held.Choice(**choice))}


def test_each_entry_has_the_worst_word_that_is_in_it(top: Path) -> None:
    assert names(top) == {
        "good": "holds", "bad": "fails", "open": "cannot tell", "odd": "suspect", "cut": "interrupted",
        "new": "no verdict", "study": "fails",
    }  # fmt: skip
    first, *_ = held.chosen(top, held.Choice())
    assert first.path.name == "bad" and first.captures_bytes >= 3_000_000, "the largest first"
    (study,) = (h for h in held.chosen(top, held.Choice()) if h.kind == "campaign")
    assert study.runs == 2 and 49 < study.age_s(time.time()) / DAY < 51
    assert results.WORDS == held.WORDS


def test_a_run_that_was_changed_after_its_seal_is_suspect(top: Path) -> None:
    good = top / "pair" / "good"
    (good / "messages.parquet").write_bytes(b"as it was")
    seal.seal(good)
    assert names(top)["good"] == "holds"
    (good / "messages.parquet").write_bytes(b"as somebody wants it")
    later = time.time() + 1
    os.utime(good / "messages.parquet", (later, later))
    assert names(top)["good"] == "suspect"
    (good / "messages.parquet").write_bytes(b"as it was")
    os.utime(good / "messages.parquet", (later, later))
    assert names(top)["good"] == "holds", "a copy whose times are new"
    whole = json.loads((good / "manifest.json").read_text()) | {"sealed": True}
    (good / "manifest.json").write_text(json.dumps(whole))
    (good / "seal.json").unlink()
    assert names(top)["good"] == "suspect", "the seal was taken away"


def test_all_conditions_must_hold(top: Path) -> None:
    assert set(names(top, older_s=30 * DAY)) == {"good", "cut", "study"}
    assert set(names(top, older_s=30 * DAY, words=("fails", "interrupted"))) == {"cut", "study"}
    assert set(names(top, larger_bytes=2_000_000)) == {"bad"}
    assert names(top, older_s=30 * DAY, larger_bytes=2_000_000) == {}


def vnet(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(results.results_command, [str(a) for a in arguments], standalone_mode=False)
    if done.exception is not None:
        return getattr(done.exception, "status", 2), str(done.exception)
    return done.return_value or 0, done.output


def test_prune_shows_first_and_removes_what_was_chosen_alone(top: Path) -> None:
    status, said = vnet("prune", top, "--older", "30 d", "--verdict", "interrupted")
    assert status == 0 and "would remove 1 entry" in said and (top / "field" / "cut").is_dir()
    before = {p.name for p in top.rglob("*") if p.is_dir()}
    status, said = vnet("prune", top, "--older", "30 d", "--verdict", "interrupted", "--yes")
    assert status == 0 and "removed: 1 entry" in said
    assert before - {p.name for p in top.rglob("*") if p.is_dir()} == {"cut"}
    status, said = vnet("prune", top, "--verdict", "fails", "--yes")
    assert status == 0 and not (top / "study").exists() and top.is_dir(), "a campaign goes as a whole"


@pytest.mark.parametrize("what", ["prune", "archive"])
def test_nothing_goes_without_a_condition(top: Path, what: str) -> None:
    more = ["--to", top / "x"] if what == "archive" else []
    status, said = vnet(what, top, "--yes", *more)
    assert status != 0 and "no condition: give --older, --larger or --verdict" in said
    assert len(held.chosen(top, held.Choice())) == 7


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [("--older", "30", "no unit"), ("--older", "-1 d", "negative"), ("--larger", "big", "")],
)
def test_a_condition_that_cannot_be_read_is_refused(top: Path, option: str, value: str, rule: str) -> None:
    status, said = vnet("prune", top, option, value, "--yes")
    assert status != 0 and rule in said
    assert len(held.chosen(top, held.Choice())) == 7


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    status, said = vnet("ls", tmp_path / "none")
    assert status != 0 and f"{tmp_path}/none: no such directory" in said


def test_what_runs_is_not_touched(top: Path) -> None:
    here = run(top / "pair" / "now", state="running", days=99)
    note_owner(here, os.getpid())
    elsewhere = run(top / "pair" / "there", state="running", days=99)
    (elsewhere / "raw" / "owner.json").write_text(
        json.dumps({"host": socket.gethostname() + "x", "boot": "", "pid": 1, "start_ticks": 1})
    )
    with (top / "study" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert {n for n, w in names(top).items() if w == "running"} == {"now", "there", "study"}
        status, said = vnet("prune", top, "--verdict", "running", "--yes")
    assert status == 1 and said.count("is running; wait") == 3
    assert here.is_dir() and elsewhere.is_dir() and (top / "study").is_dir()


def test_a_run_whose_lab_died_is_interrupted_and_can_go(top: Path) -> None:
    dead = run(top / "pair" / "dead", state="running")
    (dead / "raw" / "owner.json").write_text(
        json.dumps({"host": socket.gethostname(), "boot": "another", "pid": 1, "start_ticks": 1})
    )
    assert names(top)["dead"] == "interrupted"


def test_an_archive_holds_every_file_and_replaces_the_directory(top: Path, tmp_path: Path) -> None:
    files = {
        str(p.relative_to(top / "pair")): p.read_bytes() for p in (top / "pair/bad").rglob("*") if p.is_file()
    }
    status, said = vnet("archive", top, "--larger", "2 MB", "--to", tmp_path / "kept", "--yes")
    assert status == 0 and f"archived to {tmp_path}/kept: 1 entry" in said
    assert not (top / "pair" / "bad").exists() and (top / "pair" / "good").is_dir()
    with tarfile.open(tmp_path / "kept" / "pair.bad.tar.gz") as tar:
        tar.extractall(tmp_path / "back")
    back = {
        str(p.relative_to(tmp_path / "back")): p.read_bytes()
        for p in (tmp_path / "back").rglob("*")
        if p.is_file()
    }
    assert back == files and list((tmp_path / "kept").glob("*.part")) == []


def test_an_archive_that_cannot_be_written_leaves_the_run(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(archiving.tarfile.TarFile, "add", full)
        with pytest.raises(
            held.EntryError, match=r"cannot be written .No space left on device.*the run is as it was"
        ):
            archiving.archive(one, tmp_path / "kept")
    with monkeypatch.context() as patched:
        patched.setattr(archiving, "_compare", lambda *_: (_ for _ in ()).throw(held.EntryError("differs")))
        with pytest.raises(held.EntryError, match="differs"):
            archiving.archive(one, tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == [] and one.path.is_dir()
    (tmp_path / "kept" / "pair.bad.tar.gz").touch()
    with pytest.raises(held.EntryError, match="is there already"):
        archiving.archive(one, tmp_path / "kept")
    with pytest.raises(held.EntryError, match="which is removed"):
        archiving.archive(one, one.path / "inside")
    assert one.path.is_dir()


def test_a_file_that_changes_while_it_is_packed_is_noticed(top: Path, tmp_path: Path) -> None:
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))
    part = tmp_path / "x.part"
    with part.open("wb") as file:
        written = archiving._write(one.path, file)
    name = next(n for n in written if n.endswith("wan.pcap"))
    with pytest.raises(held.EntryError, match=r"wan.pcap differs in the archive from the file \(of 1\)"):
        archiving._compare(one.path, {**written, name: "another"}, part)


def packed_while(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Makes `archive` call `act` after it has written the archive and before it compares the archive with the
    run.
    """
    compare = archiving._compare

    def acting(directory: Path, written: dict[str, str], part: Path) -> None:
        act()
        compare(directory, written, part)

    monkeypatch.setattr(archiving, "_compare", acting)


@pytest.mark.parametrize("what", ["a page that is written meanwhile", "a link", "a file that goes"])
def test_what_comes_or_goes_after_packing_is_not_lost(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))
    new = one.path / "report.html"
    acts = {
        "a page that is written meanwhile": lambda: new.write_text("page"),
        "a link": lambda: new.symlink_to("manifest.json"),
        "a file that goes": lambda: (one.path / "pcap" / "wan.pcap").unlink(),
    }
    packed_while(monkeypatch, acts[what])
    with pytest.raises(held.EntryError, match=r"(report.html|wan.pcap) differs from what was packed"):
        archiving.archive(one, tmp_path / "kept")
    assert one.path.is_dir() and list((tmp_path / "kept").iterdir()) == []


def test_ctrl_c_leaves_the_run_and_no_unfinished_archive(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))

    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(archiving, "_compare", pressed)
    with pytest.raises(KeyboardInterrupt):
        archiving.archive(one, tmp_path / "kept")
    assert one.path.is_dir() and list((tmp_path / "kept").iterdir()) == []


def test_two_archives_of_one_run_do_not_meet(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a second archiving of the same run reports that the first is under way, and leaves the first
    one's file.
    """
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))
    said: list[str] = []

    def again() -> None:
        with pytest.raises(held.EntryError) as raised:
            archiving.archive(one, tmp_path / "kept")
        said.append(str(raised.value))

    packed_while(monkeypatch, again)
    made = archiving.archive(one, tmp_path / "kept")
    assert "another process is writing it" in said[0]
    assert not one.path.exists() and [p.name for p in (tmp_path / "kept").iterdir()] == [made.name]
    with tarfile.open(made) as tar:
        assert "bad/manifest.json" in tar.getnames()


def test_an_archive_that_came_meanwhile_is_not_replaced(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))
    locked, made = archiving._locked, tmp_path / "kept" / "pair.bad.tar.gz"

    def late(part: Path) -> Any:
        made.write_text("of another process")
        return locked(part)

    monkeypatch.setattr(archiving, "_locked", late)
    with pytest.raises(held.EntryError, match="is there already"):
        archiving.archive(one, tmp_path / "kept")
    assert made.read_text() == "of another process" and one.path.is_dir()
    assert list((tmp_path / "kept").iterdir()) == [made]


def test_what_a_killed_archive_left_is_replaced(top: Path, tmp_path: Path) -> None:
    (one,) = held.chosen(top, held.Choice(larger_bytes=2_000_000))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "pair.bad.tar.gz.part").write_bytes(os.urandom(100_000))
    made = archiving.archive(one, tmp_path / "kept")
    with tarfile.open(made) as tar:
        assert "bad/pcap/wan.pcap" in tar.getnames()
    assert [p.name for p in (tmp_path / "kept").iterdir()] == [made.name]


def test_expectations_from_before_the_last_cell_cannot_be_told(tmp_path: Path) -> None:
    study = tmp_path / "study"
    run(study / "runs" / "a.r1", verdicts={"proof": {"holds": 1}})
    (study / "campaign.json").write_text("{}")
    judged = {"format": 1, "verdicts": [], "counts": {"expectation": {"holds": 2}}}
    (study / "verdicts.json").write_text(json.dumps(judged))
    (study / "cells.jsonl").write_text("")
    for at, word in ((time.time() - 60, "holds"), (time.time() + 60, "cannot tell")):
        os.utime(study / "cells.jsonl", (at, at))
        assert names(tmp_path) == {"study": word}
