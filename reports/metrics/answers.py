"""Finds, in the table of packets, the requests of a protocol and the answer to each.

If a protocol sends answers in the order of the requests (`Ordered`), the n-th answer of a connection belongs
to its n-th request. If its messages have numbers (`Numbered`), the next answer with the request's number
belongs to it. A connection to which the rule cannot be applied, for example because its beginning was not
captured or the server pushes, is left out whole, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

LOST = "UNKNOWN"  # name of a message type: the dissector has lost the position in the stream
NUMBERS = "app_ids"  # the column of the table of packets with the numbers of messages


@dataclass(frozen=True, slots=True)
class Ordered:
    """The messages of a protocol, by their types in the table of packets.

    requests: the client's messages that an answer ends; None: all of them. answers: the server's messages
    that end a request; None: all but `others`. uncounted: requests that have an answer but do not count in
    the figures. errors: the server's messages that make the answer to the current request an error.
    """

    requests: tuple[str, ...] | None
    answers: tuple[str, ...] | None
    others: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    accounted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Numbered:
    """The messages of a protocol that numbers them, by their types in the table of packets.

    pairs: for each type of request, the answers that end it; None: any message of the server, except
    `others`, ends any of the client. unnumbered: requests that have no number; other messages without a
    number expect no answer. errors: prefixes of types that are errors, or that make the answer after them in
    the same packet an error. client: a type that only a client sends, for protocols that also use UDP; None:
    the client is the side that opened the connection. accounted_by: the kind of the agent's software that
    already accounts for each message.
    """

    pairs: Mapping[str, tuple[str, ...]] | None
    others: tuple[str, ...] = ()
    unnumbered: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    client: str | None = None
    accounted_by: str | None = None


PROTOCOLS: Mapping[str, Ordered | Numbered] = {
    "http": Ordered(None, None, others=("100", "102", "103")),
    "redis": Ordered(None, None, others=("PUSH",), errors=("ERROR",)),
    "postgresql": Ordered(
        ("QUERY", "SYNC", "FUNCTION_CALL", "STARTUP"), ("READY",), uncounted=("STARTUP",), errors=("ERROR",)
    ),
    "http2": Numbered(None, others=("GOAWAY",), errors=("GRPC_", "RST_STREAM")),
    "mqtt": Numbered(
        {
            "CONNECT": ("CONNACK",),
            "PUBLISH": ("PUBACK", "PUBCOMP"),
            "SUBSCRIBE": ("SUBACK",),
            "UNSUBSCRIBE": ("UNSUBACK",),
            "PINGREQ": ("PINGRESP",),
        },
        unnumbered=("CONNECT", "PINGREQ"),
        errors=("REFUSED",),
        accounted_by="mqtt",
    ),
    "dns": Numbered(
        {
            "QUERY": (
                "RESPONSE", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED",
                *(f"RCODE_{code}" for code in range(6, 16)),
            )
        },
        errors=("FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "RCODE_"),
        client="QUERY",
    ),
}  # fmt: skip


def requests(packets: pl.LazyFrame, connections: pl.DataFrame, protocol: str) -> tuple[pl.DataFrame, int]:
    """Returns the requests of a protocol in the order in which they end, and the number of connections that
    are left out.

    packets, connections: the tables of a capture point (docs/contracts/packets.md). Columns of the requests:
    stream (null over UDP), asked_ns, answered_ns (null without an answer), kind (type of the request), status
    (type of the answer, null without one), error (bool: the answer has an error).
    """
    said = PROTOCOLS[protocol]
    begun = connections.filter(pl.col("app") == protocol)
    openers = begun.lazy().select(
        "stream", opener="src", opener_port="src_port", whole=pl.col("syn_synack_ns").is_not_null()
    )
    mine = packets.filter((pl.col("app") == protocol) & pl.col("app_types").is_not_null())
    if isinstance(said, Numbered):
        rows, left_out = _numbered_requests(mine, openers, said)
    else:
        rows, left_out = _ordered_requests(mine, openers, said)
    return rows.sort("asked_ns", "stream", maintain_order=True), left_out


def _ordered_requests(
    packets: pl.LazyFrame, openers: pl.LazyFrame, said: Ordered
) -> tuple[pl.DataFrame, int]:
    messages = (
        packets.select("t_ns", "stream", "src", "src_port", "app_types")
        .with_row_index("place")
        .join(openers, on="stream", how="inner", maintain_order="left")
        .select("place", "t_ns", "stream", "whole", client=_by_opener(), kind=pl.col("app_types"))
        .explode("kind")
        .collect()
    )
    lost = messages.filter((pl.col("kind") == LOST) | ~pl.col("whole"))
    asked = _counted(messages.filter(pl.col("client") & _is(said.requests)))
    of_server = messages.filter(~pl.col("client") & ~pl.col("kind").is_in(said.others))
    ends = of_server.with_columns(number=_is(said.answers).cast(pl.Int64).cum_sum().over("stream"))
    answers = ends.filter(_is(said.answers))
    wrong = _errors(ends, said)
    both = asked.join(answers, on=("stream", "number"), how="full", coalesce=True, suffix="_answer")
    unlike = both.filter(pl.col("place").is_null() | (pl.col("place_answer") < pl.col("place")))
    bad = pl.concat([lost.select("stream"), unlike.select("stream")]).unique()
    kept = (
        both.join(bad, on="stream", how="anti")
        .join(wrong, on=("stream", "number"), how="left")
        .filter(~pl.col("kind").is_in(said.uncounted))
    )
    return _result(kept), bad.height


def _by_opener() -> pl.Expr:
    return (pl.col("src") == pl.col("opener")) & (pl.col("src_port") == pl.col("opener_port"))


def _result(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        "stream",
        asked_ns="t_ns",
        answered_ns="t_ns_answer",
        kind="kind",
        status="kind_answer",
        error=pl.col("error").fill_null(value=False),
    )


def _is(kinds: tuple[str, ...] | None) -> pl.Expr:
    return pl.col("kind").is_not_null() if kinds is None else pl.col("kind").is_in(kinds)


def _counted(messages: pl.DataFrame) -> pl.DataFrame:
    """Returns the messages with their number in the connection, from 1 on."""
    return messages.with_columns(number=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("stream"))


def _errors(ends: pl.DataFrame, said: Ordered) -> pl.DataFrame:
    """Returns stream and number of each request whose answer has an error: the answer itself, or a message
    before it.
    """
    own = said.answers is None  # the answer itself states the error, with its own number
    number = pl.col("number") if own else pl.col("number") + 1
    found = ends.filter(pl.col("kind").is_in(said.errors)).select("stream", number=number)
    return found.unique().with_columns(error=pl.lit(value=True))


def _numbered_requests(
    packets: pl.LazyFrame, openers: pl.LazyFrame, said: Numbered
) -> tuple[pl.DataFrame, int]:
    messages = (
        packets.select("t_ns", "stream", "src", "src_port", "dst", "dst_port", "app_types", NUMBERS)
        .with_row_index("place")
        # A packet in which the position was lost has no numbers.
        .with_columns(pl.col(NUMBERS).fill_null(pl.col("app_types").list.eval(pl.lit(0, dtype=pl.UInt32))))
        .explode("app_types", NUMBERS)
        .rename({"app_types": "kind", NUMBERS: "id"})
        .join(openers, on="stream", how="left", maintain_order="left")
        .with_columns(client=_by_opener() if said.client is None else pl.col("kind") == said.client)
        .with_columns(between=_ends())
        .collect()
    )
    lost = messages.filter(pl.col("kind") == LOST)
    if said.client is None:
        lost = pl.concat([lost, messages.filter(~pl.col("whole").fill_null(value=False))])
    bad = lost.select("stream").drop_nulls().unique()
    kept = messages.join(bad, on="stream", how="anti", nulls_equal=False)
    asks = kept.filter(pl.col("client") & _asks(said)).with_columns(
        family=pl.col("kind") if said.pairs is not None else pl.lit("")
    )
    ends = kept.filter(~pl.col("client")).with_columns(family=_family(said)).drop_nulls("family")
    return _result(_paired(asks, ends, _marked(kept, said), said)), bad.height


def _ends() -> pl.Expr:
    """Returns the two ends of a message as one text, the client's end first."""
    one = pl.format("{} {}", "src", "src_port")
    other = pl.format("{} {}", "dst", "dst_port")
    return pl.when("client").then(pl.format("{} {}", one, other)).otherwise(pl.format("{} {}", other, one))


def _asks(said: Numbered) -> pl.Expr:
    """Returns whether a client's message is a request that expects an answer."""
    if said.pairs is None:
        return ~pl.col("kind").is_in([*said.others, "RST_STREAM"])
    numbered = (pl.col("id") > 0) | pl.col("kind").is_in(said.unnumbered)
    known = pl.col("kind").is_in(list(said.pairs))
    return known if said.client is not None else known & numbered


def _family(said: Numbered) -> pl.Expr:
    """Returns the type of the request that a server's message ends; null if it ends none."""
    if said.pairs is None:
        return pl.when(~pl.col("kind").is_in(said.others)).then(pl.lit(""))
    of = {answer: ask for ask, answers in said.pairs.items() for answer in answers}
    return pl.col("kind").replace_strict(of, default=None, return_dtype=pl.String)


def _marked(messages: pl.DataFrame, said: Numbered) -> pl.DataFrame:
    """Returns place and number of each answer that is an error or follows one in its packet."""
    wrong = pl.any_horizontal(pl.col("kind").str.starts_with(prefix) for prefix in said.errors)
    found = messages.filter(~pl.col("client") & wrong)
    return found.select("place", "id").unique().with_columns(error=pl.lit(value=True))


def _paired(asks: pl.DataFrame, ends: pl.DataFrame, wrong: pl.DataFrame, said: Numbered) -> pl.DataFrame:
    """Returns each request once, even if it was retransmitted, with the first answer after it; answers
    without a request are left out.
    """
    key = ("stream", "between", "family", "id")
    columns = ["place", "t_ns", "kind", "client", *key]
    both = pl.concat([asks.select(columns), ends.select(columns)]).sort("place", maintain_order=True)
    first = pl.col("client") & ~pl.col("client").shift(1).over(key).fill_null(value=False)
    both = both.with_columns(number=first.cast(pl.Int64).cum_sum().over(key), first=first)
    asked = both.filter("first")
    answers = both.filter(~pl.col("client") & (pl.col("number") > 0)).unique(
        subset=[*key, "number"], keep="first", maintain_order=True
    )
    answers = answers.join(wrong, on=("place", "id"), how="left")
    return asked.join(
        answers.select(*key, "number", "t_ns", "kind", "error"),
        on=[*key, "number"],
        how="left",
        nulls_equal=True,
        suffix="_answer",
        maintain_order="left",
    )
