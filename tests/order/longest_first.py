"""A pytest plugin for files that run side by side: those that take longest begin first.

Otherwise one process would still run a long file when the others have nothing left.
"""

from __future__ import annotations

import pytest

# Below tests/, the longest first (CPU time of a whole `make test`).
LONGEST = (
    "security/test_escapes.py",
    "chaos/test_faults.py",
    "goldens/test_goldens.py",
    "vm/test_vm_labs.py",
    "virtual/test_same_bytes.py",
    "spread/test_spread.py",
    "images/test_images_boot.py",
    "remote/test_remote_labs.py",
)


def rank(path: str) -> int:
    """The place of a file among the longest; after all of them if it is none."""
    return next((at for at, name in enumerate(LONGEST) if path.endswith(f"/tests/{name}")), len(LONGEST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank(item.path.as_posix()))  # stable: a file's tests keep their order
