"""Tests the keys of TLS connections of a run: they decrypt its captures, and a wrong line is named."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from frames import ACK, PSH, START_NS, SYN, Frame, ethernet, ipv4, tcp, write

from capture import packets as reading
from capture.errors import CaptureError
from capture.keys import key_file, keys
from capture.packets import packets

GOOD = f"CLIENT_RANDOM {'ab' * 32} {'01' * 48}"


def folder(tmp_path: Path, **texts: str | bytes) -> Path:
    logs = tmp_path / "raw" / "logs"
    logs.mkdir(parents=True)
    for name, text in texts.items():
        (logs / f"{name}.keys").write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path


def test_the_keys_of_all_programs_are_one_file_while_it_is_needed(tmp_path: Path) -> None:
    run = folder(tmp_path, b="# comment\n" + GOOD + "\n", a=GOOD.replace("ab", "cd") + "\n\n")
    assert keys(run) == [GOOD.replace("ab", "cd"), GOOD]
    with key_file(run) as file:
        assert file is not None and file.read_text().count("\n") == 2
    assert not file.exists()
    with key_file(tmp_path / "none") as file:
        assert file is None


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        (GOOD + "\nnonsense\n", 2, "is no key of TLS"),
        ("CLIENT_RANDOM xy 01\n", 1, "is no key of TLS"),
        (GOOD.encode() + b"\n\xff\xfe\n", 2, "no text in ASCII"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str | bytes, line: int, rule: str) -> None:
    run = folder(tmp_path, a=text)
    with pytest.raises(CaptureError, match=rule) as raised:
        keys(run)
    assert f"a.keys:{line}: " in str(raised.value)


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    run = folder(tmp_path)
    (run / "raw" / "logs" / "a.keys").symlink_to("/etc/hostname")
    with pytest.raises(CaptureError, match="no regular file"):
        keys(run)


def exchange(place: Path) -> list[tuple[bool, bytes]]:
    """Returns the bytes of a connection of TLS in both directions, and writes its keys."""
    key, cert = place / "k.pem", place / "c.pem"
    wanted = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    subprocess.run(["openssl", *wanted, "-keyout", key, "-out", cert], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.keylog_filename = str(place / "raw" / "logs" / "client.load.keys")
    ends = [ssl.MemoryBIO() for _ in range(4)]
    one = client.wrap_bio(ends[0], ends[1])
    two = server.wrap_bio(ends[2], ends[3], server_side=True)
    steps: list[tuple[bool, bytes]] = []

    def move() -> None:
        for up, source, target in ((True, ends[1], ends[2]), (False, ends[3], ends[0])):
            if data := source.read():
                steps.append((up, data))
                target.write(data)

    done: set[bool] = set()
    while len(done) < 2:
        for up, side in ((True, one), (False, two)):
            try:
                side.do_handshake()
                done.add(up)
            except ssl.SSLWantReadError:
                pass
            move()
    one.write(b"GET /secret HTTP/1.1\r\nHost: a\r\n\r\n")
    move()
    return steps


def test_tshark_reads_what_was_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("tshark") is None or shutil.which("openssl") is None:
        pytest.skip("tshark or openssl is not installed")
    run = folder(tmp_path)
    at = {True: 1000, False: 5000}
    frames = []

    def add(up: bool, flags: int, data: bytes = b"") -> None:
        ports, ends = ((4000, 443), ("10.0.0.1", "10.0.0.2"))
        if not up:
            ports, ends = ports[::-1], ends[::-1]
        segment = tcp(data, flags, at[up], at[not up] if flags & ACK else 0, ports)
        frames.append(Frame(ethernet(ipv4(segment, 6, *ends)), START_NS + len(frames) * 10**6))
        at[up] += len(data) + (1 if flags & SYN else 0)

    for up, flags in ((True, SYN), (False, SYN | ACK), (True, ACK)):
        add(up, flags)
    for up, data in exchange(run):
        for start in range(0, len(data), 1400):
            add(up, PSH | ACK, data[start : start + 1400])
    (run / "pcap").mkdir()
    write(run / "pcap" / "p.pcap", frames)
    monkeypatch.setattr(reading, "points", lambda _run: ["p"])
    assert any("/secret" in line for line in packets(run, "p", "http"))
    (run / "raw" / "logs" / "client.load.keys").unlink()
    assert list(packets(run, "p", "http")) == []
