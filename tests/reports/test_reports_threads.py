"""Tests the error on a machine that allows no further threads: it comes before a library needs threads, and
threads that were started end.
"""

from __future__ import annotations

import threading

import pytest

from reports import insist_on_threads


def test_threads_that_can_be_made_end_again() -> None:
    before = threading.active_count()
    insist_on_threads()
    assert threading.active_count() == before


def test_too_few_are_told_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    before, start, begun = threading.active_count(), threading.Thread.start, []

    def third_fails(thread: threading.Thread) -> None:
        if len(begun) == 2:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", third_fails)
    with pytest.raises(RuntimeError, match="start new thread"):
        insist_on_threads()
    assert threading.active_count() == before and not any(thread.is_alive() for thread in begun)
