"""Tests that retired words (docs/glossary.md has the present ones) stay out of code, docs, messages and
reports.

A word gets a line in RETIRED when its last use is gone. ALLOWED names the places that need it, with the
reason.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".j2", ".js", ".css", ".html", ".yaml", ".yml", ".toml", ".sh", ".rs", ""}
# Texts of other programs or of an earlier time: measured data, published reports, other works' texts,
# decisions.
NOT_OURS = ("tests/goldens/reference/", "tests/goldens/goldens.json", "docs/examples/", "docs/decisions/")

# Retired: the present word.
RETIRED = {
    r"(?<!timer )\bslacks?\b|(?<!timer)_slack\b|\bslack_": "tolerance",
    r"\brealised\b": "measured, or applied",
    r"\bwitness(es)?\b": "heartbeat",
    r"\bstrain\b": "disturbance",
    r"\buntouched\b": "queue read-back",
    r"\basked_(bps|delay_ns|loss)\b": "requested_...",
    r"[\"']asked[\"']\]|\.asked, link|: asked .*, read back": "requested",
    r"(?<!new )\bPromise\(|\bPROMISES?\b|[\"'`]promise[\"'`]|trust-promise|promise_held": "guarantee",
    r"\bpromises\.csv\b|\.promised?\b(?!`)|\bpromised?=|\b_?promised?\(": "guarantee",
    r"\b(sees|obeys|writes): ?[\[{]|^ +(sees|writes):$": "mounts, rate_limits_from",
    r"\bexpect: (exited|running)\b": "at_end",
    r"\bpromise: ?\{": "guarantee",
    r"\bvnet_clock\b": "vnet_cpu_clock",
    r"\b(lab|kernel|tests)[./]spread\b": "multi_host",
    r"\b(News|HostNews|Slack|Slacks|Halted|Witness|Obeys|PromiseOptions)\b": "LauncherEvents, Tolerance, ...",
    r"\blab[./](news|telling|orders|taken|halted|slack)\b": "launcher_events, node_config, ...",
    r"\bcapture[./](doubts|agreement|asked)\b": "findings, record_consistency, requested",
    r"\bsoftware[./]\w+[./]room\b": "kind",
}
# File or directory: why it may have retired words, and which.
TABLE = "the table of old names, or a test of it"
ALLOWED = {
    "contract/retired.py": (TABLE, "*"),
    "contract/tables.py": ("says what earlier versions wrote", r"\bstrain\b"),
    "tests/docs/test_retired_words.py": (TABLE, "*"),
    "tests/topology/test_retired.py": (TABLE, "*"),
    "tests/cli/test_migrate.py": (TABLE, "*"),
    "tests/capture/test_retired_names.py": (TABLE, "*"),
    "docs/contracts/": ("says what earlier versions wrote", "*"),
    "orchestrator/topology/retired.py": (TABLE, "*"),
    "contract/plan/flows.py": (TABLE, "*"),
    "tests/chaos/liars/": ("reads what earlier versions wrote", r"\brealised\b"),
}


# Directories that commands make; those that begin with a dot are left out, too.
MADE = {"target", "build", "dist", "results", "site", "node_modules", "__pycache__", "_carried"}


@cache
def files() -> dict[str, list[str]]:
    """Returns the lines of all files of the project's own, by path."""
    found: dict[str, list[str]] = {}
    for directory, below, names in os.walk(ROOT):
        below[:] = [one for one in below if not one.startswith(".") and one not in MADE]
        for file in (Path(directory, name) for name in names):
            name = file.relative_to(ROOT).as_posix()
            if file.suffix in SUFFIXES and not file.is_symlink() and not name.startswith(NOT_OURS):
                found[name] = file.read_text(encoding="utf-8").splitlines()
    return found


def allowed(name: str, word: str) -> bool:
    return any(name.startswith(place) and words in ("*", word) for place, (_, words) in ALLOWED.items())


@pytest.mark.parametrize("word", RETIRED)
def test_it_is_gone(word: str) -> None:
    search = re.compile(word)
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, lines in files().items()
        if not allowed(name, word)
        for number, line in enumerate(lines, 1)
        if search.search(line)
    ]
    assert not found, f"write {RETIRED[word]} instead:\n" + "\n".join(found)


@pytest.mark.parametrize("place", ALLOWED)
def test_an_exception_is_needed(place: str) -> None:
    words = [re.compile(word) for word in RETIRED if allowed(place, word)]
    lines = [line for name, found in files().items() if name.startswith(place) for line in found]
    assert any(word.search(line) for word in words for line in lines), "it excuses nothing"
