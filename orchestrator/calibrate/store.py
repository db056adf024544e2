"""Keeps calibrations: one file for each kernel, in the user's cache directory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from contract import regular
from orchestrator.kernel.lab_command import machine

SAME = ("cpu", "cores", "kernel")  # properties of a machine on which a calibration depends


@dataclass(frozen=True, slots=True)
class Calibration:
    """The load that a machine carried faithfully under one kernel.

    kernel: kind of the lab's kernel. release: of that kernel. machine: the result of `machine`. date: date of
    the measurement. timer_error_ns: 99th percentile of how late messages left at the lowest load.
    """

    kernel: str
    release: str
    machine: dict[str, Any]
    date: str
    link_packets_per_s: float
    packets_per_s: float
    link_bits_per_s: float
    bits_per_s: float
    messages_per_s: float
    timer_error_ns: int


class CalibrationError(ValueError):
    """A file of a calibration cannot be read; the text has place and remedy."""


def directory(env: Mapping[str, str] = os.environ) -> Path:
    """Returns ~/.cache/vnet/calibrations, or vnet/calibrations below XDG_CACHE_HOME."""
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "vnet" / "calibrations"


def save(one: Calibration, root: Path | None = None) -> Path:
    """Writes a calibration; it replaces an earlier one of the same kernel. Returns its file."""
    root = root or directory()
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{one.kernel}.json"
    regular.write(path, json.dumps(asdict(one), indent=1) + "\n")
    return path


def read(kernel: str, root: Path | None = None, here: Mapping[str, Any] | None = None) -> Calibration | None:
    """Returns the calibration of a kernel. None if there is none, or if it was measured on another machine or
    under another release of the kernel.

    here: the machine, by default this one. Raises CalibrationError for a damaged file.
    """
    path = (root or directory()) / f"{kernel}.json"
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text())
        one = Calibration(**{field.name: found[field.name] for field in fields(Calibration)})
        known, now = one.machine, machine() if here is None else here
        same = all(known.get(name) == now.get(name) for name in SAME)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CalibrationError(
            f"{path}: is no calibration ({error}); remove it, or run `vnet calibrate`"
        ) from error
    return one if same else None
