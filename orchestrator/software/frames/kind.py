"""Defines the registry entry of the RFC 2544 test of a path, with its description for readers."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from ..kind import Kind
from .checks import check
from .file import Frames
from .planning import plan
from .trials import KIND_NAME


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    sizes, tests = software.spec["sizes"], ", ".join(software.spec["tests"])
    of = f"{sizes[0]} B" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)} B"
    return f"frames of {of} to {software.spec['to']}: {tests}"


KIND = Kind(
    name=KIND_NAME,
    key=KIND_NAME,
    model=Frames,
    what="a test of a path",
    example="frames: {to: sink}",
    check=check,
    plan=plan,
    words=_words,
    endpoint=lambda _model: False,
    titles={
        "Frames": "software.NAME: a test of a path",
        "FramesOptions": "software.NAME.frames: a test of a path",
    },
)
