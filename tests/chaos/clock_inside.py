"""Runs scenes in a guest (for test_clock.py) while the guest's clock is set by an hour, and records each
outcome.

Arguments: the file that gets the outcomes as lines of JSON, a seed, the number of cases.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cases import SCENES, Case, Scene, tried
from faults import CLOCK_MS, HOUR_S, Clock

BEFORE_MS, AFTER_MS = 5000, 10_000  # ms; packets farther from the phases than this make a run suspect
MARK = "clock-set"


def marked(case: Case, results: Path) -> str:
    """Returns an error text if a run has packets outside its phases and is not marked for it; empty
    otherwise.
    """
    for file in results.rglob("manifest.json"):
        manifest = json.loads(file.read_text())
        phases = manifest["phases"]
        codes = {warning["code"] for warning in manifest["warnings"]}
        if not phases or MARK in codes:
            continue
        first, last = (phases[name][end] / 1e6 for name, end in (("ramp", 0), ("drain", 1)))
        for packets in (file.parent / "pcap").glob("*.pcap"):
            times = stamps_ms(packets.read_bytes())
            if times and (min(times) < first - BEFORE_MS or max(times) > last + AFTER_MS):
                seen, meant = f"{min(times):.0f} to {max(times):.0f} ms", f"{first:.0f} to {last:.0f}"
                return f"{packets.name}: packets from {seen} of a run from {meant}, and no {MARK}"
    return ""


def stamps_ms(pcap: bytes) -> list[float]:
    """Returns the times of the packets in ms; the file has this machine's byte order, and ns or µs by its
    magic number.
    """
    unit = {0xA1B23C4D: 1e6, 0xA1B2C3D4: 1e3}[int.from_bytes(pcap[:4], sys.byteorder)]
    found, at = [], 24
    while at + 16 <= len(pcap):
        seconds, parts, size = (int.from_bytes(pcap[at + n : at + n + 4], sys.byteorder) for n in (0, 4, 8))
        found.append(seconds * 1e3 + parts / unit)
        at += 16 + size
    return found


def also_marked(scene: Scene) -> Scene:
    def holds(case: Case, results: Path) -> str:
        return scene.holds(case, results) or marked(case, results)

    return dataclasses.replace(scene, holds=holds)


def main() -> None:
    file, rng, count = Path(sys.argv[1]), random.Random(int(sys.argv[2])), int(sys.argv[3])
    scenes = [
        also_marked(scene) for name, scene in SCENES.items() if name != "run"
    ]  # the fake driver has no clock
    with tempfile.TemporaryDirectory(prefix="vc") as folder, file.open("w") as out:
        for number in range(count):
            scene = scenes[number % len(scenes)]
            fault = Clock(rng.randint(*CLOCK_MS), rng.choice((HOUR_S, -HOUR_S)))
            before = time.monotonic()
            outcome = tried(scene, fault, Path(folder))
            took = round(time.monotonic() - before, 1)
            out.write(
                json.dumps({"scene": scene.name, "fault": str(fault), "outcome": outcome, "s": took}) + "\n"
            )
            out.flush()


main()
