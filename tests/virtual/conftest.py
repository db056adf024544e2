"""Places for runs in virtual time, and the run that every other one must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from virtual_place import Place, Ran, kernel_missing


@pytest.fixture(scope="session", autouse=True)
def _kernel() -> None:
    if why := kernel_missing():
        pytest.skip(why)


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Place]:
    """Makes a fresh place of the name given."""
    return lambda name: Place(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def baseline(places: Callable[[str], Place]) -> Ran:
    """The run that every other one must equal."""
    return places("base").run()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place whose labs are gone when the test ends."""
    made = Place(tmp_path)
    yield made
    state = tmp_path / "state"
    assert not state.exists() or not list(state.iterdir())
