"""Tests that every file exists that the Makefile and the order of files name; a wrong name would be
ignored silently.
"""

from __future__ import annotations

import re
import sys

import pytest

from orchestrator.project import PROJECT

sys.path.append(str(PROJECT / "tests" / "order"))
from longest_first import LONGEST, rank

MAKEFILE = (PROJECT / "Makefile").read_text()


@pytest.mark.parametrize("variable", ["WAITING", "BESIDE", "ALONE", "FAST", "SLOWER"])
def test_tests_that_the_makefile_names_are_there(variable: str) -> None:
    found = re.search(rf"^{variable} := \$\(addprefix tests/,((?:.|\\\n)*?)\)$", MAKEFILE, re.MULTILINE)
    assert found is not None
    names = found[1].replace("\\", "").split()
    assert names and [name for name in names if not (PROJECT / "tests" / name).exists()] == []


def test_files_that_begin_first_are_there_and_stand_before_all_others() -> None:
    paths = [PROJECT / "tests" / name for name in LONGEST]
    assert [path for path in paths if not path.exists()] == []
    others = [PROJECT / "tests/plan/test_routes.py", PROJECT / "tests/docs/test_links.py"]
    assert sorted([*others, *paths], key=lambda path: rank(path.as_posix())) == [*paths, *others]
