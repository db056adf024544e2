"""Tests a campaign's cells as jobs of a real Slurm: the same tables as without it, a lost job,
and refusals.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import Cluster, cluster, slurm_missing
from virtual_place import Place, Ran

pytestmark = pytest.mark.skipif(slurm_missing() is not None, reason=str(slurm_missing()))
CAMPAIGN = "name: one\nseed: 7\ncampaign: {topologies: [small.yaml], repetitions: 1}\n"
RUN = ("campaign", "run", "one.yaml", "--time", "virtual", "--no-page", "--out", "camp")

# The program prints the ports that answer without TLS on addresses other than loopback.
OPEN_PAGES = """
import contextlib, socket, subprocess
listening = subprocess.run(["ss", "-lntH"], capture_output=True, text=True, check=True).stdout
for line in listening.splitlines():
    host, _, port = line.split()[3].rpartition(":")
    if host in ("127.0.0.1", "[::1]"):
        continue
    to = "127.0.0.1" if host in ("0.0.0.0", "*", "[::]") else host
    with contextlib.suppress(OSError), socket.create_connection((to, int(port)), 5) as asking:
        asking.sendall(b"GET /health HTTP/1.0\\r\\n\\r\\n")
        if asking.recv(4) == b"HTTP":
            print(port)
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c") as made:
        yield made


def test_a_job_that_is_lost_is_submitted_again_and_the_tables_are_those_of_a_run_alone(
    place: Place, slurm: Cluster, baseline: Ran
) -> None:
    (place.cwd / "one.yaml").write_text(CAMPAIGN)
    process = place.start(*RUN, "--on", "slurm:1", before=slurm.at(place.cwd))
    job = begun(process, place.cwd / "camp", slurm)
    assert slurm.ran(sys.executable, "-c", OPEN_PAGES) == ""
    slurm.ran("scancel", job)
    said = process.communicate(timeout=240)[1]
    assert process.returncode == 0, said
    assert "slurm-node: " in said and "its worker on slurm-node was lost; the cell runs again" in said
    lines = [json.loads(line) for line in (place.cwd / "camp" / "cells.jsonl").read_text().splitlines()]
    assert [line["state"] for line in lines] == ["interrupted", "complete"]
    hashes = json.loads((place.cwd / "camp" / lines[1]["run_dir"] / "manifest.json").read_text())["hashes"]
    assert {name: hashes[name] for name in baseline.hashes} == baseline.hashes
    left(slurm, place)


def test_what_slurm_refuses_is_said_before_anything_is_submitted(place: Place, slurm: Cluster) -> None:
    (place.cwd / "one.yaml").write_text(CAMPAIGN)
    place.env["DASK_JOBQUEUE__SLURM__QUEUE"] = "absent"
    done = place.vnet(*RUN, "--on", "slurm:1", before=slurm.at(place.cwd))
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert "--on slurm:1: Slurm does not take such a job: " in done.stderr
    assert "invalid partition specified: absent" in done.stderr and "jobqueue.yaml" in done.stderr
    left(slurm, place)


def test_a_job_that_ends_before_its_worker_comes_is_told_with_its_log(place: Place, slurm: Cluster) -> None:
    (place.cwd / "one.yaml").write_text(CAMPAIGN)
    place.env["DASK_JOBQUEUE__SLURM__PYTHON"] = "/no/such/python"
    done = place.vnet(*RUN, "--on", "slurm:1", before=slurm.at(place.cwd))
    assert done.returncode == 3
    assert "of Slurm ended before its worker came; its log ends with\n" in done.stderr
    assert "/no/such/python: No such file or directory" in done.stderr
    left(slurm, place)


def begun(process: subprocess.Popen[str], campaign: Path, slurm: Cluster) -> str:
    """Waits until a lab has begun, and returns the id of its job."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        for note in campaign.glob("running-*.json"):
            if (campaign / json.loads(note.read_text())["run_dir"] / "raw").exists():
                (job,) = slurm.queue()
                return job
        time.sleep(0.05)
    raise AssertionError("no cell began")


def left(slurm: Cluster, place: Place) -> None:
    """Asserts that neither jobs nor keys nor logs are left, once the last job has ended."""
    deadline = time.monotonic() + 30
    while jobs := slurm.queue():
        assert time.monotonic() < deadline, jobs
        time.sleep(0.1)
    for where in (place.cwd, slurm.directory):
        assert not [path.name for path in where.iterdir() if path.name.startswith((".vnet-slurm", "slurm-"))]
