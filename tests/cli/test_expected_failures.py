"""Tests the failures that the command line passes on unchanged, named by their classes."""

from __future__ import annotations

from importlib import import_module

import pytest

from orchestrator.cli.errors import EXPECTED, FAILED, REFUSED, UNABLE, CliError, expected
from orchestrator.kernel.protocol import KernelError, NoKernel
from orchestrator.language.problem import Problem, TopologyError


@pytest.mark.parametrize("name", EXPECTED)
def test_each_name_is_that_of_an_exception(name: str) -> None:
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(module), kind)
    assert issubclass(found, Exception) and (found.__module__, found.__qualname__) == (module, kind)


def test_text_and_status_are_those_of_the_nearest_class() -> None:
    class NarrowError(KernelError):
        pass

    problem = Problem("a.yaml", 3, "links.wan", "", "has no end", "name one")
    for error, status, text in (
        (TopologyError([problem]), REFUSED, "a.yaml:3: links.wan: has no end; name one"),
        (NoKernel("no kernel"), UNABLE, "no kernel"),
        (NarrowError("gone"), FAILED, "gone"),
        (CliError("wrong", 2), 2, "wrong"),
    ):
        known = expected(error)
        assert known is not None and (known.status, known.text) == (status, text)


def test_any_other_failure_is_no_expected_one() -> None:
    assert expected(ValueError("a fault of the program")) is None
