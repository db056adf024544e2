"""A command line whose labs' state is in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine


@pytest.fixture
def vnet(tmp_path: Path) -> Iterator[CommandLine]:
    """A command line; afterwards nothing may be left of its labs."""
    line = CommandLine(tmp_path, Path(f"{tmp_path}/s"))
    yield line
    for lab in line.labs():
        line("down", lab)
    assert not line.labs()
