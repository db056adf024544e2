"""Tests which commits make CI test in the lived-in root, with real histories in repositories of their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("touched.sh")
NOT_TOUCHED, UNKNOWN = 1, 3
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(place: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main"]
    argv = ["git", *who, "-C", str(place), *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def commit(place: Path, *paths: str) -> str:
    for path in paths:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        with (place / path).open("a") as file:
            file.write("one more line\n")
    git(place, "add", "--all")
    git(place, "commit", "--allow-empty", "-m", "more")
    return git(place, "rev-parse", "HEAD")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Returns a repository with one commit and the script."""
    made = tmp_path / "repository"
    (made / "tests/bare").mkdir(parents=True)
    git(made, "init")
    shutil.copy(SCRIPT, made / "tests/bare")
    commit(made, "README.md")
    return made


def asked(place: Path, *seen: str) -> tuple[int, str]:
    argv = [str(place / "tests/bare/touched.sh"), *seen]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_the_last_commit_decides(place: Path) -> None:
    assert asked(place)[0] == UNKNOWN  # the commit has no parent
    commit(place, "playbooks/host.yml", "docs/a.md")
    assert asked(place) == (0, f"changed since {git(place, 'rev-parse', 'HEAD^')[:12]}: playbooks/host.yml\n")
    commit(place, "docs/a.md")
    status, said = asked(place)
    assert status == NOT_TOUCHED and said.startswith("nothing of tests/goldens")


def test_a_merge_brings_all_commits_of_its_branch(place: Path) -> None:
    git(place, "checkout", "-b", "work")
    commit(place, "tests/goldens/goldens.json")
    commit(place, "docs/a.md")
    git(place, "checkout", "main")
    commit(place, "docs/b.md")
    git(place, "merge", "--no-ff", "work")
    assert asked(place)[0] == 0


def test_all_commits_since_the_one_that_was_judged_last(place: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.write_text(commit(place, "docs/a.md") + "\n")
    for number in range(9):
        commit(place, f"tests/doctor/{number}.py")
    commit(place, "docs/a.md")
    assert asked(place)[0] == NOT_TOUCHED
    status, said = asked(place, str(seen))
    assert status == 0 and said.endswith("tests/doctor/4.py ...\n")
    seen.write_text(git(place, "rev-parse", "HEAD") + "\n")
    assert asked(place, str(seen))[0] == NOT_TOUCHED


def test_a_commit_that_is_not_in_the_history_does_not_count(place: Path, tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("0" * 40 + "\n")
    commit(place, "docs/a.md")
    assert asked(place, str(tmp_path / "seen"))[0] == NOT_TOUCHED


def test_a_clone_of_one_commit_does_not_tell(place: Path, tmp_path: Path) -> None:
    commit(place, "tests/goldens/goldens.json")
    git(tmp_path, "clone", "--depth", "1", place.as_uri(), "shallow")
    status, said = asked(tmp_path / "shallow")
    assert status == UNKNOWN and "does not tell" in said
