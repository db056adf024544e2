"""Tests the modification times of CI's copy of the Rust sources, from which cargo decides what to build
again.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).with_name("root.sh")


def ages(place: Path, call_s: int, **sources: str) -> dict[str, int]:
    """Returns the modification time of each source in a copy that a call at `call_s` makes."""
    copy = place / f"{call_s}/srv/vnet"
    (copy / "src").mkdir(parents=True)
    (place / "kept/vnet/cargo").mkdir(parents=True, exist_ok=True)
    for name, text in sources.items():
        (copy / f"src/{name}.rs").write_text(text)
    there = f"kept={place}/kept root={place}/{call_s} project=/srv/vnet"
    script = f". {SCRIPT}; {there}; date() {{ echo {call_s}; }}; sources_as_old_as_known"
    subprocess.run(["bash", "-c", script], check=True)
    return {name: int((copy / f"src/{name}.rs").stat().st_mtime) for name in sources}


def test_a_source_is_as_old_as_its_content_at_its_path(tmp_path: Path) -> None:
    assert ages(tmp_path, 100, a="1", b="1") == {"a": 100, "b": 100}
    assert ages(tmp_path, 200, a="1", b="2") == {"a": 100, "b": 200}
    # cargo last built b with its second content, so the first content counts as new; c is stored under
    # another path.
    assert ages(tmp_path, 300, a="1", b="1", c="2") == {"a": 100, "b": 300, "c": 300}
    assert ages(tmp_path, 400, b="1") == {"b": 300}
    assert ages(tmp_path, 500, a="1", b="1") == {"a": 500, "b": 300}
