"""Tests a sender that is faster than the rate: the link drops what its queue cannot hold, and the sender is
not slowed down.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from virtual_place import Place

MS, S = 10**6, 10**9
# ms: 250 frames of 1,000 B a second are 2 Mbit/s, and at 1 Mbit/s each frame takes 8 ms
EVERY_MS, FRAME_MS = 4, 8
RATE = '"rate": "1 Mbit/s"'
# The link's setting, and the number of frames that may wait. More than 92 of these frames fill a socket's
# buffer, so a sender that the buffer slows down would never reach such a limit.
QUEUES = {
    "hundred": ('"limit": 100', 100),
    "fifty": ('"limit": 50', 50),
    "fifo": ('"queue": {"fifo": {"limit": 120}}', 120),
    "prio": ('"queue": {"prio": {"high": {"dscp": "EF"}, "rest": {"limit": 130}}}', 130),
    "htb": (
        '"queue": {"htb": {"v": {"dscp": "EF", "rate": "1 kbit/s"}, '
        '"rest": {"rate": "999 kbit/s", "ceil": "1 Mbit/s", "limit": 140}}}',
        140,
    ),
    "red": ('"queue": {"red": {"min": "20 kB", "max": "60 kB", "limit": "90 kB"}}', 90),
    "fqcodel": ('"queue": {"fq_codel": {"limit": 150}}', 150),
    "cake": ('"queue": {"cake": {}}', 375),  # all excess frames, for which cake has enough memory
}
EARLY = ("red", "fqcodel", "cake")  # kinds that drop before their queue is full


def flood(to: str) -> str:
    return f'{{"q": {{"udp": {{"to": "{to}", "push": {{"rate": "250 /s", "size": "958 B"}}}}}}}}'


def pairs(wires: bool = False) -> tuple[list[str], list[str], list[str]]:
    """Returns segments, nodes and links with a sender and a receiver for each kind of queue; with `wires` the
    link joins both directly.
    """
    segments, nodes, links = [], [], []
    for number, (name, (queue, _)) in enumerate(QUEUES.items()):
        net = f'{{"subnet": "10.{number}.0.0/24"}}'
        at = ["", ""] if wires else [f'"segment": "{name}-l", ', f'"segment": "{name}-r", ']
        segments += [] if wires else [f'"{name}-l": {net}', f'"{name}-r": {net}']
        nodes.append(f'"{name}-a": {{{at[0]}"software": {flood(f"{name}-b")}}}')
        nodes.append(f'"{name}-b": {{{at[1]}"software": {{"q": {{"udp": {{"listen": 7000}}}}}}}}')
        ends = f'"{name}-a", "{name}-b"' if wires else f'"{name}-l", "{name}-r"'
        links.append(f'"{name}": {{"between": [{ends}], "forward": {{{RATE}, {queue}}}}}')
    return segments, nodes, links


def topology() -> str:
    segments, nodes, links = pairs()
    for name, via in (("wire", "wire-b"), ("routed", "routed-r")):
        nodes.append(f'"{name}-a": {{"software": {flood(f"{name}-b")}}}')
        nodes.append(f'"{name}-b": {{"software": {{"q": {{"udp": {{"listen": 7000}}}}}}}}')
        links.append(f'"{name}": {{"between": ["{name}-a", "{via}"], "forward": {{{RATE}, "limit": 100}}}}')
    nodes.append('"routed-r": {"forward": true}')
    links.append('"routed-2": {"between": ["routed-r", "routed-b"]}')
    for name, more in (("own", ""), ("card", ', "backpressure": true')):
        segments.append(f'"{name}-l": {{"subnet": "10.2{len(more) % 9}.0.0/24"}}')
        nodes.append(f'"{name}-a": {{"segment": "{name}-l", "software": {flood(f"{name}-b")}}}')
        nodes.append(
            f'"{name}-b": {{"segment": "{name}-l", "software": {{"q": {{"udp": {{"listen": 7000}}}}}}}}'
        )
        links.append(
            f'"{name}": {{"between": ["{name}-a", "{name}-l"], "forward": {{{RATE}, "limit": 100{more}}}}}'
        )
    return text("floods", {"segments": segments, "nodes": nodes, "links": links})


def text(lab: str, parts: dict[str, list[str]]) -> str:
    said = ", ".join(f'"{part}": {{{", ".join(lines)}}}' for part, lines in parts.items() if lines)
    return f'{{"name": "{lab}", {said}, "run": {{"hold": "3 s", "drain": "4 s"}}}}'


LIMITS = {name: limit for name, (_, limit) in QUEUES.items()} | {"wire": 100, "routed": 100, "own": 100}


@pytest.fixture(scope="module")
def run(places: Callable[[str], Place]) -> Path:
    place = places("floods")
    json.loads(topology())
    (place.cwd / "floods.yaml").write_text(topology())
    return place.run("--lab", "floods", file="floods.yaml").run_dir


def account(run: Path, name: str) -> pl.DataFrame:
    table = pl.read_parquet(run / "messages.parquet").filter(pl.col("sender") == f"{name}-a")
    return table.filter(pl.col("sent_ns") > 0)


def dropped(run: Path, name: str) -> int:
    links = pl.read_parquet(run / "links.parquet")
    whole = pl.col("class").is_null() if "class" in links.columns else pl.lit(True)
    mine = links.filter((pl.col("link") == name) & (pl.col("direction") == "forward") & whole)
    counts = mine.sort("t_ns").get_column("dropped")
    return int(counts[-1] - counts[0])


@pytest.mark.parametrize("name", LIMITS)
def test_half_of_a_flood_at_twice_the_rate_is_lost(run: Path, name: str) -> None:
    half_is_lost(run, name)


def half_is_lost(run: Path, name: str) -> None:
    """Asserts that the sender is not slowed down, that the queue drops the excess, and that queued messages
    are late by at most the queue.
    """
    table, limit = account(run, name), LIMITS[name]
    assert table.height == table.get_column("seq").max() + 1, "the sender is not held back"
    assert table.select((pl.col("sent_ns") - pl.col("scheduled_ns")).max()).item() < 2 * MS
    lost = table.get_column("received_ns").null_count()
    # While messages are sent, the link passes half of them; those that then wait are sent in the drain.
    passed = table.height * EVERY_MS // FRAME_MS
    assert lost == pytest.approx(table.height - passed - limit, abs=limit if name in EARLY else 5)
    worst_ms = table.get_column("latency_ns").max() / MS
    assert worst_ms <= (limit + 2) * FRAME_MS
    if name not in EARLY:
        assert worst_ms >= (limit - 3) * FRAME_MS
    else:
        assert lost > 0 and worst_ms > 10 * FRAME_MS, "it drops what waits too long, not what comes"


@pytest.mark.parametrize("name", LIMITS)
def test_what_was_lost_is_what_the_link_dropped(run: Path, name: str) -> None:
    """Shows that the lost messages equal the kernel's own count of drops in the link's queue."""
    assert dropped(run, name) == account(run, name).get_column("received_ns").null_count()


@pytest.mark.sweep
def test_the_same_of_every_queue_between_two_nodes(places: Callable[[str], Place]) -> None:
    place = places("floods-wires")
    (place.cwd / "wires.yaml").write_text(
        text("wires", dict(zip(("segments", "nodes", "links"), pairs(wires=True), strict=True)))
    )
    run = place.run("--lab", "wires", file="wires.yaml").run_dir
    for name in QUEUES:
        half_is_lost(run, name)
        assert dropped(run, name) == account(run, name).get_column("received_ns").null_count()


def test_a_card_with_backpressure_holds_its_sender(run: Path) -> None:
    table = account(run, "card")
    assert table.select((pl.col("sent_ns") - pl.col("scheduled_ns")).max()).item() > S // 2
    assert dropped(run, "card") == 0
