"""Tests that nothing escapes from a light node: every attempt is refused and leaves no trace, and all that a
node needs works.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from sandboxed import ESCAPES, NEEDS, ROOT, Outside, attempts, topology, vnet

from orchestrator.kernel.uml.binaries import find_binaries

AGENT = ROOT / "target/release/vnet-agent"
KERNELS = ["host", "uml"]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="plants things that are root's; namespaces need root"),
    pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)"),
]


def keys(of: ast.expr) -> list[str]:
    assert isinstance(of, ast.Dict)
    return [ast.literal_eval(key) for key in of.keys if key is not None]


def names(script: Path, mark: str) -> list[str]:
    """Returns the functions of a script with that decorator, and those that its loops over a dict literal
    define.
    """
    found = []
    for part in ast.parse(script.read_text()).body:
        if isinstance(part, ast.FunctionDef) and any(
            isinstance(d, ast.Name) and d.id == mark for d in part.decorator_list
        ):
            found.append(part.name)
        if mark == "escape" and isinstance(part, ast.For):
            assert isinstance(part.iter, ast.Call) and isinstance(part.iter.func, ast.Attribute)
            prefix = ast.unparse(part.body[0]).split("f'", 1)[1].split("{", 1)[0]
            found += [f"{prefix}{key}" for key in keys(part.iter.func.value)]
    return found


TRIED = [name for script in ESCAPES for name in names(script, "escape")]
NEEDED = names(NEEDS, "need")
OF_THE_MACHINES_KERNEL = {"read_roots_files_of_proc", "read_roots_files_of_sys", "read_keys_and_addresses"}


@pytest.fixture(scope="session", params=KERNELS)
def found(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Returns the results of all attempts in one lab of that kernel; asserts that the machine is
    unchanged.
    """
    kernel = request.param
    if kernel == "uml" and not find_binaries():
        pytest.skip("no User-Mode Linux kernel (make kernel)")
    base, outside = Path(tempfile.mkdtemp(prefix="vnet-sandboxed-")), Outside()
    try:
        came = attempts(base, outside, f"sandboxed-{os.getpid()}", kernel)
        assert outside.unharmed(), (outside.before, outside.state())
        return came
    finally:
        outside.close()
        shutil.rmtree(base)


def test_there_are_enough_attempts() -> None:
    assert len(TRIED) == len(set(TRIED)) >= 40


@pytest.mark.parametrize("name", [*TRIED, "left_for_another_node"])
def test_nothing_gets_out(
    request: pytest.FixtureRequest, found: dict[str, dict[str, Any]], name: str
) -> None:
    if name in OF_THE_MACHINES_KERNEL and request.node.callspec.params["found"] == "uml":
        pytest.skip("these files are of the lab's own kernel and tell nothing of the machine")
    assert found[name]["got"] is False, found[name]


@pytest.mark.parametrize("name", NEEDED)
def test_what_a_node_needs_stays(found: dict[str, dict[str, Any]], name: str) -> None:
    assert found[name]["got"] is True, found[name]


HOGS = """\
  bomb:
    segment: lan
    software: {bomb: {command: [python3, -c, "import os, time\\nwhile True: os.fork() or time.sleep(100)"], start: hold}}
  hog:
    segment: lan
    memory_limit: 64 MiB
    software: {hog: {command: [python3, -c, "a = []\\nwhile True: a.append(bytearray(b'x') * 1000000)"], start: hold}}
  few:
    segment: lan
    process_limit: 40
    software: {few: {command: [python3, -c, "import os, time\\nwhile True: os.fork() or time.sleep(100)"], start: hold}}
  filler:
    segment: lan
    disk_limit: 8 MiB
    software: {filler: {command: "cat /dev/zero > endless || stat -c wrote=%s endless; false", start: hold}}
  talker:
    segment: lan
    software: {talker: {command: "exec yes", start: hold}}
run: {hold: 12 s, drain: 1 s, on_node_failure: continue}
"""


def test_who_takes_too_much_fails_alone_and_says_why() -> None:
    base = Path(tempfile.mkdtemp(prefix="vnet-hogs-"))
    lab = f"hogs-{os.getpid()}"
    try:
        (base / "hogs.yaml").write_text(topology(lab, HOGS))
        done = vnet(base, "run", "hogs.yaml", "--kernel", "host", "--results", "out", patience_s=200)
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == 0, said
        assert "nodes.bomb: processes:" in said and "nodes.hog: memory:" in said
        assert re.search(r"nodes.few: processes: \d+ not started beyond 40\b", said)
        assert "nodes.filler.filler: ended unexpectedly" in said and "No space left on device" in said
        assert (wrote := re.search(r"wrote=(\d+)", said)) and int(wrote[1]) <= 8 << 20
        assert "nodes.talker: software talker: its log is longer than 64 MiB" in said
        logs = next((base / "out" / lab).iterdir()) / "raw" / "logs"
        assert all(log.stat().st_size <= 65 << 20 for log in logs.iterdir())
    finally:
        vnet(base, "down", lab)
        shutil.rmtree(base)


OPENED = """\
name: {name}
segments: {{lan: {{subnet: 10.77.0.0/24}}}}
nodes:
  a:
    segment: lan
    mounts: {{read: [{seen}], write: [{written}]}}
    software:
      copy:
        command: "cp {seen}/inner/file {written}/copy; touch {seen}/new || echo refused > {written}/second; sleep 100"
run: {{hold: 1 s, drain: 1 s}}
"""


@pytest.mark.parametrize(
    "where", ["/tmp", "/run", pytest.param("/var/tmp", marks=pytest.mark.sweep), ROOT / "target"]
)
def test_directories_that_a_file_opens_are_there(where: str | Path) -> None:
    """Shows that mounted paths are visible in a node, also below its own directories and below
    hidden ones.
    """
    base = Path(tempfile.mkdtemp(prefix="opened-", dir=where))
    try:
        seen, written = base / "seen", base / "written"
        (seen / "inner").mkdir(parents=True)
        (seen / "inner/file").write_text("there")
        written.mkdir()
        text = OPENED.format(name=f"opened-{os.getpid()}", seen=seen, written=written)
        (base / "opened.yaml").write_text(text)
        done = vnet(base, "run", "opened.yaml", "--kernel", "host", "--results", "out")
        assert done.returncode == 0, done.stderr
        assert (written / "copy").read_text() == "there" and (written / "second").read_text() == "refused\n"
        assert [path.name for path in seen.iterdir()] == ["inner"]
    finally:
        shutil.rmtree(base)
