"""Measures the way from `make setup` to a page with the p99 of one's own service, by README.md's commands.

`.venv/bin/python bench/first_page.py [--setup]`, as root. --setup: in a clone of this commit, with `make
setup` in it first; else in this tree, and the time of `make setup` is missing. The services are a binary in
Go, a program in Python, and nginx with wrk; their files are those of the guides (docs/how-to). In real time,
so the lab kernel is not needed. Prints rows of seconds on the wall, which other work of the machine makes
longer, and of CPU.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from commands import ROOT, as_root

ALLOWED_S = 300.0
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LINES = ("vnet new --service", "vnet run mine.yaml")  # how README.md's commands begin, without .venv/bin/
SERVICE = '"$PWD/my-service"'
# service -> the command in place of README's own, and what builds it
SERVICES = {
    "a service in Go": ('"$PWD/service-go"', "go build -o service-go service.go"),
    "a service in Python": ('"python3 -u $PWD/service.py"', "true"),
}
GUIDE, NGINX = "docs/how-to/go-rust-node-java-python.md", "docs/how-to/nginx-postgresql-redis.md"


def commands_of_readme() -> tuple[str, str]:
    """Returns the two commands of README.md that make a topology for a service and run it."""
    lines = (ROOT / "README.md").read_text().splitlines()
    found = [next(line for line in lines if line.startswith(f".venv/bin/{start}")) for start in LINES]
    return found[0].partition("  #")[0], found[1].partition("  #")[0]


def files_of(page: str, place: Path) -> None:
    """Writes the files that a guide prints into `place`."""
    for name, text in BLOCK.findall((ROOT / page).read_text()):
        (place / name).write_text(text)


def timed(commands: Sequence[str], place: Path) -> tuple[float, float]:
    """Runs shell commands in `place`; returns seconds on the wall and of CPU. Ends the program with the
    output of a command that fails.
    """
    wall, cpu = time.monotonic(), sum(os.times()[2:4])
    for command in commands:
        done = subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 7, 8):  # an expectation may fail or stay open: the page is there
            raise SystemExit(
                f"first_page.py: {command}: status {done.returncode}\n{done.stdout}{done.stderr}"
            )
    return time.monotonic() - wall, sum(os.times()[2:4]) - cpu


def p99_ms(place: Path, name: str) -> float:
    """Returns the largest p99 of the clients in the only run of topology `name`, whose page must exist."""
    (run,) = (place / "results" / name).iterdir()
    if not (run / "report" / "index.html").exists():
        raise SystemExit(f"first_page.py: {run}: no page")
    rows = json.loads((run / "summary.json").read_text())
    return max(float(row["value"]) for row in rows if row["name"] == "program_latency_p99")


def row(name: str, seconds: float) -> dict[str, object]:
    print(f"first_page.py: {name}: {seconds:.1f} s", file=sys.stderr)
    return {
        "name": name,
        "value": seconds,
        "unit": "s",
        "peer": "300 s allowed",
        "ratio": seconds / ALLOWED_S,
    }


def measured(tree: Path) -> list[dict[str, object]]:
    """Makes each service's page in `tree`, in a directory of its own; returns rows of seconds."""
    new, run = commands_of_readme()
    own = {name: ([build, new.replace(SERVICE, command), run], GUIDE, "mine") for name, (command, build) in
           SERVICES.items()}  # fmt: skip
    own["nginx with wrk"] = ([".venv/bin/vnet run nginx.yaml"], NGINX, "nginx")
    rows = []
    for name, (lines, guide, topology) in own.items():
        place = Path(tempfile.mkdtemp(prefix="vnet-first-page-"))
        try:
            place.chmod(0o755)
            files_of(guide, place)
            (place / ".venv").symlink_to(tree / ".venv")
            wall_s, cpu_s = timed(lines, place)
            rows.append(row(f"to the page of {name}, p99 {p99_ms(place, topology):.0f} ms", wall_s))
            rows.append(row(f"to the page of {name}, CPU", cpu_s))
        finally:
            shutil.rmtree(place)
    return rows


def main() -> None:
    as_root()
    if sys.argv[1:] != ["--setup"]:
        json.dump(measured(ROOT), sys.stdout)
        return
    with tempfile.TemporaryDirectory(prefix="vnet-first-page-") as above:
        tree = Path(above) / "vnet"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
        kept = os.environ.pop("CARGO_TARGET_DIR", None)  # a newcomer has none
        wall_s, cpu_s = timed(["make setup"], tree)
        if kept is not None:
            os.environ["CARGO_TARGET_DIR"] = kept
        json.dump([row("make setup", wall_s), row("make setup, CPU", cpu_s), *measured(tree)], sys.stdout)


main()
