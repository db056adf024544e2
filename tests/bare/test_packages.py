"""Tests packages.sh while another apt holds a lock: with a real apt that has its own state, and a
real lock.
"""

import fcntl
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "images" / "packages.sh"

# The two packages are already installed, and apt knows no newer ones, so apt has nothing to do on any
# machine.
INSTALLED = """\
Package: {}
Status: install ok installed
Maintainer: nobody
Architecture: all
Version: 1
Description: none
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed by root")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Returns the environment of an apt whose lists, cache, status and units are below `tmp_path`; the script
    finds every package missing.
    """
    if shutil.which("apt-get") is None:
        pytest.skip("no apt on this machine")
    for directory in ("lists/partial", "cache/archives/partial", "dpkg", "bin", "log", "units"):
        (tmp_path / directory).mkdir(parents=True)
    stanzas = (INSTALLED.format(name) for name in ("bash", "mosquitto"))
    (tmp_path / "dpkg" / "status").write_text("\n".join(stanzas))
    (tmp_path / "sources").touch()
    (tmp_path / "apt.conf").write_text(
        f'Dir::State::lists "{tmp_path}/lists"; Dir::Cache "{tmp_path}/cache"; Dir::Log "{tmp_path}/log";\n'
        f'Dir::State::status "{tmp_path}/dpkg/status"; Dir::State::extended_states "{tmp_path}/extended";\n'
        f'Dir::Etc::sourcelist "{tmp_path}/sources"; Dir::Etc::sourceparts "-";\n'
    )
    query = tmp_path / "bin" / "dpkg-query"
    query.write_text("#!/bin/sh\nexit 1\n")
    query.chmod(0o755)
    path = f"{query.parent}:{os.environ['PATH']}"
    return os.environ | {"APT_CONFIG": str(tmp_path / "apt.conf"), "PATH": path}


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds a lock of the kind that apt and dpkg take: on the whole file, by fcntl."""
    with path.open("a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def packages(
    environment: dict[str, str], patience_s: int, names: str = "bash"
) -> subprocess.CompletedProcess[str]:
    """Runs the script on a set of packages that this machine already has, so that it installs nothing."""
    copy = Path(environment["APT_CONFIG"]).with_name("packages.sh")
    listing = SCRIPT.read_text().replace("declare -A sets=(", f'declare -A sets=([installed]="{names}"', 1)
    assert "/lib/systemd/system/" in listing
    copy.write_text(listing.replace("/lib/systemd/system/", f"{copy.parent}/units/"))
    argv = ["bash", str(copy), "installed"]
    wait = {"VNET_APT_WAIT": str(patience_s)}
    return subprocess.run(
        argv, env=environment | wait, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("lock", ["lists/lock", "dpkg/lock-frontend"])
def test_another_apt_is_waited_for(tmp_path: Path, environment: dict[str, str], lock: str) -> None:
    holding = held(tmp_path / lock)
    holding.__enter__()
    timer = threading.Timer(3, holding.__exit__, (None, None, None))
    timer.start()
    done = packages(environment, 30)
    assert done.returncode == 0, done.stderr
    assert f"another apt is at work ({tmp_path / lock}, held by process {os.getpid()}" in done.stderr
    assert "waiting for it, up to 30 s" in done.stderr
    assert not timer.is_alive()


def test_an_apt_that_does_not_end_is_said_with_the_remedy(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with held(tmp_path / "lists" / "lock"):
        done = packages(environment, 2)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"setup: apt is still at work after 2 s: {tmp_path}/lists/lock, held by process")
    assert last.endswith("and run make setup again")


def test_other_mistakes_of_apt_are_not_waited_for(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "sources").write_text("nonsense\n")
    done = packages(environment, 600)
    assert done.returncode == 1
    assert "mend what apt says above" in done.stderr and "waiting" not in done.stderr


def test_a_daemon_that_came_is_left_to_labs(environment: dict[str, str]) -> None:
    tools = Path(environment["APT_CONFIG"]).with_name("bin")
    (tools.parent / "units" / "mosquitto.service").touch()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{tools}/asked\n')
    (tools / "systemctl").chmod(0o755)
    done = packages(environment, 5, "bash mosquitto")
    assert done.returncode == 0, done.stderr
    assert (tools / "asked").read_text() == "--quiet disable mosquitto.service\n"
    (tools / "dpkg-query").write_text("#!/bin/sh\nprintf installed\n")  # every package is installed already
    assert packages(environment, 5, "bash mosquitto").returncode == 0
    assert (tools / "asked").read_text() == "--quiet disable mosquitto.service\n"
