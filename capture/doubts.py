"""What a reader of a run has to doubt: the one check that page, terminal, JUnit and `vnet.load` share.

The manifest says what the lab and the reduction found. Two things it cannot say of itself: that a file was
changed after it had been sealed, and that nobody wrote the run's end. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from capture import manifest, seal
from capture.manifest import Contents, Warned

SEAL = "seal"
ALTERED = "tables: `vnet report --reduce` makes them anew; plan, manifest and proof only the run itself can"


def read(run_dir: Path) -> Contents:
    """The manifest as a reader has to take it: with a finding for each file that is not as it was sealed."""
    return known(manifest.read(run_dir), seal.altered(run_dir))


def known(found: Contents, altered: tuple[str, ...]) -> Contents:
    """The same of a manifest that was read, and of the files that were changed."""
    if not found:
        return found
    broken = [
        Warned(SEAL, f"{name} was changed after it had been written", ALTERED, True) for name in altered
    ]
    warnings = [*(asdict(one) for one in broken), *(found.get("warnings") or [])]
    whole: Contents = {**found, "warnings": warnings}
    return {**whole, "suspect": bool(found.get("suspect")) or manifest.doubtful(whole)}


def reasons(found: Mapping[str, Any]) -> list[str]:
    """Why it is suspect, a sentence each; empty where it is not."""
    state = found.get("state", "unknown")
    why = f": {found['error']}" if found.get("error") else ""
    ended = [] if state == manifest.COMPLETE else [f"the run's state is {state!r}{why}"]
    said = [str(w.get("text", "")) for w in found.get("warnings", ()) if w.get("suspect")]
    unsaid = ["the manifest says so, and gives no reason"] if found.get("suspect") else []
    return ended + said or unsaid
