"""Changes one file of a run or campaign directory, reports the directory again with the real command, and
judges the outcome.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mutations import mutate

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "reports")]

from synthetic import write_campaign, write_run  # noqa: E402
from synthetic_shape import Shape  # noqa: E402

from contract import seal  # noqa: E402
from orchestrator.cli.main import main  # noqa: E402
from reports.report import campaign_report, report  # noqa: E402

MARKED = re.compile(
    r"<strong>Suspect\.|cannot be read|is not there|not a finished cell|is in no figure"
    r"|manifest\.json differ in"
)
SHAPE = Shape(clients=3, ramp_s=5, hold_s=20)


def digests(directory: Path) -> dict[str, bytes]:
    """Returns the bytes of every file except those of the report."""
    files = [
        p for p in directory.rglob("*") if p.is_file() and "report" not in p.relative_to(directory).parts
    ]
    return {str(p.relative_to(directory)): p.read_bytes() for p in files}


def recorded(folder: Path) -> Path:
    """Makes a run of the fake driver with all its records, from which `vnet report --reduce` starts."""
    pair = str(ROOT / "topologies" / "pair.yaml")
    status, _, err = called("run", pair, "--kernel", "fake", "-p", "hold=1 s", "--results", str(folder))
    assert status == 0, err
    (run,) = folder.glob("*/*")
    assert called("report", str(run), "--reduce")[0] == 0
    return run


def called(*words: str) -> tuple[int, str, str]:
    """Runs the command line in this process and returns its status, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    return status, out.getvalue(), err.getvalue()


def original(folder: Path, campaign: bool) -> Path:
    """Makes a run or campaign directory as vnet leaves it, reported and sealed."""
    if not campaign:
        run = write_run(folder / "run", SHAPE)
        seal.seal(run)
        report(run)
        return run
    made = write_campaign(folder / "campaign", [SHAPE, Shape(clients=3, ramp_s=5, hold_s=20, qos=2)])
    (made / "campaign.json").write_text('{"name": "c", "description": "d", "command": "vnet"}')
    for run in sorted((made / "runs").iterdir()):
        seal.seal(run)
    campaign_report(made)
    return made


def all_of(folder: Path) -> list[Path]:
    """Makes a run, a campaign, and a run with raw records; each is changed equally often."""
    made = [original(folder / kind, kind == "campaign") for kind in ("run", "campaign")]
    return [*made, recorded(folder / "recorded")]


def tried(whole: Path, seed: int, folder: Path) -> tuple[str, str]:
    """Changes a copy, reports it and returns (the change, the outcome): refused, marked, unchanged, or a
    forbidden outcome.

    Records are reduced again, for half of the seeds twice, because the first reduction seals what a second
    one finds.
    """
    copy = folder / whole.name
    shutil.copytree(whole, copy, copy_function=shutil.copy2)
    again = ("--reduce",) if (whole / "raw").is_dir() else ()
    try:
        said = mutate(copy, seed)
        for _ in range(1 + (seed % 2 if again else 0)):
            status, _, err = called("report", str(copy), *again)
        return said, _judged(whole, copy, status, err)
    finally:
        shutil.rmtree(copy)


def _judged(whole: Path, copy: Path, status: int, err: str) -> str:
    if "internal error" in err or "Traceback" in err:
        return f"BROKEN: {' '.join(err.split())[:300]}"
    if status:
        return "refused" if str(copy) in err else f"BROKEN: {status}, {' '.join(err.split())[:300]}"
    if MARKED.search((copy / "report" / "index.html").read_text(encoding="utf-8")):
        return "marked"
    plain = (whole / "report" / "index.html").read_text(encoding="utf-8")
    same = _figures(plain) == _figures((copy / "report" / "index.html").read_text(encoding="utf-8"))
    return "unchanged" if same else "BROKEN: figures differ and nothing says so"


def _figures(page: str) -> list[str]:
    """Returns the cells of the page's tables."""
    return re.findall(r"<td>(.*?)</td>", page)


def sweep(seeds: Iterator[int], seconds: float) -> Counter[str]:
    """Tries seeds for a number of seconds, prints the forbidden outcomes, and returns the number of each
    outcome.
    """
    found: Counter[str] = Counter()
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wholes = all_of(folder)
        (folder / "tried").mkdir()
        for seed in seeds:
            said, outcome = tried(wholes[seed % len(wholes)], seed, folder / "tried")
            found[outcome.partition(":")[0]] += 1
            if outcome.startswith("BROKEN"):
                print(f"seed {seed}: {said}: {outcome}", flush=True)
            if time.monotonic() > until:
                break
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0, help="of the first change; the next ones follow")
    asked = parser.parse_args()
    counted = sweep(iter(range(asked.seed, 1 << 31)), asked.seconds)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items())))
    sys.exit(bool(counted["BROKEN"]))
