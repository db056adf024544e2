"""Tests that AMQP's bytes on the page of power protocols add up: framing, names, packets, difference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "power-protocols.md").read_text()
HEADERS = 14 + 20 + 32  # Ethernet, IPv4, TCP with time stamps
FRAME = 8  # type, channel, length and end (AMQP 0-9-1, 2.3.5)
TAG = len("amq.ctag-") + 22  # length of the name that RabbitMQ gives a consumer
DELIVERY_MODE = 1
MEASUREMENTS = 10_000
PACKETS, PRINTED_PACKETS = 31_514, 34_891


def short(text: int) -> int:
    """Returns the length of a short string of `text` characters."""
    return 1 + text


def there_and_back(names: int, properties: int) -> int:
    """Returns AMQP's bytes around a message that is published and delivered; `names` is the length of
    exchange and key together.
    """
    ids = 2 + 2  # class and method
    publish = ids + 2 + short(0) + short(0) + names + 1  # reserved, exchange, key, flags
    deliver = ids + short(TAG) + 8 + 1 + short(0) + short(0) + names  # tag, number, redelivered
    header = 2 + 2 + 8 + 2 + properties  # class, weight, length of the body, flags
    return 2 * 3 * FRAME + publish + deliver + 2 * header


def row(title: str) -> list[float]:
    """Returns the numbers of a row of the page's table of bytes."""
    found = re.search(rf"^\| {title} \|(.*)\|$", PAGE, re.MULTILINE)
    assert found is not None
    return [float(cell) for cell in found[1].replace(" ", "").split("|") if cell]


@pytest.mark.parametrize(("column", "key"), [(2, "json"), (8, "protobuf")])
def test_the_measured_protocol_is_the_computed_one_and_a_share_of_opening(column: int, key: str) -> None:
    computed = there_and_back(len("amq.direct") + len(key), DELIVERY_MODE)
    assert 0 < row("protocol")[column] - computed < 0.5


def test_the_difference_is_accounted_for_to_the_byte() -> None:
    ours, printed = row("total")[2:4]
    sums = row("protocol and payload")
    assert there_and_back(0, 0) == 132 and f"= {there_and_back(0, 0)}\nbytes" in PAGE
    content = (289 + len("amq.direct") + len("json") + DELIVERY_MODE, (sums[3] - 132) / 2)
    assert content == (304, 315)
    packets = PACKETS / MEASUREMENTS * HEADERS, 49 + 70 + 112
    assert packets[0] == pytest.approx(208.0, abs=0.05)
    assert packets[1] - PRINTED_PACKETS / MEASUREMENTS * HEADERS == pytest.approx(0.7, abs=0.05)
    opening = sums[2] - 132 - 2 * content[0]
    assert opening == pytest.approx(0.2, abs=0.05)
    difference = packets[1] - packets[0] + 2 * (content[1] - content[0]) - opening
    assert difference == pytest.approx(printed - ours, abs=0.15)
