"""Tests that quantities are read exactly, or refused with a remedy."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.language import units
from orchestrator.language.units import CPU_CORES, DURATION, FREQUENCY, RATE, SHARE, SIZE, UnitError
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (DURATION, "20 ms", 20_000_000),
        (DURATION, "20ms", 20_000_000),
        (DURATION, "0.5 s", 500_000_000),
        (DURATION, "1.5 us", 1500),
        (DURATION, "2 min", 120 * 10**9),
        (DURATION, "0 s", 0),
        (RATE, "250 kbit/s", 250_000),
        (RATE, "1 Gbit/s", 10**9),
        (SIZE, "512 MiB", 512 << 20),
        (SIZE, "717 B", 717),
        (SIZE, "1.5 kB", 1500),
    ],
)
def test_integers_inside(kind: units.Quantity, text: str, value: int) -> None:
    assert units.whole(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(SHARE, "1 %", 0.01), (SHARE, "100 %", 1.0), (FREQUENCY, "100 /s", 100.0), (FREQUENCY, "6 /min", 0.1)],
)
def test_floats_inside(kind: units.Quantity, text: str, value: float) -> None:
    assert units.real(kind, text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "value", "rule"),
    [
        (DURATION, "20", "has no unit"),
        (DURATION, 20, "has no unit"),
        (DURATION, 0, "has no unit"),
        (DURATION, "20 sec", '"sec" is not a unit of duration'),
        (DURATION, "20 Ms", '"Ms" is not a unit of duration'),
        (DURATION, "-5 ms", "a duration cannot be negative"),
        (DURATION, "0.5 ns", "is finer than 1 ns"),
        (DURATION, "9000000 h", "is more than the largest duration"),
        (DURATION, "", "is not a duration"),
        (DURATION, None, "is not a duration"),
        (DURATION, True, "is not a duration"),
        (DURATION, "1e3 ms", "is not a duration"),
        (DURATION, "1 000 ms", "is not a duration"),
        (DURATION, "٣ ms", "is not a duration"),
        (RATE, "10 MB/s", "counts bytes"),
        (RATE, "10 Mbps", '"Mbps" is not a unit of rate'),
        (SIZE, "10 mb", '"mb" is not a unit of size'),
        (SHARE, "0.01", "has no unit"),
        (SHARE, "101 %", "is more than the largest share, 100 %"),
        (FREQUENCY, "100 Hz", '"Hz" is not a unit of frequency'),
    ],
)
def test_refused(kind: units.Quantity, value: object, rule: str) -> None:
    with pytest.raises(UnitError) as caught:
        units.parse(kind, value)
    assert rule in caught.value.rule
    assert caught.value.remedy


def test_cpu_is_a_clock_or_cores() -> None:
    assert units.cpu("500 MHz") == units.Cpu(mhz=500.0)
    assert units.cpu("1.2 GHz") == units.Cpu(mhz=1200.0)
    assert units.cpu("0.5 cores") == units.Cpu(cores=0.5)
    assert units.cpu("1 core") == units.Cpu(cores=1.0)


@pytest.mark.parametrize("value", ["50 %", "0 MHz", "0.5", "-1 cores", 2])
def test_cpu_refused(value: object) -> None:
    with pytest.raises(UnitError, match="500 MHz"):
        units.cpu(value)


@given(st.integers(0, 10**15), st.sampled_from(sorted(DURATION.units)))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    exact = Fraction(number) * Fraction(DURATION.units[unit])
    try:
        assert units.whole(DURATION, f"{number} {unit}") == exact
    except UnitError as error:
        assert "largest" in error.rule and exact > Fraction(31_536_000 * 10**9)


@given(st.integers(0, 31_536_000 * 10**9))
def test_shown_durations_read_back_as_themselves(ns: int) -> None:
    assert units.whole(DURATION, units.text_ns(ns)) == ns


@given(st.text(max_size=40), st.sampled_from([DURATION, RATE, SIZE, SHARE, FREQUENCY, CPU_CORES]))
def test_any_text_is_read_or_refused(text: str, kind: units.Quantity) -> None:
    with contextlib.suppress(UnitError):
        assert units.parse(kind, text) >= 0


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0 s"), (28_500_000_000, "28.5 s"), (20_000_000, "20 ms"), (1, "1 ns")]
)
def test_shown_durations(ns: int, text: str) -> None:
    assert units.text_ns(ns) == text


@pytest.mark.parametrize(
    ("kind", "written", "shown"),
    [
        (units.DURATION, "30s", "30 s"), (units.DURATION, " 1.5  ms", "1.5 ms"), (units.SHARE, "1%", "1 %"),
        (units.FREQUENCY, "100/s", "100 /s"), (units.SIZE, "256MiB", "256 MiB"),
    ],
)  # fmt: skip
def test_a_quantity_is_printed_in_one_form(kind: units.Quantity, written: str, shown: str) -> None:
    assert units.spaced(kind, written) == units.spaced(kind, shown) == shown


def test_parameters_are_printed_in_one_form_and_choices_take_both() -> None:
    text = "name: x\nsegments: {lan: {subnet: 10.9.0.0/24}}\nnodes: {a: {segment: lan}}\n"
    text += "run: {hold: '${hold}'}\n"
    text += "parameters: {hold: {type: duration, default: 10s, choices: [10s, 1 min]}}\n"
    for asked, shown in (({}, "10 s"), ({"hold": "10s"}, "10 s"), ({"hold": "1min"}, "1 min")):
        assert parse("x.yaml", text.encode(), asked).parameters == {"hold": shown}
    with pytest.raises(TopologyError, match=r'write "5 s"'):
        parse("x.yaml", text.encode(), {"hold": "5"})
