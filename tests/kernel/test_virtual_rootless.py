"""Tests virtual time for an ordinary user on strict machines: the run gives the same bytes as root's.

The ordinary user is uid 65534 without groups. Further cases: /dev/shm mounted noexec (in a mount namespace of
its own), and user namespaces forbidden (by a seccomp filter such as container runtimes set).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.kernel.uml.binaries import cache_dir
from orchestrator.kernel.virtual.kernel import VirtualKernel

PROJECT = Path(__file__).resolve().parents[2]
# changes of golden-qos that make it smaller
FEWER = {"count: 10": "count: 2", "hold: 5 s, drain: 5 s": "hold: 2 s, drain: 2 s"}
NOBODY = 65534
KERNEL = VirtualKernel().binary
TIME_AND_BYTES = ("pcap/broker.pcap", "raw/messages.csv", "raw/nodes.csv", "proof.json", "summary.json")

pytestmark = [
    pytest.mark.uml,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else"),
    pytest.mark.skipif(KERNEL is None, reason="the lab's own kernel is not built (make kernel)"),
]

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
CLONE, UNSHARE, CLONE3 = 56, 272, 435  # numbers of system calls on x86-64
CLONE_NEWUSER = 0x10000000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # classic BPF: ld abs, jeq, jset, ret
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
ARGUMENT = 16  # offset of args[0] in struct seccomp_data


def forbid_user_namespaces() -> None:
    """Forbids user namespaces in this process and its children: CLONE_NEWUSER gives EPERM, and clone3, whose
    flags a filter cannot read, ENOSYS.
    """
    program = [
        (LOAD, 0, 0, 0),
        (EQUAL, 5, 0, CLONE3),
        (EQUAL, 1, 0, CLONE),
        (EQUAL, 0, 2, UNSHARE),
        (LOAD, 0, 0, ARGUMENT),
        (ANY_BIT, 2, 0, CLONE_NEWUSER),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | 38),  # ENOSYS, at which libc uses clone instead
        (RETURN, 0, 0, ERRNO | 1),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(filters), 0, 0),
    ):
        if libc.prctl(arguments[0], *map(ctypes.c_ulong, arguments[1:])) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Yields a directory of the ordinary user with a kernel; skips the test if that user cannot read the
    repository.
    """
    directory = Path(tempfile.mkdtemp(prefix="vnet-rootless-"))
    assert KERNEL is not None
    shutil.copy(KERNEL.path, directory / "linux")
    (directory / "cache").mkdir()
    text = (PROJECT / "tests/goldens/golden-qos.yaml").read_text()
    for old, new in FEWER.items():
        assert old in text, old
        text = text.replace(old, new)
    (directory / "golden-qos.yaml").write_text(text)
    for path in (directory, *directory.iterdir()):
        path.chmod(0o755)
        os.chown(path, NOBODY, NOBODY)
    try:
        tried = subprocess.run(
            [sys.executable, "-c", "import orchestrator.cli.main"], cwd=PROJECT, user=NOBODY, check=False
        )
        if tried.returncode != 0:
            pytest.skip(f"an ordinary user cannot read {PROJECT} or the interpreter")
        yield directory
    finally:
        shutil.rmtree(directory)


def run(
    place: Path, name: str, prefix: tuple[str, ...] = (), before: Callable[[], None] | None = None, **who: int
) -> Path:
    """Runs a small experiment in virtual time, with a home and state of its own, and returns its run
    directory.

    Ordinary users share a cache, which is empty for the first of them. Root uses this machine's own, because
    filling an empty one takes longer than the run.
    """
    home = place / name
    home.mkdir()
    os.chown(home, *([NOBODY] * 2 if who or prefix else [0, 0]))
    argv = [*prefix, sys.executable, "-m", "orchestrator.cli.main", "run", str(place / "golden-qos.yaml")]
    argv += ["--time", "virtual", "--results", str(home / "out")]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "VNET_UML_KERNEL": str(place / "linux")}
    env["VNET_STATE_DIR"] = str(home / "state")
    env["XDG_CACHE_HOME"] = str(place / "cache" if who or prefix else cache_dir().parent.parent)
    done = subprocess.run(
        argv,
        cwd=PROJECT,
        env=env,
        capture_output=True,
        text=True,
        preexec_fn=before,
        extra_groups=[],
        check=False,
        **who,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (run_dir,) = (home / "out" / "golden-qos").iterdir()
    return run_dir


@pytest.fixture(scope="module")
def of_root(place: Path) -> dict[str, bytes]:
    return contents(run(place, "root"))


def contents(run_dir: Path) -> dict[str, bytes]:
    return {name: (run_dir / name).read_bytes() for name in TIME_AND_BYTES}


SCRIPT = (
    "mount --make-rprivate / && mount -t tmpfs -o noexec,mode=1777 none /dev/shm && "
    f'exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"'
)
NOEXEC = ("unshare", "--mount", "sh", "-c", SCRIPT, "sh")


def outside_shared_memory(run_dir: Path) -> bool:
    return '"TMPDIR": "/dev/shm"' not in (run_dir / "raw" / "boot.json").read_text()


def test_an_ordinary_user_on_a_machine_that_is_strict_in_both(place: Path, of_root: dict[str, bytes]) -> None:
    """Shows that the run gives the same bytes as root's with /dev/shm noexec and user namespaces forbidden at
    the same time.
    """
    run_dir = run(place, "strict", NOEXEC, before=forbid_user_namespaces)
    assert contents(run_dir) == of_root
    assert outside_shared_memory(run_dir)


@pytest.mark.sweep
def test_an_ordinary_user_where_shared_memory_is_noexec(place: Path, of_root: dict[str, bytes]) -> None:
    run_dir = run(place, "noexec", NOEXEC)
    assert contents(run_dir) == of_root
    assert outside_shared_memory(run_dir)


def test_the_filter_forbids_user_namespaces() -> None:
    refused = subprocess.run(
        ["unshare", "--user", "true"],
        preexec_fn=forbid_user_namespaces,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Operation not permitted" in refused.stderr


@pytest.mark.sweep
def test_an_ordinary_user_where_user_namespaces_are_forbidden(place: Path, of_root: dict[str, bytes]) -> None:
    run_dir = run(place, "userns", before=forbid_user_namespaces, user=NOBODY, group=NOBODY)
    assert contents(run_dir) == of_root
