"""Synchrophasors in virtual time: every frame comes, and tshark reads each as it was meant."""

from __future__ import annotations

import subprocess
from collections import Counter

import polars as pl
from virtual_place import PROJECT, Place


def test_every_frame_comes_and_is_what_the_standard_says(place: Place) -> None:
    run = place.run(
        "-p", "stations=2", "-p", "hold=12s", file=str(PROJECT / "topologies" / "synchrophasor.yaml")
    )
    messages = pl.read_parquet(run.run_dir / "messages.parquet")
    assert set(messages["outcome"]) == {"sent"} and messages["received_ns"].null_count() == 0
    of = {name[0]: group for name, group in messages.group_by("class")}
    assert of["tcp"]["bytes"].unique().to_list() == [86] and of["udp"]["bytes"].unique().to_list() == [54]
    assert of["tcp"].height < of["udp"].height, "they measure less often from the tenth second on"

    packets = pl.read_parquet(run.run_dir / "packets" / "control.parquet")
    kinds = Counter(packets["app_types"].drop_nulls().explode().to_list())
    assert kinds["CFG-2"] == kinds["HEADER"] == 4 and kinds["COMMAND"] == 4 * 4
    assert kinds["DATA"] == messages.height and not kinds.keys() - {"CFG-2", "HEADER", "COMMAND", "DATA"}
    assert dissected(run.run_dir / "pcap" / "control.pcap") == kinds


def dissected(pcap: object) -> Counter[str]:
    """Frames by kind as tshark has them, whose checksums it finds right."""
    names = {"0": "DATA", "1": "HEADER", "3": "CFG-2", "4": "COMMAND"}
    argv = ["tshark", "-n", "-r", str(pcap), "-Y", "synphasor && !icmp", "-T", "fields"]
    argv += [part for field in ("frtype", "checksum.status") for part in ("-e", f"synphasor.{field}")]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for line in said.splitlines():
        kinds, states = line.split("\t")
        assert set(states.split(",")) == {"1"}, line
        found.update(names[str(int(kind, 0))] for kind in kinds.split(","))
    return found
