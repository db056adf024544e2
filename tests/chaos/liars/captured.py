"""Defines liars in captures: packets lost, doubled, with false times, sizes or points; truncated files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from liars.files import MS, SECOND, Packet, document, pcap
from liars.liar import Liar

MANIFEST = "manifest.json"
Change = Callable[[list[Packet]], Iterable[Packet]]


def of_point(point: str, change: Change, *, told: bool = False) -> Callable[[Path], None]:
    """Returns a liar that changes the packets of a capture point; with `told`, it changes tcpdump's count in
    the manifest too.
    """

    def lie(run: Path) -> None:
        number = 0

        def counted(packets: list[Packet]) -> list[Packet]:
            nonlocal number
            found = list(change(packets))
            number = len(found)
            return found

        pcap(run, point, counted)
        if told:
            document(run, MANIFEST, lambda m: m["captures"][point].update(packets=number))

    return lie


def every_tenth_gone(packets: list[Packet]) -> list[Packet]:
    return [one for number, one in enumerate(packets) if number % 10]


def every_tenth_twice(packets: list[Packet]) -> list[Packet]:
    return [one for number, packet in enumerate(packets) for one in [packet] * (1 if number % 10 else 2)]


def from_the_middle(packets: list[Packet]) -> list[Packet]:
    return packets[len(packets) // 2 :]


def exchanged(run: Path) -> None:
    """Swaps the files of two capture points, and tcpdump's counts of them."""
    one, two = run / "pcap" / "rs.pcap", run / "pcap" / "b.pcap"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)

    def told(m: dict[str, dict[str, object]]) -> None:
        m["captures"]["rs"], m["captures"]["b"] = m["captures"]["b"], m["captures"]["rs"]

    document(run, MANIFEST, told)


def other_points(run: Path) -> None:
    exchanged(run)
    document(run, MANIFEST, lambda m: m["captures"].update(rs=m["captures"]["b"], b=m["captures"]["rs"]))


def cut(run: Path) -> None:
    path = run / "pcap" / "rs.pcap"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3 + 5])


def in_us(run: Path) -> None:
    """Changes the magic number of a capture to that of a file with microseconds."""
    path = run / "pcap" / "rs.pcap"
    whole = path.read_bytes()
    magic = {b"\x4d\x3c\xb2\xa1": b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d": b"\xa1\xb2\xc3\xd4"}
    path.write_bytes(magic[whole[:4]] + whole[4:])


def drifting(packets: list[Packet]) -> list[Packet]:
    """Returns the packets with times of a clock that runs 1 % fast from the first packet on."""
    first = packets[0].seconds * SECOND + packets[0].parts
    return [one.later((one.seconds * SECOND + one.parts - first) // 100) for one in packets]


def shorter(packets: list[Packet]) -> list[Packet]:
    return [replace(one, wire=one.wire // 2, data=one.data[: one.wire // 2]) for one in packets]


LIARS = (
    Liar("packets-lost", "every 10th packet is missing in the file", of_point("rs", every_tenth_gone)),
    Liar(
        "packets-lost-uncounted",
        "every 10th packet is missing, and tcpdump never had it",
        of_point("rs", every_tenth_gone, told=True),
    ),
    Liar("packets-twice", "every 10th packet stands twice", of_point("rs", every_tenth_twice)),
    Liar(
        "packets-twice-counted",
        "every 10th packet was captured twice",
        of_point("b", every_tenth_twice, told=True),
    ),
    Liar("capture-late", "the capture began in the middle", of_point("l", from_the_middle, told=True)),
    Liar("captures-exchanged", "the files of two points for one another", other_points),
    Liar("captures-exchanged-counted", "two points for one another, with tcpdump's counts", exchanged),
    Liar("capture-cut", "a capture is cut within a packet", cut),
    Liar("capture-times-in-us", "nanoseconds are read as microseconds", in_us),
    Liar(
        "capture-clock-set",
        "the clock is set by 3 s in mid-capture",
        of_point(
            "rs",
            lambda packets: [
                one.later(3 * SECOND) if number > len(packets) // 2 else one
                for number, one in enumerate(packets)
            ],
        ),
    ),
    Liar("capture-clock-fast", "the capture's clock is 1 % fast", of_point("rs", drifting)),
    Liar(
        "capture-clock-off",
        "the capture's clock is 20 ms late",
        of_point("rs", lambda packets: [one.later(20 * MS) for one in packets]),
    ),
    Liar(
        "capture-clock-early",
        "the capture's clock is 20 ms early",
        of_point("l", lambda packets: [one.later(-20 * MS) for one in packets]),
    ),
    Liar(
        "capture-clock-near",
        "the capture's clock is 2 ms late",
        of_point("b", lambda packets: [one.later(2 * MS) for one in packets]),
    ),
    Liar("packet-sizes-halved", "packets say half their size on the wire", of_point("l", shorter)),
    Liar("capture-empty", "a capture has no packet", of_point("b", lambda packets: [])),
)
