"""Tests that each reader gives the values that the program printed, with their lines, and refuses other logs.

The outputs of wrk, wrk2, ab, hey, h2load, iperf3, ping and fio were recorded, those of network programs on
the loopback interface; those of k6, and of wrk2 with errors, are written after their documentation.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.figures import FORMATS
from contract.metrics import METRICS
from orchestrator.software.command.file import Figures
from reports.programs import READERS
from reports.programs.reading import Figure, UnreadError, ms

OUTPUTS = Path(__file__).parent / "program_outputs"


def lines(file: str) -> list[str]:
    return (OUTPUTS / file).read_text().split("\n")


def read(file: str) -> dict[str, Figure]:
    found = READERS[file.split(".")[0].split("-")[0]](lines(file))
    assert len({(one.name, one.part) for one in found}) == len(found), "no figure stands twice"
    return {one.name: one for one in found}


def test_formats_are_the_same_in_files_plans_and_reports() -> None:
    schema = Figures.model_json_schema()["properties"]["format"]["enum"]
    assert set(schema) == READERS.keys() == FORMATS.keys()
    assert {file.name.split(".")[0].split("-")[0] for file in OUTPUTS.iterdir()} == READERS.keys()


# For each file: figure -> (value, line); the values are written as in the file, converted to the figure's
# unit.
VALUES: dict[str, dict[str, tuple[float, int]]] = {
    "wrk.txt": {
        "requests": (3962, 11), "rate": (1886.53, 12), "latency_mean": (1.03, 4), "latency_max": (9.78, 4),
        "latency_deviation": (0.46664, 4), "latency_p50": (0.97, 7), "latency_p99": (2.02, 10),
        "bytes": (793.17 * 1024 / 1e6, 11), "throughput": (793.17 * 1024 * 8e-6 / 2.1, 11), "failed": (0, 11),
    },
    "wrk-statuses.txt": {"refused": (1759, 12), "requests": (1759, 11)},
    "wrk2.txt": {
        "requests": (3000, 76), "rate": (200, 77), "failed": (0, 76), "refused": (0, 76),
        "latency_mean": (1.05, 5), "latency_max": (7.43, 5), "latency_p50": (0.87, 8),
        "latency_p99": (4.98, 11), "bytes": (363.28 * 1024 / 1e6, 76),
    },
    "wrk2-errors.txt": {
        "requests": (60018, 27), "failed": (3, 28), "latency_p99": (11.18, 12), "latency_p99.9": (12.3, 13),
    },
    "h2load.txt": {
        "requests": (50, 16), "failed": (0, 16), "rate": (1587.1, 15), "status_2xx": (50, 17),
        "bytes": (0.009154, 18), "latency_min": (0.569, 20), "latency_max": (2.26, 20),
        "latency_mean": (1.17, 20), "latency_deviation": (0.347, 20),
    },
    "k6.json": {
        "requests": (200, 22), "rate": (20, 22), "failed": (2, 17), "latency_p50": (41.5, 8),
        "latency_p99": (240.5, 8), "latency_max": (402.25, 8), "bytes": (0.24, 4),
    },
    "ab.txt": {
        "requests": (200, 20), "rate": (1836.23, 24), "latency_p99": (2, 44), "latency_mean": (1, 34),
        "bytes": (0.041, 22), "failed": (0, 21),
    },
    "hey.txt": {
        "requests": (200, 7), "rate": (1679.5481, 7), "status_2xx": (200, 43), "status_5xx": (0, 7),
        "latency_p99": (2.4, 33), "latency_min": (0.4, 5), "bytes": (0.0012, 9), "failed": (0, 7),
    },
    "iperf3-tcp.json": {"throughput": (5.242212491609402, 157), "bytes": (1.96608, 157)},
    "iperf3-udp.json": {
        "throughput": (1.0484480893331014, 124), "sent": (8, 131), "lost": (0, 131), "loss": (0, 131),
        "jitter": (0.013451197184622286, 131),
    },
    "ping.txt": {
        "sent": (5, 9), "received": (5, 9), "lost": (0, 9), "loss": (0, 9), "latency_min": (0.026, 6),
        "latency_mean": (0.041, 6), "latency_max": (0.053, 6),
    },
    "access.log": {"requests": (3, 5), "status_2xx": (2, 5), "status_4xx": (1, 5), "status_5xx": (0, 5)},
    "access-timed.log": {
        "requests": (100, 101), "status_5xx": (5, 101), "bytes": (0.095, 101), "latency_p50": (43, 101),
        "latency_max": (46, 101),
    },
}  # fmt: skip


@pytest.mark.parametrize("file", VALUES)
def test_values_and_lines_of_an_output(file: str) -> None:
    found = read(file)
    for name, (value, line) in VALUES[file].items():
        assert found[name].value == pytest.approx(value, rel=1e-9), name
        assert found[name].line == line, name
    assert {f"program_{name}" for name in found} <= METRICS.keys()


def test_fio_has_the_parts_that_it_did() -> None:
    found = {(one.part, one.name): one.value for one in READERS["fio"](lines("fio.json"))}
    assert {part for part, _ in found} == {"read", "write"}
    assert found["read", "requests"] == 710 and found["read", "rate"] == 17750
    assert found["write", "requests"] == 314 and 710 + 314 == 4 << 20 >> 12, "4 MiB in blocks of 4 KiB"
    assert found["read", "bytes"] + found["write", "bytes"] == pytest.approx((4 << 20) / 1e6)
    assert found["read", "latency_p99"] == pytest.approx(0.07936)
    assert found["read", "throughput"] == pytest.approx(581.632)


def test_the_interval_of_a_printed_percentile_reaches_to_its_printed_neighbours() -> None:
    found = read("wrk.txt")
    assert (found["latency_p99"].low, found["latency_p99"].high) == (1.42, 9.78)
    assert found["latency_p50"].low is None, "no smaller percentile is printed"
    assert read("wrk2.txt")["latency_p99"].n == 995, "those after its calibration"
    ab = read("ab.txt")
    assert (ab["latency_p90"].low, ab["latency_p90"].high) == (0.5, 2.5), "ab rounds to whole ms"
    assert ab["latency_p99"].high is None, "the 99th percentile of 200 may be beyond the largest"


def test_times_of_single_requests_have_an_interval() -> None:
    p50 = read("access-timed.log")["latency_p50"]
    assert p50.low is not None and p50.high is not None and p50.low <= 43 <= p50.high
    assert "bootstrap" in p50.method
    assert "latency_p50" not in read("access.log"), "it has no times"


@pytest.mark.parametrize("format_", READERS)
def test_another_log_is_refused_with_its_line(format_: str) -> None:
    with pytest.raises(UnreadError) as caught:
        READERS[format_](["Killed", "{", '"a": 1'])
    assert caught.value.line in (2, 3) and caught.value.rule


@pytest.mark.parametrize("file", ["wrk.txt", "ab.txt", "hey.txt", "h2load.txt", "ping.txt"])
def test_two_outputs_in_one_log_are_refused(file: str) -> None:
    once = lines(file)
    with pytest.raises(UnreadError, match="second output") as caught:
        READERS[file.split(".")[0]](once + once)
    assert caught.value.line > len(once)


@pytest.mark.parametrize("file", ["fio.json", "iperf3-tcp.json", "k6.json"])
def test_a_document_that_is_cut_is_refused_where_it_begins(file: str) -> None:
    whole = lines(file)
    first = next(number for number, line in enumerate(whole, 1) if line.startswith("{"))
    with pytest.raises(UnreadError) as caught:
        READERS[file.split(".")[0].split("-")[0]](whole[: len(whole) // 2])
    assert caught.value.line == first and "does not end" in caught.value.rule


def test_the_words_of_iperf3_for_its_own_error_stand_in_the_reason() -> None:
    with pytest.raises(UnreadError, match="unable to connect"):
        READERS["iperf3"](['{"start": {}, "end": {},', '"error": "unable to connect to server"}'])


def test_a_log_with_some_times_is_refused() -> None:
    line = '10.0.0.1 - - [27/Nov/2026:06:00:00 +0000] "GET / HTTP/1.1" 200 5'
    with pytest.raises(UnreadError, match="1 of 2 lines") as caught:
        READERS["access"]([line, f"{line} 0.010"])
    assert caught.value.line == 2


def test_apache_writes_microseconds() -> None:
    line = '10.0.0.1 - - [27/Nov/2026:06:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" 2500'
    assert {one.name: one.value for one in READERS["access"]([line])}["latency_max"] == pytest.approx(2.5)


def test_ping_of_busybox_prints_no_deviation() -> None:
    summary = ["3 packets transmitted, 3 packets received, 0% packet loss"]
    found = READERS["ping"]([*summary, "round-trip min/avg/max = 40.1/41.2/43.9 ms"])
    assert {one.name: one.value for one in found if one.name.startswith("latency")} == {
        "latency_min": 40.1,
        "latency_mean": 41.2,
        "latency_max": 43.9,
    }


def test_times_of_all_units() -> None:
    assert [ms(text) for text in ("466.64us", "1.03ms", "2.00s", "1.50m")] == [0.46664, 1.03, 2000, 90_000]
    with pytest.raises(ValueError, match="no time"):
        ms("12")
