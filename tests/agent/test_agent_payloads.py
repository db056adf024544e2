"""Decodes the agent's messages of signals with independent decoders: Python's JSON, and protoc with the
repository's schema.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from agent_launcher import ROOT, Launcher
from agent_roles import SECOND, begin, flow, item, peer, records

from orchestrator.software.encodings import LENGTHS, encoded_bytes

SCHEMA = ROOT / "images" / "agent" / "src" / "payload" / "villas.proto"
MESSAGES = 20
# The program receives a given number of datagrams and prints each as a line of hexadecimal digits.
TAKER = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9000))
s.settimeout(30)
print("ready", flush=True)
for _ in range({MESSAGES}):
    print(s.recv(65536).hex(), flush=True)
"""
Sample = tuple[int, int, int, tuple[float, ...]]  # flow, sequence, due in ns, values


def from_json(message: bytes) -> Sample:
    (sample,) = json.loads(message)
    assert set(sample) == {"ts", "sequence", "flow", "data"}
    seconds, ns = sample["ts"]["origin"]
    return sample["flow"], sample["sequence"], seconds * SECOND + ns, tuple(sample["data"])


def from_protobuf(message: bytes) -> Sample:
    """Decodes a message with protoc; asserts that the schema has every field (protoc would print others as
    numbers).
    """
    command = ["protoc", "--decode=villas.node.Message", f"-I{SCHEMA.parent}", SCHEMA.name]
    text = subprocess.run(command, input=message, capture_output=True, check=True).stdout.decode()
    assert text.count("samples {") == 1 and "  type: DATA" in text
    assert not re.search(r"^\s*\d+[: ]", text, re.MULTILINE)

    def one(name: str) -> int:
        (found,) = re.findall(rf"\b{name}: (\d+)", text)
        return int(found)

    values = tuple(float(value) for value in re.findall(r"\bf: (\S+)", text))
    return one("flow"), one("sequence"), one("sec") * SECOND + one("nsec"), values


DECODERS = {"villas-json": from_json, "protobuf": from_protobuf}


def encoded(number: int, encoding: str, signals: int) -> dict[str, Any]:
    payload = {"kind": encoding, "bytes": encoded_bytes(encoding, signals)}
    return {**flow(number, "push", 50, MESSAGES / 50), "payload": payload}


@pytest.mark.parametrize(("encoding", "signals"), [("villas-json", 10), ("protobuf", 10), ("protobuf", 1000)])
def test_others_decode_what_the_agent_sends(launcher: Launcher, encoding: str, signals: int) -> None:
    launcher.lab_up(["a", "b", "c"])
    command = ["ip", "netns", "exec", launcher.netns("b"), "python3", "-c", TAKER]
    taker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert taker.stdout is not None and taker.stdout.readline() == "ready\n"
    server = item("udp", "c", {"listen": 9000, "to": [], "timeout_ns": 0}, listens=True)
    to = {"listen": None, "to": [peer("b", 1, 9000), peer("c", 2, 9000)], "timeout_ns": 0}
    begin(launcher, [server, item("udp", "a", to, encoded(7, encoding, signals))])
    lines, _ = taker.communicate(timeout=30)
    launcher.do("finish")

    messages = [bytes.fromhex(line) for line in lines.split()]
    assert {len(message) for message in messages} == {encoded_bytes(encoding, signals)}
    samples = [DECODERS[encoding](message) for message in messages[: 3 if signals > 100 else MESSAGES]]
    due = {int(row[2]): int(row[4]) for row in records(launcher.directory, "S")}
    assert [sample[:3] for sample in samples] == [(7, seq, due[seq]) for seq in range(len(samples))]
    for *_, values in samples:
        assert len(values) == signals and all(0 <= value < 1 for value in values)
    assert len({values for *_, values in samples}) == len(samples), "each message has values of its own"
    assert {int(row[2]) for row in records(launcher.directory, "R") if row[3] == "c"} == set(range(MESSAGES))


@pytest.mark.parametrize("encoding", LENGTHS)
def test_a_length_that_no_number_of_signals_has_is_refused(launcher: Launcher, encoding: str) -> None:
    launcher.lab_up(["a"])
    wrong = encoded(0, encoding, 10)
    wrong["payload"]["bytes"] += 1
    to = {"listen": None, "to": [peer("a", 0, 9000)], "timeout_ns": 0}
    answer = launcher.ask("workload", items=[item("udp", "a", to, wrong)])
    assert not answer["ok"] and f"is no length of {encoding}" in answer["error"]
