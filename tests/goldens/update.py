"""Runs the golden experiments and writes their hashes and reference data: `update.py "why they change"
[LAB...]`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import golden_labs as golden


def update(lab: golden.Lab, record: dict[str, object], reason: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run_dir = golden.run(lab, Path(directory))
        content = golden.contents(run_dir)
        inputs, ours = golden.inputs(run_dir), golden.ours(run_dir)
    files = golden.hashes(content)
    labs = record.setdefault("labs", {})
    assert isinstance(labs, dict)
    known = labs.get(lab.name, {"files": {}, "history": []})
    if files == known["files"]:
        labs[lab.name] = known | {"inputs": inputs, "ours": ours}
        print(f"{lab.name}: unchanged")
        return
    history = [*known["history"], {"hash": golden.combined(files), "reason": reason}]
    labs[lab.name] = {"files": files, "history": history, "inputs": inputs, "ours": ours}
    shutil.rmtree(golden.reference(lab.name, "x").parent, ignore_errors=True)
    for name, lines in content.items():
        if not golden.kept(name):
            continue
        path = golden.reference(lab.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines[: golden.KEPT]))
    print(f"{lab.name}: {len(files)} files, {golden.combined(files)[:12]}")


def main() -> None:
    if len(sys.argv) < 2 or len(sys.argv[1].split()) < 3:
        raise SystemExit('update.py: give the reason, in a few words: update.py "why they change" [LAB...]')
    record = json.loads(golden.RECORD.read_text()) if golden.RECORD.exists() else {}
    record.pop("inputs", None)  # of all labs together, as they once were
    for lab in golden.LABS:
        if not sys.argv[2:] or lab.name in sys.argv[2:]:
            update(lab, record, sys.argv[1])
    golden.RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


main()
