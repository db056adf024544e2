"""Changes parts of shipped topologies at random and plans them with the real command, which must print a plan
or the errors in the file.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from mutations import VALUES, places

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from orchestrator.cli.main import main  # noqa: E402

FOLDER = ROOT / "topologies"
QUANTITIES = (
    "0", "-1 ms", "0 ms", "1 ns", "1e30 s", "99999 h", "0 bit/s", "1 bit/s", "1e30 Gbit/s", "0 %", "100 %",
    "101 %", "0 B", "1 TB", "10.0.0.0/0", "10.0.0.1/32", "::/0", "fd00::/127", "255.255.255.255",
    "client[1-3]", "client[9-1]", "client[1-999999]", "a.b.c.d", "$nothing", "${clients}", "${hold}", "eth0",
    "lo", "broker", "all",
)  # fmt: skip
Place = tuple[Any, ...]


def corpus() -> dict[str, Any]:
    """Returns every shipped topology that has nodes, as a document by file name."""
    files = [
        p for p in sorted(FOLDER.rglob("*.yaml")) if "profiles" not in p.parts and "atlas" not in p.parts
    ]
    documents = {str(path.relative_to(FOLDER)): yaml.safe_load(path.read_text()) for path in files}
    return {name: document for name, document in documents.items() if "nodes" in document}


class Mutator:
    """Changes documents so that most of their structure stays; inserted parts come from all documents of the
    corpus.
    """

    def __init__(self, documents: dict[str, Any]) -> None:
        self._documents = documents
        self._branches = [
            (place[-1], _at(document, place)) for document in documents.values() for place in places(document)
        ]
        self._keys = sorted({str(key) for key, _ in self._branches if isinstance(key, str)})

    def changed(self, rng: random.Random) -> tuple[str, Any, str]:
        """Returns (file, its document with one to three changes, a description of them)."""
        name = rng.choice(sorted(self._documents))
        document = copy.deepcopy(self._documents[name])
        said = [self._change(document, rng) for _ in range(rng.randint(1, 3)) if document]
        return name, document, "; ".join(said)

    def _change(self, document: Any, rng: random.Random) -> str:
        *above, key = rng.choice(list(places(document)))
        holder = _at(document, tuple(above))
        how = rng.choice(("value", "quantity", "branch", "namesake", "delete", "rename", "add", "swap"))
        if how == "value":
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif how == "quantity":
            holder[key] = rng.choice(QUANTITIES)
        elif how == "branch":
            holder[key] = copy.deepcopy(rng.choice(self._branches)[1])
        elif how == "namesake":
            holder[key] = copy.deepcopy(rng.choice([b for k, b in self._branches if k == key] or [None]))
        elif how == "delete":
            del holder[key]
            return f"delete {'.'.join(map(str, (*above, key)))}"
        elif how == "rename" and isinstance(holder, dict):
            holder[rng.choice(self._keys)] = holder.pop(key)
        elif how == "add" and isinstance(holder, dict):
            new, branch = rng.choice(self._branches)
            holder[new if isinstance(new, str) else "x"] = copy.deepcopy(branch)
        else:
            other = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            holder[key], holder[other] = holder[other], holder[key]
        return f"{how} {'.'.join(map(str, (*above, key)))}"


def _at(document: Any, place: Place) -> Any:
    for step in place:
        document = document[step]
    return document


def tried(name: str, document: Any, folder: Path) -> str:
    """Plans the document and returns `planned`, `refused` or a forbidden outcome. `folder` is a copy of the
    shipped topologies, for the files that they read.
    """
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    file = (folder / name).with_name("changed.yaml")
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["plan", "--bounds", str(file)])
    if "internal error" in err.getvalue() or "Traceback" in err.getvalue():
        return f"BROKEN: {' '.join(err.getvalue().split())[-400:]}"
    if status == 0:
        return "planned" if out.getvalue() else "BROKEN: planned without a word"
    return "refused" if str(file) in err.getvalue() else f"BROKEN: {status}: {err.getvalue()[:300]}"


def sweep(seeds: Iterator[int], seconds: float) -> Counter[str]:
    """Tries the seeds for a number of seconds, prints forbidden outcomes and cases that take more than 20 s,
    and returns the number of each outcome.
    """
    found: Counter[str] = Counter()
    until = time.monotonic() + seconds
    mutator = Mutator(corpus())
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(FOLDER, Path(place) / "topologies")
        for seed in seeds:
            name, document, said = mutator.changed(random.Random(seed))
            began = time.monotonic()
            outcome = tried(name, document, folder)
            found[outcome.partition(":")[0]] += 1
            if outcome.startswith("BROKEN"):
                print(f"seed {seed}: {name}: {said}: {outcome}", flush=True)
            if (took := time.monotonic() - began) > 20:
                print(f"seed {seed}: {name}: {said}: took {took:.0f} s", flush=True)
            if time.monotonic() > until:
                break
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0, help="of the first; the next ones follow")
    asked = parser.parse_args()
    counted = sweep(iter(range(asked.seed, asked.seed + asked.count)), asked.seconds)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items())))
    if (count := counted.total()) < asked.count:
        after = asked.seed + count
        print(f"ended after {asked.seconds:g} s with {count} of {asked.count}; go on with --seed {after}")
    sys.exit(bool(counted["BROKEN"]))
