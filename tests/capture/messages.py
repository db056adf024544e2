"""Builds messages of application protocols byte by byte."""

from __future__ import annotations

import struct
from binascii import crc_hqx

from frames import ethernet, ipv4, udp


def dns(response: bool = False, name: bytes = b"\7example\3com\0") -> bytes:
    """Returns a DNS query for an address, or the response to it."""
    flags, answers = (0x8180, 1) if response else (0x0100, 0)
    question = name + struct.pack("!HH", 1, 1)
    answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + b"\x0a\0\0\1"
    return struct.pack("!HHHHHH", 7, flags, 1, answers, 0, 0) + question + answer * answers


def request(path: str = "/", method: str = "GET", body: bytes = b"", fields: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}{length}\r\n".encode() + body


def response(body: bytes = b"", status: str = "200 OK", fields: str | None = None) -> bytes:
    length = f"content-length:{len(body)}\r\n" if fields is None else fields
    return f"HTTP/1.1 {status}\r\nServer: b\r\n{length}\r\n".encode() + body


def chunked(*parts: bytes) -> bytes:
    chunks = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts)
    return response(chunks + b"0\r\n\r\n", fields="Transfer-Encoding: chunked\r\n")


def record(kind: int, content: bytes) -> bytes:
    """Returns a TLS record."""
    return struct.pack("!BHH", kind, 0x0303, len(content)) + content


def handshake(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


CLIENT_HELLO = handshake(1, b"\3\3" + bytes(32) + b"\0" + b"\0\2\xc0\x2f" + b"\1\0" + b"\0\0")
SERVER_HELLO = handshake(2, b"\3\3" + bytes(32) + b"\0" + b"\xc0\x2f" + b"\0" + b"\0\0")
HELLO_DONE = handshake(14, b"")
CHANGE_CIPHER = record(20, b"\1")


def vnet(kind: int, size: int = 60, seq: int = 1) -> bytes:
    """Returns a message of the agent's format with `size` bytes."""
    return struct.pack("!4sBBHIIqI", b"vNET", kind, 0, 0, 3, seq, 10**18, 0) + bytes(size - 28)


def prefixed(message: bytes) -> bytes:
    """Returns the message with its length before it, as the agent sends it over TCP."""
    return struct.pack("!I", len(message)) + message


INNER = ethernet(ipv4(udp(b"inside"), 17))
VXLAN = b"\x08\0\0\0\0\0\x09\0" + INNER
GENEVE = b"\x01\0\x65\x58\0\0\x09\0" + b"\0\1\1\0" + INNER
GRE = b"\x20\0\x08\0" + b"\0\0\0\x09" + INNER[14:]
MPLS = struct.pack("!II", 16 << 12 | 64, 17 << 12 | 0x100 | 64) + INNER[14:]


def tlv(tag: int, *content: bytes) -> bytes:
    """Returns a tag-length-value element in the basic encoding rules (BER)."""
    value = b"".join(content)
    size = len(value)
    long = (
        bytes([size])
        if size < 0x80
        else bytes([0x81, size])
        if size < 0x100
        else b"\x82" + size.to_bytes(2, "big")
    )
    return bytes([tag]) + long + value


def above_ethernet(appid: int, apdu: bytes) -> bytes:
    """Returns the Ethernet payload of IEC 61850: APPID, length, two reserved words, the APDU."""
    return struct.pack("!HHI", appid, 8 + len(apdu), 0) + apdu


def samples(asdus: int = 1) -> bytes:
    """Returns sampled values of 9-2LE with 64 bytes of data in each ASDU."""

    def asdu(count: int) -> bytes:
        fields = tlv(0x80, b"MU01"), tlv(0x82, count.to_bytes(2, "big")), tlv(0x83, bytes(3), b"\1")
        return tlv(0x30, *fields, tlv(0x85, b"\2"), tlv(0x87, bytes(64)))

    sequence = tlv(0xA2, *map(asdu, range(asdus)))
    return above_ethernet(0x4000, tlv(0x60, tlv(0x80, bytes([asdus])), sequence))


def event(sq_num: int = 0) -> bytes:
    """Returns a GOOSE message whose data (8 bytes) are a state and the state's quality."""
    names = tlv(0x80, b"IED/LLN0$GO$g"), tlv(0x81, b"\x07\xd0"), tlv(0x82, b"IED/LLN0$d"), tlv(0x83, b"g")
    numbers = tlv(0x84, bytes(8)), tlv(0x85, b"\2"), tlv(0x86, bytes([sq_num])), tlv(0x87, b"\0")
    more = tlv(0x88, b"\1"), tlv(0x89, b"\0"), tlv(0x8A, b"\2")
    data = tlv(0xAB, tlv(0x83, b"\1"), tlv(0x84, b"\3\0\0"))
    return above_ethernet(1, tlv(0x61, *names, *numbers, *more, data))


def synphasor(kind: int, content: bytes, soc: int = 1_149_580_800, fracsec: int = 16_817) -> bytes:
    """Returns a frame of IEEE C37.118.2, version 1, of stream 7734."""
    head = struct.pack("!BBHHII", 0xAA, kind << 4 | 1, 16 + len(content), 7734, soc, fracsec)
    return head + content + struct.pack("!H", crc_hqx(head + content, 0xFFFF))


def _phasors() -> bytes:
    """Returns the data of table D.1 in annex D: status, phasors, frequency and its change, analog values, a
    digital word.
    """
    values = (14_635, 0, -7_318, -12_676, -7_318, 12_675, 1_092, 0, 2_500, 0)
    return struct.pack("!H10h3fH", 0, *values, 100.0, 1_000.0, 10_000.0, 0x3C12)


def _configuration() -> bytes:
    """Returns the configuration of table D.2 in annex D: one PMU, 60 Hz, 30 frames/s."""
    breakers = [f"BREAKER {place:X} STATUS" for place in range(1, 17)]
    breakers[-1] = "BREAKER G STATUS"
    names = ["VA", "VB", "VC", "I1", "ANALOG1", "ANALOG2", "ANALOG3", *breakers]
    units = (915_527, 915_527, 915_527, 1 << 24 | 45_776, 1, 1 << 24 | 1, 2 << 24 | 1, 0x0000_FFFF)
    station = struct.pack("!IH16sHHHHH", 1_000_000, 1, b"Station A".ljust(16), 7734, 4, 4, 3, 1)
    channels = b"".join(name.ljust(16).encode() for name in names)
    return station + channels + struct.pack("!8IHHh", *units, 0, 22, 30)


# The examples are those of annex D; the test of the reducer has the checksums that other programs compute for
# them.
PHASORS = synphasor(0, _phasors())
CONFIGURATION = synphasor(3, _configuration(), 1_149_577_200, 0x5607_1098)
SENDING_ON = synphasor(4, b"\0\2", 1_149_591_600, 0x0F0B_BFD0)
HEADER = synphasor(1, b"Hello I'm Header Frame.", 1_149_591_600, 0x0F0B_BFD0)
