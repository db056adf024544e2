"""Tests that a program can write to its node's own copies of /etc, /var and /run in virtual time, that
figures of programs are judged there, and that they stay if a service never listens.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from virtual_place import Place

NAME = "vnet-copied-directories"
COPIED = f"""\
name: copied
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{subnet: 10.1.0.0/24}}}}
nodes:
  a:
    segment: near
    mounts: {{copy: [/etc, /var]}}
    software:
      write: {{command: "touch /etc/{NAME} /var/lib/{NAME} && echo written", at_end: exited, start: ramp}}
      probe:
        command: ping -c 5 -i 0.2 b
        start: hold
        at_end: exited
        figures: {{from: log, format: ping}}
  b: {{segment: far}}
  plain:
    segment: far
    software:
      write: {{command: "touch /var/lib/{NAME} || echo refused", at_end: exited, start: ramp}}
links: {{way: {{between: [near, far], both: {{delay: 20 ms}}}}}}
run: {{hold: 4 s}}
expect: ["program_lost < 1", "program_latency_max < 90 ms"]
"""


ANYWHERE = """\
name: anywhere
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a:
    segment: lan
    mounts: {read: [PLACE/data]}
    software:
      service:
        command: PLACE/service PLACE/data
        env: {OWN: PLACE/data/words}
        at_end: exited
        start: ramp
  b: {segment: lan}
run: {hold: 1 s}
"""


OF_PACKAGES = """\
name: packaged
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a:
    segment: lan
    mounts: {copy: [/run]}
    software:
      redis:
        command: redis-server --unixsocket /run/redis/redis.sock --port 0
        role: server
        ready: {log: ready to accept}
      look: {command: "stat -c '%U %G %a %n' /run/redis; ls /run/redis", start: hold, at_end: exited}
  plain:
    segment: lan
    software: {look: {command: "touch /run/own && ls /run/redis || echo none", start: hold, at_end: exited}}
run: {hold: 1 s}
"""


@pytest.mark.parametrize("kernel", ["--time", "--kernel"])
def test_a_copy_of_run_has_the_directories_that_packages_declare(place: Place, kernel: str) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed; images/packages.sh services")
    (place.cwd / "packaged.yaml").write_text(OF_PACKAGES)
    real = {"--time": ("--time", "virtual"), "--kernel": ("--kernel", "uml")}[kernel]
    done = place.vnet("run", "packaged.yaml", *real, "--out", str(place.cwd / "out"))
    assert done.returncode == 0, done.stderr
    logs = place.cwd / "out/raw/logs"
    assert (logs / "a.look.log").read_text() == "redis redis 2755 /run/redis\nredis.sock\n"
    assert (logs / "plain.look.log").read_text().endswith("none\n")


DEAF = """name: deaf
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server:
    segment: lan
    software:
      service:
        command: sleep 100
        role: server
        ready: {tcp: 80, within: 3 s}
groups:
  client:
    count: 2
    segment: lan
    software:
      probe:
        command: ping -c 5 -i 0.2 server
        start: hold
        at_end: exited
        figures: {from: log, format: ping}
expect: ["program_lost < 1"]
run: {hold: 2 s, on_node_failure: continue}
"""


def test_a_service_that_never_listens_is_told_with_its_line_and_other_figures_stay(place: Place) -> None:
    (place.cwd / "deaf.yaml").write_text(DEAF)
    told = (
        "deaf.yaml:10: nodes.server.service: software service: not ready within 3 s (nothing listens on TCP"
    )
    done = place.vnet("run", "deaf.yaml", "--time", "virtual", "--out", "out")
    assert done.returncode == 0 and told in done.stderr, done.stderr
    assert "suspect: look at the warnings" in done.stderr
    summary = json.loads((place.cwd / "out/summary.json").read_text())
    received = [row["value"] for row in summary if row["name"] == "program_received"]
    assert received == [5, 5]
    (place.cwd / "deaf.yaml").write_text(DEAF.replace(", on_node_failure: continue", ""))
    done = place.vnet("run", "deaf.yaml", "--time", "virtual", "--out", "aborted", "--json")
    assert done.returncode == 1 and told in json.loads(done.stdout)["error"] and told in done.stderr


@pytest.mark.parametrize("kernel", ["--time", "--kernel"])
def test_a_program_and_its_files_lie_below_tmp(place: Place, kernel: str) -> None:
    """Runs a program whose files are below /tmp, where each node has a directory of its own, in virtual time
    and with the kernel uml.
    """
    own = Path(tempfile.mkdtemp(prefix="vnet-anywhere-", dir="/tmp"))
    try:
        own.chmod(0o755)
        (own / "data").mkdir()
        (own / "data" / "words").write_text("from anywhere\n")
        (own / "service").write_text('#!/bin/sh\ncat "$1/words" && (echo x >"$OWN" || echo refused)\n')
        (own / "service").chmod(0o755)
        (place.cwd / "anywhere.yaml").write_text(ANYWHERE.replace("PLACE", str(own)))
        real = {"--time": ("--time", "virtual"), "--kernel": ("--kernel", "uml")}[kernel]
        done = place.vnet("run", "anywhere.yaml", *real, "--out", str(place.cwd / "out"))
        assert done.returncode == 0, done.stderr
        log = next((place.cwd / "out").rglob("a.service.log")).read_text()
        assert log.startswith("from anywhere\n") and log.endswith("refused\n")
        assert (own / "data" / "words").read_text() == "from anywhere\n"
    finally:
        shutil.rmtree(own)


def test_a_node_writes_below_etc_and_var_of_its_own(place: Place) -> None:
    (place.cwd / "copied.yaml").write_text(COPIED)
    ran = place.run(file="copied.yaml")
    logs = ran.run_dir / "raw/logs"
    assert (logs / "a.write.log").read_text() == "written\n"
    assert (logs / "plain.write.log").read_text().endswith("refused\n")
    assert not [top for top in ("/etc", "/var/lib") if (Path(top) / NAME).exists()]
    done = place.vnet("report", str(ran.run_dir))
    assert done.returncode == 0, done.stderr
    verdicts = json.loads((ran.run_dir / "verdicts.json").read_text())
    assert '"program_lost below 1"' in json.dumps(verdicts) and "fails" not in json.dumps(verdicts)
    found = {row["name"]: row for row in json.loads((ran.run_dir / "summary.json").read_text())}
    assert found["program_received"]["value"] == 5 and found["program_received"]["program"] == "a/probe"
