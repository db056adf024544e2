"""The manifest as its readers have it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from contract.manifest import KINDS, Manifest


def test_each_field_has_its_value() -> None:
    found = Manifest.of(
        {"state": "complete", "seed": 3, "phases": {"hold": [1, 2]}, "kernel": {"kind": "uml"}}
    )
    assert (found.state, found.seed, found.phases) == ("complete", 3, {"hold": [1, 2]})
    assert found.kernel.get("kind") == "uml" and not found.virtual


@pytest.mark.parametrize("found", [None, [], "text", {}, {"state": 3, "phases": None, "unknown": 1}])
def test_what_is_absent_or_of_another_kind_is_empty(found: object) -> None:
    assert Manifest.of(found) == Manifest()


def test_every_kind_is_known() -> None:
    assert {one.type.partition("[")[0].split()[0] for one in fields(Manifest)} <= KINDS.keys()
