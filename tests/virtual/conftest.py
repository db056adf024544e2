"""Provides directories for runs in virtual time, and the run with which all others must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from virtual_place import Place, Ran, kernel_missing

# A run in virtual time takes as long as the machine needs and gives the same result, so time limits only end
# runs that hang. Two runs of 100 s on an idle core took more than pytest's 300 s beside eight other programs.
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
    """Returns the run with which every other one must agree byte for byte."""
    return places("base").run()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Yields a place, and asserts at the end that its labs are gone."""
    made = Place(tmp_path)
    yield made
    state = tmp_path / "state"
    assert not state.exists() or not list(state.iterdir())
