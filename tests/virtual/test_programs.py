"""Tests that real programs of many kinds run in virtual time and repeat to the byte, or are refused."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from program_cases import PROGRAMS, BuildError, Program, topology
from virtual_place import Place

pytestmark = pytest.mark.uml


@pytest.fixture(params=PROGRAMS, ids=[one.name for one in PROGRAMS])
def built(request: pytest.FixtureRequest) -> Iterator[tuple[Program, Path]]:
    """Yields a program and the directory where it was built; skips it if it is not here."""
    program: Program = request.param
    if why := program.missing():
        pytest.skip(why)
    where = Path(tempfile.mkdtemp(prefix="vnet-program-", dir="/tmp"))
    try:
        where.chmod(0o755)
        try:
            program.build(where)
        except BuildError as error:
            pytest.skip(str(error))
        yield program, where
    finally:
        shutil.rmtree(where)


def test_a_program_runs_and_repeats_or_is_refused(place: Place, built: tuple[Program, Path]) -> None:
    program, where = built
    text = topology(program, where).replace("    segment:", f"    {_mounts(program, where)}\n    segment:")
    (place.cwd / "program.yaml").write_text(text)
    if program.refused:
        done = place.vnet("run", "program.yaml", "--time", "virtual", "--results", "out")
        assert done.returncode == 3 and program.refused in done.stderr, done.stderr
        assert "program.yaml:" in done.stderr
        return
    first, second = (place.run(file="program.yaml") for _ in range(2))
    log = (first.run_dir / "raw" / "logs" / "client.client.log").read_text()
    assert program.proof in log, log
    assert not [one for one in first.manifest["warnings"] if one["code"] in ("node-failed", "end-state")]
    assert first.hashes == second.hashes
    if program.server:
        assert (first.run_dir / "pcap" / "all.pcap").stat().st_size > 2_000


def _mounts(program: Program, where: Path) -> str:
    """Returns the key by which a node sees the program's directory, with what the program's node needs."""
    return f"mounts: {{read: [{where}]}}" if "PLACE" in program.client else "env: {}"
