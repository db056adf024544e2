"""Runs a program of the tests in a lab kernel of its own, as its only work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lab_plans import make_plan, node

from orchestrator.kernel.protocol import Launch
from orchestrator.kernel.uml.kernel import UmlKernel
from orchestrator.project import AGENT

ROOM_FOR = 300  # nodes: what memory the kernel may take


def in_guest(script: Path, directory: Path, arguments: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Its exit status and output. `directory` is writable there, under the same name."""
    name = f"guest-{directory.name[:20]}"
    plan = make_plan(name, tuple(node(name, n, f"n{n}") for n in range(ROOM_FOR % 250)))
    words = [f"/host{script}", *arguments]
    kernel = UmlKernel(payload=lambda _launch, _state: words)
    state = directory / "state"
    launch = Launch(plan, directory / "run", state, AGENT, scenario=True)
    handle = kernel.start(launch)
    said = []
    try:
        for event in handle.events():
            said.append(str(event.get("text", event)))
        return handle.wait(timeout_s), "\n".join(said)
    finally:
        handle.kill()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="vg") as place:
        status, text = in_guest(Path(sys.argv[1]), Path(place), sys.argv[2:], 600)
        print(text)
        sys.exit(status)
