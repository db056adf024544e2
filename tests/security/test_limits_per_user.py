"""Tests that a node that uses up limits that the kernel counts for each user or for the whole machine leaves
enough for others.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sandboxed import ROOT, vnet

from orchestrator.kernel.uml.binaries import find_binaries

HERE = Path(__file__).parent
TAKES = HERE / "takes.py"
AGENT = ROOT / "target/release/vnet-agent"
HOLD_S = 30
# Amounts that another user must still get; nodes get no keys and no asynchronous events (seccomp).
FEW = {"watches": 50, "inotify": 8, "fanotify": 4, "timers": 8, "queues": 2, "locked": 2, "terminals": 3}
ROOTS = {**FEW, "keys": 2, "aio": 4, "pipes": 4}
REFUSED = {"keys": 0, "aio": 0}
TERMINALS = 64  # the limit of images/agent/src/launch/sandbox/private.rs
MANY = 350

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
    pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)"),
]

LAB = """\
name: NAME
segments: {lan: {subnet: 10.77.0.0/16}}
nodes: {a: {segment: lan}, b: {segment: lan}}
"""


def taking(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@contextmanager
def lab(kernel: str, text: str = LAB) -> Iterator[tuple[Path, str]]:
    base, name = Path(tempfile.mkdtemp(prefix="vnet-limits-")), f"limits-{os.getpid()}"
    try:
        (base / "lab.yaml").write_text(text.replace("NAME", name))
        up = vnet(base, "up", "lab.yaml", "--kernel", kernel, "--results", "out")
        assert up.returncode == 0, up.stderr
        yield base, name
    finally:
        vnet(base, "down", name)
        shutil.rmtree(base)


def in_node(base: Path, name: str, node: str, hold_s: float, most: dict[str, int]) -> subprocess.Popen[str]:
    os.environ["VNET_STATE_DIR"] = str(base / "s")
    script = ("python3", "-c", TAKES.read_text(), str(hold_s), json.dumps(most))
    return taking(sys.executable, "-m", "orchestrator.cli.main", "exec", name, node, "--", *script)


def taken(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout and process.stderr
    line = process.stdout.readline()
    assert line, process.stderr.read()
    found: dict[str, int] = json.loads(line)
    return found


@pytest.mark.parametrize("kernel", ["host", "uml"])
def test_a_node_that_takes_everything_takes_nothing_from_others(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel == "uml" and not find_binaries():
        pytest.skip("no User-Mode Linux kernel (make kernel)")
    monkeypatch.setenv("VNET_STATE_DIR", "")  # restored after the test
    with lab(kernel) as (base, name):
        hog = in_node(base, name, "a", HOLD_S, {})
        try:
            most = taken(hog)
            assert {one: most[one] for one in REFUSED} == REFUSED
            assert 0 < most["terminals"] <= TERMINALS
            # an older kernel has no fanotify for users
            assert min(most[one] for one in FEW if one != "fanotify") > 0, most
            few = {one: FEW[one] for one in FEW if most[one]}
            assert taken(in_node(base, name, "b", 0, few)) == few, "node b has less"
            if kernel == "host":
                roots = {one: ROOTS[one] for one in ROOTS if one in REFUSED or most[one]}
                assert taken(taking(sys.executable, str(TAKES), "0", json.dumps(roots))) == roots, (
                    "root has less"
                )
            assert hog.poll() is None, "node a held it all that time"
        finally:
            hog.kill()
            hog.communicate()


def held(base: Path) -> list[dict[str, int]]:
    """Returns the amounts that the programs of the group printed, one entry for each that has printed
    them.
    """
    logs = (path.read_text() for path in base.rglob("others*takes*") if path.is_file())
    return [json.loads(text[text.index("{") : text.index("}") + 1]) for text in logs if "}" in text]


@pytest.mark.sweep
def test_350_nodes_have_what_they_need_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that, while one node holds everything, the other 349 hold a few of each at the same time, and
    root of the machine has its own.
    """
    monkeypatch.setenv("VNET_STATE_DIR", "")  # restored after the test
    few = {**FEW, "watches": 5}
    files = {"takes.py": TAKES.read_text(), "few": f"exec python3 takes.py 100000 '{json.dumps(few)}'"}
    program = {"takes": {"command": "sh few", "files": files}}
    group = {"count": MANY - 1, "segment": "lan", "software": program}
    text = f"{LAB.replace(', b: {segment: lan}', '')}groups: {json.dumps({'others': group})}\n"
    with lab("host", text) as (base, name):
        until = time.monotonic() + 200
        while len(found := held(base)) < MANY - 1 and time.monotonic() < until:
            time.sleep(1)
        assert len(found) == MANY - 1 and all(one == few for one in found), found[:3]
        hog = in_node(base, name, "a", 600, {})
        try:
            assert taken(hog)["terminals"] == TERMINALS
            roots = taken(taking(sys.executable, str(TAKES), "0", json.dumps(ROOTS)))
            assert roots == ROOTS, "root has less"
        finally:
            hog.kill()
            hog.communicate()
