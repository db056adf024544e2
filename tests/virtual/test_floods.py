"""A sender that is faster than the rate: the link loses what its queue cannot hold, and holds nobody back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from virtual_place import Place

MS, S = 10**6, 10**9
EVERY_MS, FRAME_MS = 4, 8  # 250 frames of 1,000 B a second are 2 Mbit/s; at 1 Mbit/s each takes 8 ms
RATE = '"rate": "1 Mbit/s"'
QUEUES = {  # what is written at the link, and how many frames may wait
    "hundred": ('"limit": 100', 100),
    "fifty": ('"limit": 50', 50),
    "fifo": ('"queue": {"fifo": {"limit": 60}}', 60),
    "prio": ('"queue": {"prio": {"high": {"dscp": "EF"}, "rest": {"limit": 70}}}', 70),
    "htb": (
        '"queue": {"htb": {"v": {"dscp": "EF", "rate": "1 kbit/s"}, '
        '"rest": {"rate": "999 kbit/s", "ceil": "1 Mbit/s", "limit": 80}}}',
        80,
    ),
    "red": ('"queue": {"red": {"min": "20 kB", "max": "60 kB", "limit": "90 kB"}}', 90),
}  # fmt: skip


def flood(to: str) -> str:
    return f'{{"q": {{"udp": {{"to": "{to}", "push": {{"rate": "250 /s", "size": "958 B"}}}}}}}}'


def topology() -> str:
    segments, nodes, links = [], [], []
    for number, (name, (queue, _)) in enumerate(QUEUES.items()):
        net = f'{{"subnet": "10.{number}.0.0/24"}}'
        segments += [f'"{name}-l": {net}', f'"{name}-r": {net}']
        nodes.append(f'"{name}-a": {{"segment": "{name}-l", "software": {flood(f"{name}-b")}}}')
        nodes.append(
            f'"{name}-b": {{"segment": "{name}-r", "software": {{"q": {{"udp": {{"listen": 7000}}}}}}}}'
        )
        links.append(f'"{name}": {{"between": ["{name}-l", "{name}-r"], "forward": {{{RATE}, {queue}}}}}')
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
    parts = {"segments": segments, "nodes": nodes, "links": links}
    text = ", ".join(f'"{part}": {{{", ".join(lines)}}}' for part, lines in parts.items())
    return f'{{"name": "floods", {text}, "run": {{"hold": "3 s", "drain": "2 s"}}}}'


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
    table, limit = account(run, name), LIMITS[name]
    assert table.height == table.get_column("seq").max() + 1, "the sender is not held back"
    assert table.select((pl.col("sent_ns") - pl.col("scheduled_ns")).max()).item() < 2 * MS
    lost = table.get_column("received_ns").null_count()
    # While messages are sent the link passes half of them on; what then waits is sent in the drain.
    passed = table.height * EVERY_MS // FRAME_MS
    assert lost == pytest.approx(table.height - passed - limit, abs=5 if name != "red" else limit)
    worst_ms = table.get_column("latency_ns").max() / MS
    assert worst_ms <= (limit + 2) * FRAME_MS
    if name != "red":  # which drops before its queue is full
        assert worst_ms >= (limit - 3) * FRAME_MS


@pytest.mark.parametrize("name", LIMITS)
def test_what_was_lost_is_what_the_link_dropped(run: Path, name: str) -> None:
    """A second count: the kernel's of the link's own queue."""
    assert dropped(run, name) == account(run, name).get_column("received_ns").null_count()


def test_a_card_with_backpressure_holds_its_sender(run: Path) -> None:
    table = account(run, "card")
    assert table.select((pl.col("sent_ns") - pl.col("scheduled_ns")).max()).item() > S // 2
    assert dropped(run, "card") == 0
