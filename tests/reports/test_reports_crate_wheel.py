"""Tests that a user without the source tree can check a crate: with the wheel, in a new environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from synthetic import Shape, write_campaign

from reports.crate.metadata import Stated
from reports.crate.pack import pack
from reports.study import study_of_campaign
from reports.verdicts import write

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(1200)  # s; a build and a new environment take long on a busy machine


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the command `vnet` of an environment that has the wheel and, from this environment, only the
    packages of others.
    """
    place = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([ROOT / "images/wheel.sh", place], check=True, stdout=subprocess.DEVNULL)
    venv.create(place / "venv")
    python, (wheel,) = place / "venv/bin/python", place.glob("*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
    ]
    subprocess.run([*pip, str(wheel)], check=True)
    (packages,) = (place / "venv/lib").glob("python*/site-packages")
    # Python reads no .pth file in this directory, so it does not find the editable install of the source
    # tree.
    (packages / "of-others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return place / "venv/bin/vnet"


@pytest.fixture(scope="module")
def crate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("crate")
    directory = write_campaign(place / "campaign", [Shape(hold_s=20)])
    write(study_of_campaign(directory))
    pack(directory, place / "campaign.zip", Stated("CC-BY-4.0", "2026-01-31"))
    shutil.rmtree(directory)
    return place / "campaign.zip"


def verified(vnet: Path, crate: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    argv = [str(vnet), "verify", str(crate)]
    return subprocess.run(
        argv, cwd=crate.parent, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_has_every_package_of_the_tree(elsewhere: Path) -> None:
    code = "import contract, capture, orchestrator, reports, vnet as v; print(contract.__file__, v.__file__)"
    argv = [str(elsewhere.parent / "python"), "-c", code]
    done = subprocess.run(argv, cwd=elsewhere.parent, capture_output=True, text=True, check=True)
    assert all(path.startswith(str(elsewhere.parents[1])) for path in done.stdout.split())


def test_a_crate_is_checked_by_the_wheel_alone(elsewhere: Path, crate: Path) -> None:
    done = verified(elsewhere, crate)
    assert done.returncode == 0, done.stderr
    assert "verdicts judged again: all are as stated" in done.stdout


def test_a_changed_crate_is_found_there_too(elsewhere: Path, crate: Path) -> None:
    other = crate.with_name("other.zip")
    shutil.copyfile(crate, other)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("more.txt", "x")
    done = verified(elsewhere, other)
    assert done.returncode == 1 and "more.txt: is not listed" in done.stderr
