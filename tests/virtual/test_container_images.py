"""Tests nodes made from container images in virtual time: an image of the machine's own shell, and a refused
one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_place import PROJECT, Place

from orchestrator.images import oci
from orchestrator.images.oci.store import store

sys.path.insert(0, str(PROJECT / "tests/images"))
import oci_archives as made

TOPOLOGY = """\
name: contained
segments: {lan: {subnet: 10.9.0.0/24}}
nodes:
  app: {segment: lan, image: "oci:app.tar"}
  probe:
    segment: lan
    image: oci:app.tar
    software:
      look: {command: [/bin/sh, -c, "pwd; echo $COLOUR > a; read b < a; echo $b; echo /*"], env: {COLOUR: r}}
run: {hold: 2 s}
"""
ENTRYPOINT = ["/bin/sh", "-c", "echo $COLOUR; read it < /srv/text; echo $it; [ -e a ] || echo alone"]
CONFIG = {"Entrypoint": ENTRYPOINT, "Env": ["COLOUR=blue"], "WorkingDir": "/srv"}


def _shell() -> bytes:
    """Returns a layer with dash and the libraries that it needs."""
    linked = subprocess.run(["ldd", "/bin/dash"], capture_output=True, text=True, check=True).stdout
    files = re.findall(r"(/\S+) \(0x", linked)
    text = made.entry("srv/text", b"of the image\n")
    programs = [(name, Path(name)) for name in files] + [("/bin/sh", Path("/bin/dash"))]
    return made.tar(text, *(made.entry(n[1:], f.read_bytes(), mode=0o755) for n, f in programs))


@pytest.fixture
def archives(place: Place) -> Iterator[Path]:
    """Yields the directory for archives; removes their unpacked files afterwards."""
    yield place.cwd
    for path in place.cwd.glob("*.tar"):
        digest = oci.read(path).digest
        (store() / f".{digest}.lock").unlink(missing_ok=True)
        shutil.rmtree(store() / digest, ignore_errors=True)


def test_nodes_have_the_files_and_run_the_programs_of_an_image(place: Place, archives: Path) -> None:
    made.oci(archives / "app.tar", _shell(), config=CONFIG)
    (archives / "contained.yaml").write_text(TOPOLOGY)
    ran = place.run(file="contained.yaml")
    logs = {path.name: path.read_text().splitlines() for path in (ran.run_dir / "raw/logs").iterdir()}
    assert logs["app.entrypoint.log"] == ["blue", "of the image", "alone"]
    where, colour, root = logs["probe.look.log"]
    assert (where, colour) == ("/srv", "r")
    assert {"/bin", "/srv", "/proc"} <= set(root.split()) and not {"/usr", "/home", "/root"} & set(
        root.split()
    )


def test_an_image_that_leads_out_of_itself_is_refused_before_anything_runs(
    place: Place, archives: Path
) -> None:
    bad = made.oci(archives / "app.tar", made.tar(made.entry("a/../../evil", b"x")), config=CONFIG)
    (archives / "contained.yaml").write_text(TOPOLOGY)
    done = place.vnet("run", "contained.yaml", "--time", "virtual", "--results", "out")
    assert done.returncode == 3, done.stderr
    assert "contained.yaml: nodes.app.image: image oci:" in done.stderr
    assert "'a/../../evil': leads out of the image; it is not to be trusted" in done.stderr
    left = [path.name for path in store().iterdir() if oci.read(bad).digest in path.name]
    assert left == [f".{oci.read(bad).digest}.lock"]
