"""Writes a trial as a topology file of its own, which holds its faults, its seed and its parameters."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML

from orchestrator.hunt.model import Data, HuntError, Trial
from orchestrator.language.source import read_document

WIDTH = 110


def content(trial: Trial, begin: str = "") -> str:
    """Returns the text of the trial's file. It is the hunt's file without the `hunt` block, with the trial's
    events in the timeline, its seed, and its parameters as defaults. begin: comment lines above it.
    """
    data = {key: value for key, value in trial.data.items() if key not in ("hunt", "campaign")}
    data["seed"] = trial.seed
    timeline = [*(data.pop("timeline", None) or ()), *map(dict, trial.events)]
    if timeline:
        data["timeline"] = timeline
    if trial.parameters:
        known: dict[str, Any] = dict(data.get("parameters") or {})
        for name, value in trial.parameters.items():
            known[name] = {**known[name], "default": value}
        data["parameters"] = known
    return begin + dumped(data)


def dumped(data: Data) -> str:
    """Returns plain data as YAML text that reads back as the same data; raises HuntError if it does not."""
    yaml = YAML()
    yaml.width = WIDTH
    yaml.default_flow_style = None
    out = io.StringIO()
    yaml.dump(data, out)
    text = out.getvalue()
    if read_document("trial", text.encode()).data != data:
        raise HuntError("the file cannot be written again as it was read; write it without anchors")
    return text
