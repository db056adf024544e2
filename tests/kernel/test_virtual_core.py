"""Tests the choice of a core for a lab in virtual time, with core numbers that no machine has, so that no
real lab is disturbed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from orchestrator.kernel.virtual.core import apart, cores_for_a_lab

FIRST = 100_000 + 10 * os.getpid()
CORES = {FIRST, FIRST + 1}


def test_labs_side_by_side_have_cores_of_their_own_and_one_more_has_all() -> None:
    with cores_for_a_lab(CORES) as one, cores_for_a_lab(CORES) as two:
        assert (one, two) == ({FIRST}, {FIRST + 1})
        with cores_for_a_lab(CORES) as three:
            assert three == CORES


def test_a_core_is_free_again_when_its_lab_has_ended() -> None:
    with cores_for_a_lab(CORES) as one:
        pass
    with cores_for_a_lab(CORES) as again:
        assert again == one == {FIRST}


def test_only_cores_that_the_process_may_use_are_taken() -> None:
    with cores_for_a_lab([FIRST + 7]) as one, cores_for_a_lab([FIRST + 7]) as two:
        assert one == two == {FIRST + 7}
    with cores_for_a_lab() as one:
        assert one <= os.sched_getaffinity(0)


def lab_of(user: int | None) -> int:
    """Starts a process that holds a core as another lab of user `user` does, and returns its pid once it has
    the core.
    """
    said, says = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if user is not None:
                os.setuid(user)
            with cores_for_a_lab(CORES) as cores:
                os.write(says, f"{cores}".encode())
                signal.pause()
        finally:
            os._exit(1)
    os.close(says)
    assert os.read(said, 100) == f"{{{FIRST}}}".encode()
    os.close(said)
    return child


@pytest.mark.parametrize("user", [None, pytest.param(65534, marks=pytest.mark.root)])
def test_a_core_comes_back_from_a_process_that_was_killed_whoever_s_it_was(user: int | None) -> None:
    holder = lab_of(user)
    with cores_for_a_lab(CORES) as beside:
        assert beside == {FIRST + 1}
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with cores_for_a_lab(CORES) as after:
        assert after == {FIRST}


@pytest.mark.parametrize(
    ("siblings", "order"),
    [
        (("0-1", "0-1", "2-3", "2-3"), [0, 2, 1, 3]),
        (("0,2", "1,3", "0,2", "1,3"), [0, 1, 2, 3]),
        (("0", "1", "2", "3"), [0, 1, 2, 3]),
        ((), [0, 1, 2, 3]),
    ],
)
def test_threads_of_one_core_come_last(tmp_path: Path, siblings: tuple[str, ...], order: list[int]) -> None:
    for number, text in enumerate(siblings):
        path = tmp_path / f"cpu{number}" / "topology" / "thread_siblings_list"
        path.parent.mkdir(parents=True)
        path.write_text(text + "\n")
    assert apart({3, 1, 0, 2}, tmp_path) == order
    assert apart({3, 2}, tmp_path) in ([2, 3], [3, 2])
