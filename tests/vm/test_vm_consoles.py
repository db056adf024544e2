"""Tests a machine that prints without end: the file of its console has a size limit, and the machine
continues.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from vm_agents import guest_of

from orchestrator.lab.clock import SECOND, JumpingClock
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm import consoles
from orchestrator.lab.vm.consoles import Consoles, shorten

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consoles, "MOST_BYTES", 1000)
    monkeypatch.setattr(consoles, "KEPT_BYTES", 10)


def test_the_beginning_and_the_end_stay_and_the_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    with log.open("ab", buffering=0) as qemu:  # opened as QEMU opens it
        qemu.write(b"Linux 6.1\n" + b"x" * 5000 + b"the end 1\n")
        shorten(log)
        qemu.write(b"next")
    assert log.read_bytes() == b"Linux 6.1\n\n[vNET removed 5000 bytes here]\nthe end 1\nnext"


def test_a_console_beyond_the_bound_is_shortened_with_one_warning(tmp_path: Path) -> None:
    guest, warned = guest_of(tmp_path), list[tuple[str, str, str, bool]]()
    loop = Loop(JumpingClock())
    bounded = Consoles(loop, {"a": guest}, lambda *warning: warned.append(warning))
    loop.sleep_until(loop.clock.now_ns() + 2 * SECOND)  # the file does not exist yet
    guest.console_log.write_bytes(b"y" * 1000)
    loop.sleep_until(loop.clock.now_ns() + 2 * SECOND)
    assert guest.console_log.stat().st_size == 1000 and warned == []
    for _ in range(3):
        with guest.console_log.open("ab") as qemu:
            qemu.write(b"z" * 2000)
        loop.sleep_until(loop.clock.now_ns() + 2 * SECOND)
        assert guest.console_log.stat().st_size < 100
    ((code, text, _, suspect),) = warned
    assert code == "console" and text.startswith("nodes.a: its console printed more than") and not suspect
    bounded.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"z" * 5000)
    (tmp_path / "console.log").symlink_to("theirs")
    with pytest.raises(OSError, match="symbolic"):
        shorten(tmp_path / "console.log")
    assert (tmp_path / "theirs").stat().st_size == 5000


def test_qemu_appends_to_the_console_s_file() -> None:
    """Shows that QEMU opens the file with O_APPEND; without it, shortening the file would leave a hole."""
    domain = (ROOT / "orchestrator" / "lab" / "vm" / "domain.xml.j2").read_text()
    assert "<log file='{{ d.console_log }}' append='on'/>" in domain
