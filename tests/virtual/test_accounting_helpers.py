"""Tests programs that account for their messages with vNET's helpers, in virtual time: in C, Go, Java,
JavaScript, Python and Rust, a sender and a receiver for each language.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from virtual_place import Place

sys.path.insert(0, str(Path(__file__).parents[1] / "accounting"))
from building import build, missing

from vnet.accounting import FILES

HEAD = """\
name: helpers
segments: {left: {subnet: 10.50.0.0/24}, right: {subnet: 10.50.0.0/24}}
links: {way: {between: [left, right], both: {delay: 10 ms, loss: 2 %}}}
run: {connect_interval: 100 ms, hold: 4 s, drain: 5 s}
nodes:
"""
PAIR = """\
  LANGUAGE-take:
    segment: right
    mounts: {read: [PLACE]}
    software:
      take:
        command: exec COMMAND take 9000
        workdir: PLACE/LANGUAGE
        receives: true
        ready: {log: listening}
  LANGUAGE-send:
    segment: left
    mounts: {read: [PLACE]}
    software:
      send:
        command: exec COMMAND send 9000
        workdir: PLACE/LANGUAGE
        at_end: exited
        flows:
          readings:
            to: LANGUAGE-take
            size: 100 B
            rate: 20 /s
            class: LANGUAGE
            guarantee: {name: datagrams, single: true}
"""


# The languages are in two labs, because a lab's memory is limited.
GROUPS = (("c", "go", "rust"), ("java", "javascript", "python"))


@pytest.fixture(params=GROUPS, ids="-".join)
def programs(request: pytest.FixtureRequest) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yields a directory below /tmp with the built programs, one directory for each language, and the
    commands of those whose compiler is installed.
    """
    place = Path(tempfile.mkdtemp(prefix="vnet-helpers-", dir="/tmp"))
    try:
        place.chmod(0o755)
        found = {}
        for language in request.param:
            if missing(language) is None:
                (place / language).mkdir()
                found[language] = " ".join(build(language, place / language))
                shutil.rmtree(place / language / "cache", ignore_errors=True)
        yield place, found
    finally:
        shutil.rmtree(place)


def test_every_language_has_a_lab() -> None:
    assert sorted(language for group in GROUPS for language in group) == sorted(FILES)


def test_every_message_of_each_language_is_accounted_for(
    place: Place, programs: tuple[Path, dict[str, str]]
) -> None:
    where, commands = programs
    assert {"c", "python"} & commands.keys()
    pairs = [
        PAIR.replace("LANGUAGE", language).replace("PLACE", str(where)).replace("COMMAND", command)
        for language, command in commands.items()
    ]
    (place.cwd / "helpers.yaml").write_text(HEAD + "".join(pairs))
    ran = place.run("--strict", file="helpers.yaml")
    assert not [one for one in ran.manifest["warnings"] if "record" in str(one)], ran.manifest["warnings"]
    messages = pl.read_parquet(ran.run_dir / "messages.parquet")
    for language in commands:
        own = messages.filter(pl.col("class") == language)
        assert own.height >= 50, (language, own.height)
        assert set(own["outcome"].cast(str)) == {"sent"}, language
        arrived = own.filter(pl.col("received_ns").is_not_null())
        assert arrived.height > 0.8 * own.height, language
        assert ((arrived["received_ns"] - arrived["sent_ns"]) >= 10_000_000).all(), language
