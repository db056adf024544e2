"""Defines liars in the sampled counters of nodes, links, network stacks and the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from liars.files import HOST, LINK, LINKS, NODE, NODES, Fields, lines, rows
from liars.liar import Liar

HOST_CSV, STACKS, CPU_CSV = "raw/host.csv", "raw/stacks.csv", "raw/cpu.csv"


def of_node(name: str, *changes: tuple[str, Callable[[int], int]]) -> Callable[[Path], None]:
    """Returns a liar that changes counters of one node."""
    return lambda run: rows(run, NODES, lambda f: _with(f, NODE, changes) if f[1] == name else f)


def of_link(name: str, direction: str, *changes: tuple[str, Callable[[int], int]]) -> Callable[[Path], None]:
    """Returns a liar that changes counters of one direction of a link."""
    return lambda run: rows(
        run, LINKS, lambda f: _with(f, LINK, changes) if f[1:3] == [name, direction] else f
    )


def of_host(*changes: tuple[str, Callable[[int], int]]) -> Callable[[Path], None]:
    return lambda run: rows(run, HOST_CSV, lambda f: _with(f, HOST, changes))


def _with(
    fields: Fields, columns: dict[str, int], changes: tuple[tuple[str, Callable[[int], int]], ...]
) -> Fields:
    new = list(fields)
    for column, change in changes:
        new[columns[column]] = str(change(int(fields[columns[column]])))
    return new


def times(factor: float) -> Callable[[int], int]:
    return lambda value: int(value * factor)


def exchanged(name: str, column: int, one: str, two: str) -> Callable[[Path], None]:
    """Returns a liar that swaps the rows of two subjects."""
    other = {one: two, two: one}
    return lambda run: rows(
        run, name, lambda f: [*f[:column], other.get(f[column], f[column]), *f[column + 1 :]]
    )


def columns_exchanged(node: str, one: str, two: str) -> Callable[[Path], None]:
    def change(f: Fields) -> Fields:
        new = list(f)
        new[NODE[one]], new[NODE[two]] = f[NODE[two]], f[NODE[one]]
        return new

    return lambda run: rows(run, NODES, lambda f: change(f) if f[1] == node else f)


def stuck(name: str, keys: int, of: list[str]) -> Callable[[Path], None]:
    """Returns a liar that makes counters stand still: from the 7th sample on, each repeats the 7th."""

    def lie(run: Path) -> None:
        kept: list[Fields] = []

        def change(f: Fields) -> Fields:
            if f[1 : 1 + keys] != of:
                return f
            if len(kept) < 7:
                kept.append(f)
            return f if len(kept) < 7 else [f[0], *kept[-1][1:]]

        rows(run, name, change)

    return lie


def wraps(run: Path) -> None:
    """Makes a node's counter of received bytes wrap at 16 bits."""
    of_node("f", ("rx_bytes", lambda value: value % (1 << 16)))(run)


def thinned(name: str) -> Callable[[Path], None]:
    """Returns a liar that drops every second sample of all subjects."""

    def lie(run: Path) -> None:
        times_of = sorted({line.split(",")[0] for line in (run / name).read_text().splitlines()[1:]})
        gone = set(times_of[1::2])
        rows(run, name, lambda f: None if f[0] in gone else f)

    return lie


def stretched(name: str, factor: float) -> Callable[[Path], None]:
    """Returns a liar that multiplies the time between samples by `factor`, from the first on."""

    def lie(run: Path) -> None:
        first = int((run / name).read_text().splitlines()[1].split(",")[0])
        rows(run, name, lambda f: [str(int(first + (int(f[0]) - first) * factor)), *f[1:]])

    return lie


def of_stacks(counter: str, change: Callable[[int], int]) -> Callable[[Path], None]:
    return lambda run: rows(run, STACKS, lambda f: [*f[:2], str(change(int(f[2])))] if f[1] == counter else f)


def ways_exchanged(link: str) -> Callable[[Path], None]:
    other = {"forward": "reverse", "reverse": "forward"}
    return lambda run: rows(run, LINKS, lambda f: [*f[:2], other[f[2]], *f[3:]] if f[1] == link else f)


def cpu_of_a_second(run: Path) -> None:
    """Charges 1.5 s of CPU to a node within one second, in its samples and in its total at the end."""
    of_all = sorted({line.split(",")[0] for line in (run / NODES).read_text().splitlines()[1:]})
    more = times_from(of_all[len(of_all) // 2], 1_500_000_000)
    rows(run, NODES, lambda f: more(f, NODE["cpu_ns"]) if f[1] == "k" else f)
    rows(run, CPU_CSV, lambda f: more(more(f, 2), 3) if f[1] == "k" else f)


def times_from(t_ns: str, by_ns: int) -> Callable[[Fields, int], Fields]:
    """Returns a function that adds `by_ns` to the field at an index, in rows from a time on."""

    def more(f: Fields, at: int) -> Fields:
        return [*f[:at], str(int(f[at]) + by_ns), *f[at + 1 :]] if int(f[0]) >= int(t_ns) else f

    return more


LIARS = (
    Liar("cpu-doubled", "twice the CPU of a node", of_node("k", ("cpu_ns", times(2)))),
    Liar("cpu-zero", "no CPU of a node", of_node("k", ("cpu_ns", lambda _: 0))),
    Liar("cpu-impossible", "a hundred times the CPU of a node", of_node("k", ("cpu_ns", times(100)))),
    Liar("cpu-of-a-second", "1.5 s of CPU of a node within one second", cpu_of_a_second),
    Liar("memory-doubled", "twice the memory of a node", of_node("k", ("memory_bytes", times(2)))),
    Liar(
        "memory-of-all",
        "more memory of a node than the kernel has",
        of_node("k", ("memory_bytes", times(1000))),
    ),
    Liar(
        "cpu-is-memory",
        "the columns of CPU and memory for one another",
        columns_exchanged("k", "cpu_ns", "memory_bytes"),
    ),
    Liar("node-bytes-zero", "bytes of a node with a link are zero", of_node("d", ("rx_bytes", lambda _: 0))),
    Liar(
        "node-bytes-halved", "half the bytes of a node without a link", of_node("f", ("rx_bytes", times(0.5)))
    ),
    Liar(
        "node-bytes-more",
        "a tenth more bytes of a node without a link",
        of_node("f", ("rx_bytes", times(1.1))),
    ),
    Liar(
        "node-frames-more",
        "a tenth more frames of a node without a link",
        of_node("e", ("tx_packets", times(1.1))),
    ),
    Liar(
        "node-ways-exchanged",
        "sent and received of a node for one another",
        lambda run: (
            columns_exchanged("f", "rx_bytes", "tx_bytes")(run),
            columns_exchanged("f", "rx_packets", "tx_packets")(run),
        )[0],
    ),
    Liar("nodes-exchanged", "the samples of two nodes for one another", exchanged(NODES, 1, "c", "d")),
    Liar(
        "nodes-exchanged-without-links",
        "the samples of two nodes without links for one another",
        exchanged(NODES, 1, "e", "f"),
    ),
    Liar("node-stuck", "a node's counters stand still from the middle on", stuck(NODES, 1, ["f"])),
    Liar("node-counter-wraps", "a node's counter of bytes has 16 bits", wraps),
    Liar("samples-thinned", "every second sample of nodes is lost", thinned(NODES)),
    Liar("samples-stretched", "the time between samples of nodes is doubled", stretched(NODES, 2.0)),
    Liar("samples-nearer", "the time between samples of nodes is a tenth less", stretched(NODES, 0.9)),
    Liar(
        "link-bytes-halved",
        "half the bytes of a link between nodes",
        of_link("p", "forward", ("bytes", times(0.5))),
    ),
    Liar(
        "link-bytes-more",
        "a tenth more bytes of a node's access",
        of_link("acc", "reverse", ("bytes", times(1.1))),
    ),
    Liar(
        "drops-zero", "no drops of a link that loses 5 %", of_link("rs", "forward", ("dropped", lambda _: 0))
    ),
    Liar(
        "drops-tenfold",
        "ten times the drops of a link that loses 5 %",
        of_link("rs", "forward", ("dropped", times(10))),
    ),
    Liar(
        "drops-doubled",
        "twice the drops of a link that loses 5 %",
        of_link("rs", "forward", ("dropped", times(2))),
    ),
    Liar("queue-drops-zero", "no drops of a full queue", of_link("acc", "reverse", ("dropped", lambda _: 0))),
    Liar(
        "queue-drops-tenfold",
        "ten times the drops of a full queue",
        of_link("acc", "reverse", ("dropped", times(10))),
    ),
    Liar(
        "backlog-zero",
        "nothing waits in a link with a delay",
        of_link("acc", "reverse", ("backlog_packets", lambda _: 0), ("backlog_bytes", lambda _: 0)),
    ),
    Liar(
        "backlog-tenfold",
        "ten times as many packets wait as the queue holds",
        of_link("acc", "reverse", ("backlog_packets", times(10)), ("backlog_bytes", times(10))),
    ),
    Liar("link-ways-exchanged", "both directions of a link for one another", ways_exchanged("acc")),
    Liar("links-exchanged", "the samples of two links for one another", exchanged(LINKS, 1, "p", "rs")),
    Liar("link-stuck", "a link's counters stand still from the middle on", stuck(LINKS, 2, ["p", "forward"])),
    Liar("link-samples-stretched", "the time between samples of links is doubled", stretched(LINKS, 2.0)),
    Liar("machine-idle", "the kernel's idle time is doubled", of_host(("idle", times(2)))),
    Liar("machine-busy", "10,000 times the kernel's busy time", of_host(("system", times(10_000)))),
    Liar("machine-cores", "four cores for one", of_host(("cores", times(4)))),
    Liar(
        "stack-repeats-doubled",
        "twice the TCP segments that were sent again",
        of_stacks("TcpRetransSegs", times(2)),
    ),
    Liar("stacks-exchanged", "the stacks of two nodes for one another", exchanged(STACKS, 0, "b", "x")),
    Liar(
        "samples-half",
        "the second half of the samples of nodes is gone",
        lambda run: lines(run, NODES, lambda all_of: all_of[: len(all_of) // 2]),
    ),
)
