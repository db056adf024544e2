"""Tests that `vnet verify` confirms that a run repeats, or shows the first difference."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_place import Place, Ran


@pytest.fixture(scope="module")
def whole(places: Callable[[str], Place]) -> tuple[Place, Ran]:
    """Returns the place and the directory of a complete run with tables and page."""
    place = places("whole")
    return place, place.run("--strict")


def test_a_run_with_its_report_is_identical(whole: tuple[Place, Ran]) -> None:
    place, ran = whole
    done = place.vnet("verify", str(ran.run_dir))
    assert done.returncode == 0, done.stderr
    assert f"identical: {len(ran.hashes)} files, byte for byte" in done.stdout
    for name in ("summary.json", "messages.parquet", "packets/all.parquet", "report/tables/metrics.csv"):
        assert name in ran.hashes
    assert any(name.endswith(".svg") for name in ran.hashes)
    assert [p.name for p in ran.run_dir.parent.iterdir()] == [ran.run_dir.name]  # no other directory is left


def test_a_changed_packet_is_shown_and_a_package_that_was_another_named(
    whole: tuple[Place, Ran], tmp_path: Path
) -> None:
    place, ran = whole
    copy = tmp_path / "copy"
    shutil.copytree(ran.run_dir, copy)
    pcap = copy / "pcap" / "all.pcap"
    data = bytearray(pcap.read_bytes())
    first = 24 + 16 + int.from_bytes(data[24 + 8 : 24 + 12], "little")
    data[first + 16 + 5] ^= 0xFF  # flips bits of the destination in the second packet
    pcap.write_bytes(data)
    manifest = json.loads((copy / "manifest.json").read_text())
    now = manifest["inputs"]["package mosquitto"]
    manifest["inputs"]["package mosquitto"] = "1.0-1 0123456789abcdef"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    done = place.vnet("verify", str(copy))
    assert done.returncode == 1
    assert "first difference: pcap/all.pcap, packet 2" in done.stdout
    assert "was changed after the run" in done.stderr
    assert f"inputs differ: package mosquitto was 1.0-1 0123456789abcdef, is {now};" in done.stderr


def test_a_run_in_real_time_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text('{"time": "real", "state": "complete"}')
    done = place.vnet("verify", "run")
    assert done.returncode == 1
    assert "a run in real time cannot repeat" in done.stderr
