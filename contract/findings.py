"""Finds the reasons for which a run is suspect, for page, terminal, JUnit and `vnet.load` alike.

The manifest has the findings of the lab and of the reduction. This module adds those that the manifest cannot
have: a sealed file was changed, the manifest is absent or damaged, or no end of the run was written. It
imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contract import manifest, seal
from contract.manifest import Contents, Manifest, Warned

SEAL, DAMAGED = "seal", "damaged"
# Codes of findings about the machine that carries the lab: its effects on a run from outside. Other codes
# that make a run suspect may be effects of the tested system: a full queue (queue-drops), clients that a
# broker refused (sessions), a program that crashed (node-failed).
OF_MACHINE = frozenset(
    {"late", "clock-set"}
    | {
        f"{manifest.TRUST}{name}"
        for name in (
            "stalls", "stopped", "suspended", "clock-steps", "throttling", "run-queue", "core-steal",
            "core-busy", "heat", "busy", "steal", "sender", "captures",
        )
    }
)  # fmt: skip
ALTERED = "tables: `vnet report --reduce` makes them again; plan, manifest and proof come only from a new run"


def read(run_dir: Path) -> Manifest:
    """Returns the manifest, with an added finding for each file that was changed after it had been sealed,
    and for damage of the manifest; an empty manifest if the run has none.

    Raises ValueError if manifest.json is no JSON.
    """
    return Manifest.of(known(manifest.read(run_dir), seal.altered(run_dir)))


def known(found: Contents, altered: tuple[str, ...]) -> Contents:
    """Returns the content of a manifest with an added finding for each changed file (`altered`) and for
    damage of the manifest, and with `suspect` computed again; an empty manifest stays empty.

    Warnings that are no objects are left out.
    """
    if found == {}:
        return found
    if not isinstance(found, dict):  # a changed file may contain anything
        found, broken = {}, [_damaged("it is no object")]
    else:
        broken = [
            Warned(SEAL, f"{name} was changed after it had been written", ALTERED, True) for name in altered
        ]
    said, whole = _warnings(found)
    broken += [] if whole else [_damaged("its warnings are no list of objects")]
    marked: Contents = {**found, "warnings": [*map(asdict, broken), *said]}
    return {**marked, "suspect": bool(found.get("suspect")) or manifest.doubtful(marked)}


def _damaged(how: str) -> Warned:
    return Warned(DAMAGED, f"{manifest.NAME} is damaged: {how}", ALTERED, True)


def _warnings(found: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """Returns the warnings that are objects, and True if every warning is one; ([], False) without a list."""
    listed = found.get("warnings") or []
    if not isinstance(listed, list):
        return [], False
    said = [one for one in listed if isinstance(one, dict)]
    return said, len(said) == len(listed)


def reasons(found: Manifest) -> list[str]:
    """Returns the reasons why the run is suspect, one text each: its state if it is not complete, then the
    texts of its suspect warnings. Returns an empty list if it is not suspect.
    """
    if found == Manifest():
        return [f"{manifest.NAME} is not there"]
    why = f": {found.error}" if found.error else ""
    state = found.state or "unknown"
    ended = [] if state == manifest.COMPLETE else [f"the run's state is {state!r}{why}"]
    said = [str(w.get("text", "")) for w in found.warnings if w.get("suspect")]
    unsaid = ["the manifest marks it, without a reason"] if found.suspect else []
    return ended + said or unsaid


def why(found: Manifest) -> str | None:
    """Returns the first reason why the run is suspect; None if it is not."""
    return next(iter(reasons(found)), None)


def disturbed(found: Manifest) -> str | None:
    """Returns the text of the first finding that makes the run suspect and is about the machine (OF_MACHINE);
    None without one, also if the run is suspect for other reasons.
    """
    said = (
        str(w.get("text", "")) for w in found.warnings if w.get("suspect") and w.get("code") in OF_MACHINE
    )
    return next(said, None)
