"""Tests that a program that virtual time does not support is refused with its key and line before anything is
made.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual_place import Place

LAB = """\
name: open
segments: {lan: {subnet: 10.52.0.0/24}}
nodes:
  one:
    segment: lan
    software:
      typed: {command: no-such-program-of-vnets --port 1}
      given: {command: [/srv/no/such/program], env: {A: b}}
groups:
  many:
    count: 2
    segment: lan
    software:
      probed:
        command: sleep 1
        ready: {command: [no-such-probe-of-vnets]}
      scripted:
        command: [./start.sh]
        files: {start.sh: "#!/opt/no/such/interpreter\\n"}
timeline:
  - {at: hold + 0 s, run: "true", on: one}
  - {at: hold + 1 s, run: no-such-command-of-vnets now, on: one}
  - {at: hold + 1 s, run: timeout 5 nohup no-such-wrapped-of-vnets now, on: one}
run: {hold: 1 s, drain: 1 s}
"""
FOUND = {
    7: 'nodes.one.software.typed.command: "no-such-program-of-vnets": is not on this machine; install',
    8: 'nodes.one.software.given.command: "/srv/no/such/program": is not on this machine; correct',
    16: 'groups.many.software.probed.ready: "no-such-probe-of-vnets": is not on this machine; install',
    19: 'groups.many.software.scripted.files: "/opt/no/such/interpreter": is not on this machine; correct',
    22: 'timeline[1].run: "no-such-command-of-vnets": is not on this machine; install the Debian package',
    23: 'timeline[2].run: "no-such-wrapped-of-vnets": is not on this machine; install the Debian package',
}


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_each_is_named_with_its_line(command: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "open.yaml").write_text(LAB)
    out = ("--out", "out") if command == "run" else ()
    done = place.vnet(command, "open.yaml", "--time", "virtual", *out)
    assert done.returncode == 3, done.stderr
    lines = done.stderr.splitlines()
    for number, said in FOUND.items():
        assert any(line.startswith(f"open.yaml:{number}: {said}") for line in lines), done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"small.yaml", "open.yaml"}


def test_in_real_time_the_same_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "open.yaml").write_text(LAB)
    assert Place(tmp_path).vnet("check", "open.yaml").returncode == 0
