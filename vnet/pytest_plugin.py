"""Extends pytest with labs: `@pytest.mark.vnet("pair.yaml")` brings a lab up, and a test gets it as the
fixture `lab`.

Every lab has a name of its own, so that parallel workers (pytest-xdist) do not collide. The run directory of
a failed test is kept.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from .labs import Lab, LabError, Spec, UnableError, spec_of
from .topology import Topology

MARK = (
    "vnet(topology, scope='function', parameters={}, kernel='auto', time='real', seed=None, scenario=False): "
    "the lab of the fixture `lab`: a file beside the test, or a vnet.Topology"
)
_numbers = itertools.count(1)
Open = Callable[[Any, dict[str, Any]], Lab]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the option `--vnet-kept DIR`, the directory for run directories of failed tests."""
    parser.getgroup("vnet").addoption(
        "--vnet-kept",
        default="vnet-kept",
        metavar="DIR",
        help="Directory for the run directories of failed tests (default: vnet-kept, below pytest's root).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker `vnet` with its arguments."""
    config.addinivalue_line("markers", MARK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Records a failed test in its lab, so that the run directory is kept, and adds the place of the copy to
    the report.
    """
    report = yield
    if report.failed:
        lab = getattr(item, "funcargs", {}).get("lab")
        if isinstance(lab, Lab):
            lab.failed_in.append(item.nodeid)
            report.sections.append(("vnet", f"{lab}\nrun directory, kept: {_kept(item.config, lab)}"))
    return report


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Yields the running lab of the marker `vnet`; with `scope="module"` the tests of a module share it.
    UsageError if the marker is missing or wrong; the test is skipped if this machine cannot carry the lab.
    """
    mark = request.node.get_closest_marker("vnet")
    if mark is None or len(mark.args) != 1:
        raise pytest.UsageError("fixture `lab`: mark the test, @pytest.mark.vnet(TOPOLOGY)")
    options = dict(mark.kwargs)
    scope = options.pop("scope", "function")
    if scope not in ("function", "module"):
        raise pytest.UsageError(f"marker vnet: scope={scope!r}: write function or module")
    opened: Open = request.getfixturevalue(f"_vnet_{scope}_labs")
    yield opened(mark.args[0], options)


@pytest.fixture
def _vnet_function_labs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    yield from _labs(request, tmp_path)


@pytest.fixture(scope="module")
def _vnet_module_labs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    yield from _labs(request, tmp_path_factory.mktemp("labs"))


def _labs(request: pytest.FixtureRequest, directory: Path) -> Iterator[Open]:
    """Yields a function that brings up one lab for each different Spec and returns it.

    At the end it takes all labs down and keeps the run directories of failed tests; then it raises the first
    LabError of a take-down.
    """
    made: dict[Spec, Lab] = {}

    def opened(topology: Any, options: dict[str, Any]) -> Lab:
        spec = _spec(topology, options, request.path.parent, directory)
        if spec not in made:
            lab = Lab(spec, f"t{os.getpid()}-{next(_numbers)}", directory / "results")
            made[spec] = lab
            _bring_up(lab, request.config)
        return made[spec]

    try:
        yield opened
    finally:
        errors = [error for lab in made.values() if (error := _end(request.config, lab))]
        if errors:
            raise errors[0]


def _bring_up(lab: Lab, config: pytest.Config) -> None:
    try:
        lab.bring_up()
    except UnableError as error:
        pytest.skip(f"vnet: this machine cannot carry the lab: {error}")
    except LabError as error:
        lab.failed_in.append("bring-up")
        kept = f"\nrun directory, kept: {_kept(config, lab)}" if lab.run_dir else ""
        pytest.fail(f"{error}{kept}", pytrace=False)


def _end(config: pytest.Config, lab: Lab) -> LabError | None:
    """Takes the lab down and copies its run directory if a test or the bring-up failed; returns the LabError
    of the take-down, or None.
    """
    try:
        lab.take_down()
    except LabError as error:
        return error
    finally:
        if lab.failed_in and lab.run_dir is not None and lab.run_dir.exists():
            kept = _kept(config, lab)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(lab.run_dir, kept, dirs_exist_ok=True)
    return None


def _kept(config: pytest.Config, lab: Lab) -> Path:
    """Returns the directory to which the run directory of a lab is copied after a failed test."""
    base = Path(config.getoption("--vnet-kept"))
    return config.rootpath / base / f"{lab.spec.file.stem}-{lab.name}"


def _spec(topology: Any, options: dict[str, Any], beside: Path, directory: Path) -> Spec:
    unknown = options.keys() - {"parameters", "kernel", "time", "seed", "scenario"}
    if unknown:
        raise pytest.UsageError(f"marker vnet: {', '.join(sorted(unknown))}: no such option; {MARK}")
    file = _written(topology, directory) if isinstance(topology, Topology) else beside / topology
    try:
        return spec_of(file, options.pop("parameters", {}), **options)
    except ValueError as error:
        raise pytest.UsageError(f"marker vnet: {error}; {MARK}") from None


def _written(topology: Topology, directory: Path) -> Path:
    """Writes the topology to a file and returns its path; topologies of equal name and different content get
    files of their own.
    """
    for number in itertools.count(1):
        file = directory / (f"{topology.name}.yaml" if number == 1 else f"{topology.name}-{number}.yaml")
        if not file.exists():
            return topology.write(file)
        if file.read_text(encoding="utf-8") == topology.yaml():
            return file
    raise AssertionError("unreachable: numbers do not end")
