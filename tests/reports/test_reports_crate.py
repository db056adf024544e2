"""Tests that a research object crate can be checked without the directory that it was made from, and that
each change is named.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from synthetic import Shape, write_campaign

from reports.crate.metadata import NAME, Stated
from reports.crate.pack import CrateError, check, pack
from reports.study import study_of_campaign
from reports.verdicts import write

STATED = Stated("CC-BY-4.0", "2026-01-31")


@pytest.fixture(scope="module")
def crate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("crate")
    directory = write_campaign(place / "campaign", [Shape(), Shape(seed=2, suspect=True)])
    write(study_of_campaign(directory))
    made = place / "campaign.zip"
    assert pack(directory, made, STATED) > 4
    shutil.rmtree(directory)
    return made


def changed(crate: Path, name: str, content: bytes | None) -> Path:
    """Returns a copy of the crate in which one file has other content, is added, or (None) is missing."""
    other = crate.with_name("changed.zip")
    with zipfile.ZipFile(crate) as source, zipfile.ZipFile(other, "w") as target:
        for entry in source.infolist():
            if entry.filename != name:
                target.writestr(entry, source.read(entry))
        if content is not None:
            target.writestr(name, content)
    return other


def graph(crate: Path) -> dict[str, dict[str, object]]:
    with zipfile.ZipFile(crate) as archive:
        return {one["@id"]: one for one in json.loads(archive.read(NAME))["@graph"]}


def test_a_crate_is_whole_without_its_directory(crate: Path) -> None:
    found = check(crate)
    assert found.intact and found.files > 4 and found.verdicts > 0


def test_the_metadata_are_those_of_an_ro_crate(crate: Path) -> None:
    known = graph(crate)
    root, parts = known["./"], [key for key, one in known.items() if one["@type"] == "File"]
    assert known[NAME]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert (root["license"], root["datePublished"]) == (STATED.license, STATED.published)
    assert [one["@id"] for one in root["hasPart"]] == parts  # type: ignore[index, attr-defined]  # JSON
    first, second = (
        {one["name"]: one["value"] for one in known[run]["object"]}  # type: ignore[attr-defined]  # JSON
        for run in ("#run-1", "#run-2")
    )
    assert {"seed", "time"} <= first.keys() and first["state"] == "complete"
    assert (first["suspect"], second["suspect"]) == ("no", "yes")


@pytest.mark.parametrize("content", [b"{}", None])
def test_a_file_that_was_changed_or_lost_is_named(crate: Path, content: bytes | None) -> None:
    found = check(changed(crate, "cells.jsonl", content))
    word = "is missing" if content is None else "was changed"
    assert not found.intact and all(word in text for text in found.differing)
    assert found.differing[0].startswith("cells.jsonl: ")


def test_a_file_that_nobody_listed_is_named(crate: Path) -> None:
    assert check(changed(crate, "more.txt", b"x")).differing == (f"more.txt: is not listed in {NAME}",)


def test_a_verdict_that_the_tables_do_not_give_is_named(crate: Path) -> None:
    with zipfile.ZipFile(crate) as archive:
        text = archive.read(NAME).decode()
    first = graph(crate)["./"]["variableMeasured"][0]  # type: ignore[index]  # JSON
    other = "fails" if first["value"] != "fails" else "holds"
    lied = json.loads(text)
    next(one for one in lied["@graph"] if one["@id"] == "./")["variableMeasured"][0]["value"] = other
    found = check(changed(crate, NAME, json.dumps(lied).encode()))
    assert found.differing == (
        f"{first['propertyID']} {first['name']}: {other} in the crate, {first['value']} by this vNET",
    )


def test_what_is_no_crate_is_refused(tmp_path: Path, crate: Path) -> None:
    with pytest.raises(CrateError, match="cannot be read"):
        check(tmp_path / "none.zip")
    with pytest.raises(CrateError, match=r"is not one of vNET's .* `vnet crate` makes one"):
        check(changed(crate, NAME, b"{}"))
    with pytest.raises(CrateError, match="leads out of the crate"):
        check(changed(crate, "../outside", b"x"))


def test_a_crate_with_damaged_bytes_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.zip"
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(NAME, "{}" * 50)
    content = bytearray(damaged.read_bytes())
    begin = 30 + len(NAME)  # offset of the compressed data, after the entry's header
    content[begin : begin + 2] = b"\xff\xff"
    damaged.write_bytes(content)
    with pytest.raises(CrateError, match=r"damaged.zip: cannot be read \(.*; name a file that"):
        check(damaged)
