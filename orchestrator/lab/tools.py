"""Runs `ip` and `tc` in namespaces: batches of lines on standard input, and JSON output for reading back."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from contract.plan import Step
from orchestrator.lab.errors import LabError
from orchestrator.queueing import classful, half_duplex, htb, matching, shaper
from orchestrator.queueing.discipline import QUEUE, RATE

SHOWN_LINES = 5


def run_step(step: Step) -> None:
    """Runs a step's tool with its text in its namespace; raises LabError with the first failing line."""
    run_batch(step.tool, step.netns, step.text, step.reason)


def run_batch(tool: str, netns: str, text: str, reason: str) -> None:
    """Runs `TOOL -n NETNS -batch -` with the text; raises LabError, with the line at which the tool stopped,
    if the tool fails or prints an error.
    """
    done = subprocess.run(
        [tool, "-n", netns, "-batch", "-"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or done.stderr.strip():
        raise LabError(f"{tool} in {netns}: {reason}: {_explain(done.stderr, text)}")


def read_json(tool: str, netns: str, *arguments: str) -> list[dict[str, Any]]:
    """Returns the entries that `TOOL -j -n NETNS ARGUMENTS` prints, without empty ones; raises LabError if it
    fails.
    """
    done = subprocess.run([tool, "-j", "-n", netns, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{tool} {' '.join(arguments)} in {netns}: {done.stderr.strip()}")
    return [entry for entry in json.loads(done.stdout or "[]") if entry]


def _explain(stderr: str, text: str) -> str:
    """Returns the first five lines of the tool's errors, and the line of the batch to which they refer if
    they name one.
    """
    lines = stderr.strip().splitlines() or ["failed without an error message"]
    said = "; ".join(lines[:SHOWN_LINES])
    for line in lines:  # "Command failed -:17": the tool counts lines from 1
        _, found, number = line.partition("Command failed -:")
        if found and number.strip().isdigit():
            batch = text.splitlines()
            at = int(number.strip()) - 1
            return f"{said}; the line is: {batch[at] if at < len(batch) else '?'}"
    return said


def qdiscs(netns: str) -> list[dict[str, Any]]:
    """Returns `tc -j qdisc` of a namespace, with the classes and filters of bands, the classes of rate
    shapers, and the redirections of half-duplex links. Raises LabError if tc fails.
    """
    found = read_json("tc", netns, "qdisc", "show")
    banded = [e["dev"] for e in found if e.get("handle") == QUEUE and e["kind"] in classful()]
    steered = [e["dev"] for e in found if e.get("handle") == RATE and e["kind"] == shaper.KIND]
    for device in dict.fromkeys([*banded, *steered]):
        found += htb.entries(device, _read(netns, "class", "show", "dev", device))
    for device in banded:
        found += matching.entries(device, _read(netns, "filter", "show", "dev", device, "parent", QUEUE))
    hooks = [e for e in found if e.get("kind") == half_duplex.HOOK]
    for block in dict.fromkeys(e["ingress_block"] for e in hooks if "ingress_block" in e):
        shown = _read(netns, "filter", "show", "block", str(block))
        found += half_duplex.entries({"block": block}, shown)
    for device in [e["dev"] for e in hooks if "ingress_block" not in e]:
        for way in half_duplex.WAYS:
            shown = _read(netns, "filter", "show", "dev", device, way)
            found += half_duplex.entries({"dev": device, "way": way}, shown)
    return found


def _read(netns: str, *arguments: str) -> str:
    done = subprocess.run(["tc", "-n", netns, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"tc {' '.join(arguments)} in {netns}: {done.stderr.strip()}")
    return done.stdout
