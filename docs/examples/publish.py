"""Makes the published examples: runs each, keeps and shrinks what its page needs.

    publish.py [NAME...]              runs and publishes these examples of examples.toml (default: those in
                                      virtual time, all of them; in real time an example takes long)
    publish.py --from DIR NAME        publishes a campaign or run that is there already
    publish.py --moved                names the examples that other sources than the present ones have made:
                                      a changed comment is enough (fresh.py runs a cell of each instead)

A command of examples.toml may begin with NAME=VALUE, as in a shell: it runs with that beside our environment.
-p and --seed are passed on to the command, --into takes another directory than docs/examples: for trying it
on a small run. `made.json` of an example has its command, seeds, commit, the hashes of the code that made
it, and its cheapest cell, by which fresh.py judges whether it is stale.
README.md of an example is written by hand and left as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import fresh
import shrink

from orchestrator.campaign import journal
from reports.papers import PAPERS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VNET = Path(sys.executable).parent / "vnet"
MOST_BYTES = 1_500_000  # of one example: the tree stays light with ten of them
# Sources that an example's figures and page come from; `inputs` of the run adds what was built and installed.
SOURCES = {
    "agent": ("images/agent", "Cargo.lock"),
    "reducer": ("capture/reducer", "Cargo.lock"),
    "kernel": ("images/kernel",),
    "orchestrator": ("orchestrator", "contract"),
    "capture": ("capture",),
    "reports": ("reports",),
}
SUFFIXES = {".py", ".rs", ".toml", ".lock", ".j2", ".css", ".js", ".yaml", ".xml", ".sh", ".patch", ""}


def source_hashes(root: Path) -> dict[str, str]:
    """SHA-256 of each part's sources, by path and content; what is built from them does not count."""
    return {part: _hash(root, [root / path for path in paths]) for part, paths in SOURCES.items()}


def _hash(root: Path, paths: list[Path]) -> str:
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}
    whole = hashlib.sha256()
    for file in sorted(files):
        if file.is_file() and file.suffix in SUFFIXES and "__pycache__" not in file.parts:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            whole.update(f"{file.relative_to(root)} {content}\n".encode())
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Command:
    """Of vnet: its words, and what it runs with beside our own environment."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def time(self) -> str:
        """In which it runs; without --time it is real."""
        return self.words[self.words.index("--time") + 1] if "--time" in self.words else "real"

    @classmethod
    def read(cls, text: str) -> Command:
        words, environment = shlex.split(text), {}
        while words and (assigned := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
            environment[assigned[1]] = assigned[2]
            del words[0]
        return cls(words, environment)

    def __str__(self) -> str:
        """As a shell takes it."""
        assigned = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*assigned, "vnet", shlex.join(self.words)])


def listed() -> dict[str, Command]:
    found = tomllib.loads((HERE / "examples.toml").read_text(encoding="utf-8"))
    return {name: Command.read(example["command"]) for name, example in found.items()}


def run(command: Command, out: Path) -> float:
    """Seconds on the wall clock; `out` is the directory of the campaign or run."""
    start = time.monotonic()
    argv, environment = [str(VNET), *command.words, "--out", str(out)], os.environ | command.environment
    done = subprocess.run(argv, cwd=ROOT, env=environment, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise SystemExit(f"examples: status {done.returncode} of {command}: it says why above; mend that")
    return time.monotonic() - start


def results(directory: Path) -> Path:
    """The directory that has the report: the campaign's own, else the one run's below it."""
    if (directory / "report" / "index.html").exists():
        return directory
    found = sorted(page.parents[1] for page in directory.glob("*/*/report/index.html"))
    if len(found) != 1:
        raise SystemExit(
            f"examples: {directory}: {len(found)} reports in it; an example is one campaign or one run"
        )
    return found[0]


def manifests(directory: Path) -> list[dict[str, Any]]:
    """Of the run, or of each cell's last run: one that was interrupted and run again counts for nothing."""
    own = directory / "manifest.json"
    cells = [] if own.exists() else sorted(line["run_dir"] for line in journal.latest(directory).values())
    files = [own] if own.exists() else [directory / cell / "manifest.json" for cell in cells]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def made_of(name: str, command: Command, directory: Path) -> dict[str, Any]:
    """What made.json says. Everything must have run in its command's time, of the same inputs, to its end.

    Runs in real time do not say their inputs: theirs are the versions of the programs.
    """
    found = manifests(directory)
    for manifest in found:
        for key, wanted in (("time", command.time), ("state", "complete")):
            if manifest.get(key) != wanted:
                lab = f"{manifest.get('lab')}/{manifest.get('run')}"
                raise SystemExit(f"examples: {name}: {lab}: {key} is {manifest.get(key)}, must be {wanted}")
    if not found:
        raise SystemExit(f"examples: {name}: {directory}: no run is there; vnet says why above")
    inputs: dict[str, Any] = {}
    for manifest in found:
        own = manifest["inputs" if command.time == "virtual" else "versions"]
        if any(inputs.get(program, one) != one for program, one in own.items()):
            raise SystemExit(
                f"examples: {name}: {directory}: runs of different programs; run all of them anew"
            )
        inputs |= own
    return {
        "command": str(command),
        "seeds": sorted({manifest["seed"] for manifest in found}),
        "runs": len(found),
        "sources": source_hashes(ROOT),
        "inputs": inputs,
        "rules": rules_of(found),
        "commit": commit(),
        "cell": _cell(command, directory),
    }


def commit() -> str:
    """Returns the short name of the commit that is checked out, with "+" if the tree differs from it; empty
    outside a repository, and on a machine without git.
    """
    if shutil.which("git") is None:
        return ""
    argv = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _cell(command: Command, directory: Path) -> dict[str, Any] | None:
    if command.time != "virtual":
        return None
    if (directory / "manifest.json").exists():
        runs = [(directory, directory.name, _taken(directory))]
    else:
        lines = journal.latest(directory).values()
        runs = [(directory / one["run_dir"], one["cell"], float(one.get("wall_s") or 0)) for one in lines]
    found = fresh.recorded(runs, command.environment)
    return None if found is None else asdict(found)


def _taken(run: Path) -> float:
    """Seconds from the first to the last file that the run wrote."""
    times = [file.stat().st_mtime for file in run.rglob("*") if file.is_file()]
    return round(max(times) - min(times), 1)


def rules_of(found: list[dict[str, Any]]) -> dict[str, str]:
    """A hash of the rule of each claim that the example is judged by, by the claim's key: `rejudged` keeps
    the verdicts of the example's page only where the rule is the same.
    """
    names = {str(manifest.get("reference")) for manifest in found} & PAPERS.keys()
    return {claim.key: claim.rule_hash for name in sorted(names) for claim in PAPERS[name].claims().claims}


def publish(name: str, command: Command, directory: Path, into: Path) -> int:
    """Replaces the example's page, tables and made.json; bytes of the whole example."""
    source, place = results(directory), into / name
    made = made_of(name, command, source)
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as temporary:
        fresh = Path(temporary)
        shrink.page(source, fresh)
        (fresh / "made.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        if (readme := place / "README.md").exists():
            shutil.copyfile(readme, fresh / "README.md")
        total = _light_enough(name, fresh)
        shrink.replace(place, fresh)
    return total


def _light_enough(name: str, place: Path) -> int:
    """Bytes of the example, if it may be published."""
    sizes = {file: file.stat().st_size for file in place.rglob("*") if file.is_file()}
    total = sum(sizes.values())
    if total > MOST_BYTES:
        largest = sorted(sizes, key=lambda file: -sizes[file])[:3]
        text = ", ".join(f"{file.relative_to(place)} {sizes[file]:,}" for file in largest)
        raise SystemExit(f"examples: {name}: {total:,} bytes, at most {MOST_BYTES:,}; the largest: {text}")
    return total


def moved(into: Path) -> list[str]:
    """One line for each example that the present code did not make."""
    now, found = source_hashes(ROOT), []
    for name in listed():
        file = into / name / "made.json"
        made = json.loads(file.read_text(encoding="utf-8"))["sources"] if file.exists() else {}
        parts = [part for part in now if made.get(part) != now[part]]
        if parts:
            found.append(
                f"{name}: made by other sources of {', '.join(parts)}; make examples EXAMPLES={name}"
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--from", dest="source", type=Path, metavar="DIR")
    parser.add_argument("--into", type=Path, default=HERE)
    parser.add_argument("--moved", action="store_true")
    parser.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed")
    options = parser.parse_args()
    if options.moved:
        lines = moved(options.into)
        print("\n".join(lines))
        raise SystemExit(1 if lines else 0)
    known = listed()
    names = options.names or [name for name, command in known.items() if command.time == "virtual"]
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(
            f"examples: {', '.join(unknown)}: not in examples.toml, which has {', '.join(known)}"
        )
    if options.source and len(names) != 1:
        raise SystemExit("examples: --from publishes one example: name it")
    more = [word for parameter in options.parameters for word in ("-p", parameter)]
    more += ["--seed", options.seed] if options.seed else []
    for name in names:
        command = Command(known[name].words + more, known[name].environment)
        with tempfile.TemporaryDirectory(prefix="vnet-example-", dir="/var/tmp") as scratch:
            out = Path(scratch) / name
            taken = "" if options.source else f", {run(command, out):.0f} s"
            size = publish(name, command, options.source or out, options.into)
        print(f"examples: {options.into / name}: {size:,} bytes{taken}")


if __name__ == "__main__":
    main()
