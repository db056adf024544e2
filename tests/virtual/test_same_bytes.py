"""Tests that two runs in virtual time are equal byte for byte in any environment, and that another seed gives
another run.
"""

from __future__ import annotations

import compileall
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from virtual_place import PROJECT, Place, Ran

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.virtual.kernel import is_ours

Places = Callable[[str], Place]
HOST_NAME = "hostname another-host-name-of-some-length"
# Mount options as Debian has them for /run, where root's labs are.
NO_EXEC = 'mount --make-rprivate / && mount -t tmpfs -o nosuid,nodev,noexec none "$0" && exec "$@"'


def other_environment() -> dict[str, str]:
    """Returns an environment with another language, time zone, home and hash seed, and many
    unused variables.
    """
    return {
        "LANG": "C",
        "LC_ALL": "POSIX",
        "TZ": "Asia/Kathmandu",
        "PYTHONHASHSEED": "77",
        "HOME": "/",
        **{f"NOISE_{i}": "n" * 500 for i in range(100)},
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
    }


@contextmanager
def burning() -> Iterator[None]:
    """Runs three processes that only compute, for the duration of the context."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def litter(place: Place) -> None:
    """Writes files and directories like those that former runs and other users leave."""
    for name in ("small", "vnet-small", "mosquitto.db", "small.yaml.bak"):
        (place.cwd / name).write_text("left over")
    for name in ("state/other/nodes/broker", "out/small/20200101T000000", "results/small"):
        (place.cwd / name).mkdir(parents=True)
        (place.cwd / name / "mosquitto.db").write_text("left over")


def other_checkout(place: Place) -> None:
    """Makes the place use a copy of the code whose files are newer than their bytecode, as after `git
    pull`.
    """
    checkout = place.cwd / "checkout"
    for package in ("orchestrator", "capture", "contract", "reports"):
        shutil.copytree(PROJECT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", checkout)
    assert compileall.compile_dir(checkout, quiet=1)
    for source in checkout.rglob("*.py"):
        os.utime(source)
    (checkout / "orchestrator" / "lab" / "notes.txt").write_text("left over")
    agent = os.environ.get("VNET_AGENT") or str(PROJECT / "target" / "release" / "vnet-agent")
    place.env |= {"PYTHONPATH": str(checkout), "VNET_AGENT": agent}


def test_what_is_compared_is_there_and_says_something(baseline: Ran) -> None:
    for name in ("pcap/all.pcap", "raw/messages.csv", "raw/nodes.csv", "raw/links.csv", "proof.json"):
        assert name in baseline.hashes
        assert (baseline.run_dir / name).stat().st_size > 200, name
    text = (baseline.run_dir / "raw/messages.csv").read_text()
    received = [line for line in text.splitlines() if line.startswith("R,")]
    assert len(received) >= 40
    assert len({line.split(",")[5] for line in received}) == len(received)


@pytest.mark.sweep
def test_again(baseline: Ran, places: Places) -> None:
    again = places("again").run()
    assert again.run_dir.name != baseline.run_dir.name  # the id of the run differs
    assert again.hashes == baseline.hashes


def test_with_all_at_once_that_the_sweep_changes_one_by_one(baseline: Ran, places: Places) -> None:
    """Shows that the run is the same under all changes together; if not, `pytest -m sweep` on this file tells
    which change it is.
    """
    place = Place(places("all").cwd / "a directory, with a comma" / ("x" * 100))
    place.env |= {"VNET_STATE_DIR": str(place.cwd.parent.parent / "s"), **other_environment()}
    litter(place)
    before: tuple[str, ...] = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    if os.geteuid() == 0:
        (place.cwd.parent.parent / "s").mkdir()
        shell = f"{HOST_NAME} && {NO_EXEC}"
        before += ("unshare", "--uts", "--mount", "sh", "-c", shell, place.env["VNET_STATE_DIR"])
    with burning():
        assert place.run(before=before).hashes == baseline.hashes


@pytest.mark.sweep
def test_in_a_long_path_with_a_space(baseline: Ran, places: Places) -> None:
    place = Place(places("long").cwd / "a directory, with a comma" / ("x" * 100))
    place.env["VNET_STATE_DIR"] = str(place.cwd.parent.parent / "s")
    assert place.run().hashes == baseline.hashes


@pytest.mark.sweep
def test_in_another_environment_language_and_time_zone(baseline: Ran, places: Places) -> None:
    place = places("env")
    place.env |= other_environment()
    assert place.run().hashes == baseline.hashes


@pytest.mark.sweep
@pytest.mark.skipif(os.geteuid() != 0, reason="a host name of one's own needs root")
def test_on_a_host_of_another_name(baseline: Ran, places: Places) -> None:
    before = ("unshare", "--uts", "sh", "-c", f'{HOST_NAME} && exec "$@"', "sh")
    assert places("host").run(before=before).hashes == baseline.hashes


@pytest.mark.sweep
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_where_no_program_may_run_from_the_state_directory(baseline: Ran, places: Places) -> None:
    place = places("noexec")
    state = place.cwd / "state"
    state.mkdir()
    before = ("unshare", "--mount", "sh", "-c", NO_EXEC, str(state))
    assert place.run(before=before).hashes == baseline.hashes


@pytest.mark.sweep
def test_on_one_core(baseline: Ran, places: Places) -> None:
    core = str(min(os.sched_getaffinity(0)))
    assert places("core").run(before=("taskset", "-c", core)).hashes == baseline.hashes


@pytest.mark.sweep
def test_beside_other_load(baseline: Ran, places: Places) -> None:
    with burning():
        assert places("load").run().hashes == baseline.hashes


@pytest.mark.sweep
def test_with_files_left_over(baseline: Ran, places: Places) -> None:
    place = places("left")
    litter(place)
    assert place.run().hashes == baseline.hashes


def test_from_another_checkout_with_stale_bytecode(baseline: Ran, places: Places) -> None:
    place = places("code")
    other_checkout(place)
    assert place.run().hashes == baseline.hashes


@pytest.mark.sweep  # kernel/test_virtual_rootless.py does so on a stricter machine
@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_as_a_user_without_rights(baseline: Ran, places: Places) -> None:
    nobody = pwd.getpwnam("nobody")
    reach = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
    trial = subprocess.run([*reach, sys.executable, "-c", "import orchestrator"], cwd=PROJECT, check=False)
    if trial.returncode != 0:
        pytest.skip("this checkout or its interpreter cannot be read by another user")
    place = Place(Path("/var/tmp") / f"vnet-nobody-{os.getpid()}")
    try:
        for path in (place.cwd, place.cwd / "small.yaml"):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        kernel = next(binary.path for binary in find_binaries() if is_ours(binary.path))
        place.env |= {
            "HOME": str(place.cwd),
            "XDG_RUNTIME_DIR": "",
            "VNET_UML_KERNEL": _copy(kernel, place.cwd),
        }
        if "VNET_AGENT" in os.environ:
            place.env["VNET_AGENT"] = _copy(Path(os.environ["VNET_AGENT"]), place.cwd)
        assert place.run(before=reach).hashes == baseline.hashes
    finally:
        shutil.rmtree(place.cwd)


def _copy(path: Path, to: Path) -> str:
    made = Path(shutil.copy(path, to / path.name))
    made.chmod(0o755)
    return str(made)


def test_another_seed_is_another_run(baseline: Ran, places: Places) -> None:
    other = places("seed").run(seed=8)
    for name in ("pcap/all.pcap", "raw/messages.csv"):
        assert other.hashes[name] != baseline.hashes[name]
