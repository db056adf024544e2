"""Provides directories for runs in virtual time, and the run that every other one must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from virtual_place import Place, Ran, kernel_missing

# A run takes as long as the machine needs, whatever else it does, and its result is the same: limits only end
# what hangs. Two runs of 100 s on an idle core were more than pytest's 300 s beside eight other programs.
LONGEST_S = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_S))


@pytest.fixture(scope="session", autouse=True)
def _kernel() -> None:
    if why := kernel_missing():
        pytest.skip(why)


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Place]:
    """Returns a function that makes a new place of the given name."""
    return lambda name: Place(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def baseline(places: Callable[[str], Place]) -> Ran:
    """Returns the run that every other one must equal."""
    return places("base").run()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Yields a place, and asserts at the end that its labs are gone."""
    made = Place(tmp_path)
    yield made
    state = tmp_path / "state"
    assert not state.exists() or not list(state.iterdir())
