"""Defines liars in raw/messages.csv: records lost or invented, or with false times, sizes, ends
and senders.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from liars.files import CAME, MESSAGES, MOVED, MS, SENT, Fields, counted, flow, lines, rows
from liars.liar import Liar

Change = Callable[[Fields], Fields | None]


def of_kind(kind: str, change: Change) -> Callable[[Path], None]:
    """Returns a liar that changes or drops the records of one kind."""
    return lambda run: rows(run, MESSAGES, lambda f: change(f) if f[0] == kind else f)


def of_flow(
    sender: str, kinds: str, change: Callable[[Path, Fields], Fields | None]
) -> Callable[[Path], None]:
    """Returns a liar that changes or drops records of these kinds in the flow of one sender."""

    def lie(run: Path) -> None:
        number = flow(run, sender)
        rows(run, MESSAGES, lambda f: change(run, f) if f[0] in kinds and f[1] == number else f)

    return lie


def with_field(fields: Fields, at: int, value: object) -> Fields:
    return [*fields[:at], str(value), *fields[at + 1 :]]


def moved(by_ns: int) -> Callable[[Path, Fields], Fields]:
    return lambda _, f: with_field(f, CAME["at"], int(f[CAME["at"]]) + by_ns)


def without(kind: str, every: int) -> Callable[[Path], None]:
    def lie(run: Path) -> None:
        gone = counted(every)
        rows(run, MESSAGES, lambda f: None if f[0] == kind and gone() else f)

    return lie


def whole_messages(run: Path) -> None:
    """Drops every record, of sending and of reception, of every 20th message."""
    rows(run, MESSAGES, lambda f: None if f[0] in "SR" and int(f[2]) % 20 == 7 else f)


def twice(kind: str) -> Callable[[Path], None]:
    def lie(run: Path) -> None:
        again = counted(20)
        lines(run, MESSAGES, lambda all_of: [
            one for line in all_of for one in ([line] * (2 if line.startswith(f"{kind},") and again() else 1))
        ])  # fmt: skip

    return lie


def lost_are_unsent(run: Path) -> None:
    """Makes the sender record each message that nobody received as unsent."""
    number = flow(run, "a")
    came = {tuple(f[1:3]) for f in _fields(run) if f[0] == "R"}

    def unsent(f: Fields) -> Fields:
        lost = f[0] == "S" and f[1] == number and tuple(f[1:3]) not in came
        return [*f[:5], "0", "0", "0", "unsent"] if lost else f

    rows(run, MESSAGES, unsent)


def losses_received(run: Path) -> None:
    """Adds a record of arrival, 40 ms after sending, for each message that was lost."""
    number = flow(run, "a")
    came = {tuple(f[1:3]) for f in _fields(run) if f[0] == "R"}
    receiver = next(f[CAME["receiver"]] for f in _fields(run) if f[0] == "R" and f[1] == number)
    made = [
        f"R,{f[1]},{f[2]},{receiver},0,{int(f[SENT['sent']]) + 40 * MS},0"
        for f in _fields(run) if f[0] == "S" and f[1] == number and tuple(f[1:3]) not in came
    ]  # fmt: skip
    lines(run, MESSAGES, lambda all_of: [*all_of, *made])


def _fields(run: Path) -> list[Fields]:
    return [line.split(",") for line in (run / MESSAGES).read_text().splitlines()]


def swapped(first: str, second: str, kinds: str) -> Callable[[Path], None]:
    """Returns a liar that swaps two flows of the same size and rate."""

    def lie(run: Path) -> None:
        one, two = flow(run, first), flow(run, second)
        other = {one: two, two: one}
        rows(run, MESSAGES, lambda f: with_field(f, 1, other.get(f[1], f[1])) if f[0] in kinds else f)

    return lie


def half(run: Path) -> None:
    lines(run, MESSAGES, lambda all_of: all_of[: len(all_of) // 2])


def cut(run: Path) -> None:
    path = run / MESSAGES
    path.write_text(path.read_text()[: path.stat().st_size * 3 // 4 // 80 * 80 + 11])


def settled_late(f: Fields) -> Fields:
    """Turns every third settled message into an unsettled one, as if the sender forgot the
    acknowledgement.
    """
    return [*f[:8], "unsettled"] if f[8] == "settled" and int(f[2]) % 3 == 0 else f


def digit(run: Path) -> None:
    """Flips one bit, worth about 17 ms, in the time of every 50th arrival record."""
    hit = counted(50)
    rows(run, MESSAGES, lambda f: (
        with_field(f, CAME["at"], int(f[CAME["at"]]) ^ (1 << 24)) if f[0] == "R" and hit() else f
    ))  # fmt: skip


def sender_still(run: Path) -> None:
    """Lets the sender of a flow stand still for 0.8 s: what was due in them leaves at their end."""
    number = flow(run, "c")
    sends = {f[2]: int(f[SENT["sent"]]) for f in _fields(run) if f[0] == "S" and f[1] == number}
    first = sorted(sends.values())[len(sends) // 4]  # no event is near
    end = first + 800 * MS
    late = {seq: end - sent for seq, sent in sends.items() if first <= sent < end}

    def change(_: Path, f: Fields) -> Fields:
        at = SENT["sent"] if f[0] == "S" else CAME["at"]
        return with_field(f, at, int(f[at]) + late.get(f[2], 0))

    of_flow("c", "SR", change)(run)


LIARS = (
    Liar("arrivals-lost", "every 20th record of an arrival is lost", without("R", 20)),
    Liar(
        "arrivals-of-a-flow-lost",
        "no record of the arrivals of one flow",
        of_flow("c", "R", lambda _, f: None),
    ),
    Liar("sends-lost", "every 20th record of a message sent is lost", without("S", 20)),
    Liar("messages-lost-whole", "every 20th message has no record, of either end", whole_messages),
    Liar("arrivals-twice", "every 20th record of an arrival stands twice", twice("R")),
    Liar("sends-twice", "every 20th record of a message sent stands twice", twice("S")),
    Liar(
        "arrivals-early",
        "arrivals of a flow over a link of 10 ms are 5 ms early",
        of_flow("c", "R", moved(-5 * MS)),
    ),
    Liar(
        "arrivals-routed-early",
        "arrivals over two links of 35 ms are 8 ms early",
        of_flow("a", "R", moved(-8 * MS)),
    ),
    Liar(
        "arrivals-published-early",
        "arrivals by the broker are 8 ms early",
        of_flow("mouth", "R", moved(-8 * MS)),
    ),
    Liar("arrivals-late", "arrivals of a flow with a bound are 5 ms late", of_flow("c", "R", moved(5 * MS))),
    Liar(
        "arrivals-before-due", "arrivals bear a time before they were due", of_flow("c", "R", moved(-50 * MS))
    ),
    Liar(
        "arrivals-in-us",
        "times of arrival in microseconds",
        of_kind("R", lambda f: with_field(f, 5, int(f[5]) // 1000)),
    ),
    Liar(
        "arrivals-an-hour-later", "arrivals an hour after the run", of_flow("c", "R", moved(3600 * 1000 * MS))
    ),
    Liar("arrivals-bit-flipped", "a bit of every 50th time of arrival flips", digit),
    Liar(
        "numbers-shifted",
        "arrivals bear the number of the message after theirs",
        of_flow("a", "R", lambda _, f: with_field(f, CAME["seq"], int(f[CAME["seq"]]) + 1)),
    ),
    Liar(
        "numbers-shifted-back",
        "arrivals bear the number of the message before theirs",
        of_flow("a", "R", lambda _, f: with_field(f, CAME["seq"], int(f[CAME["seq"]]) - 1)),
    ),
    Liar(
        "receivers-exchanged",
        "every third arrival at a subscriber is another subscriber's",
        of_flow(
            "mouth", "R", lambda _, f: with_field(f, CAME["receiver"], "ear2") if int(f[2]) % 3 == 0 else f
        ),
    ),
    Liar("flows-exchanged", "two flows of the same size for one another, both ends", swapped("a", "e", "SR")),
    Liar(
        "arrivals-exchanged", "arrivals of two flows of the same size for one another", swapped("a", "e", "R")
    ),
    Liar(
        "sizes-doubled",
        "messages of twice their size",
        of_kind("S", lambda f: with_field(f, 3, 2 * int(f[3]))),
    ),
    Liar("losses-unsent", "of what was lost the sender says that it never left", lost_are_unsent),
    Liar("losses-received", "of what was lost an arrival is made up", losses_received),
    Liar(
        "settled-forgotten", "a third of the settled messages is called unsettled", of_kind("S", settled_late)
    ),
    Liar(
        "due-when-sent",
        "due 5 ms later than the schedule says, as who hides that he is late",
        of_flow("c", "S", lambda _, f: [*f[:4], str(int(f[4]) + 5 * MS), str(int(f[5]) + 5 * MS), *f[6:]]),
    ),
    Liar("sender-still", "a sender stands still for 0.8 s", sender_still),
    Liar(
        "replies-lost",
        "every request's second reply record is lost",
        of_flow("g", "R", lambda _, f: None if f[CAME["leg"]] == "1" and int(f[2]) % 2 else f),
    ),
    Liar(
        "replies-early",
        "replies over two links of 5 ms are 4 ms early",
        of_flow("g", "R", lambda _, f: moved(-4 * MS)(Path(), f) if f[CAME["leg"]] == "1" else f),
    ),
    Liar(
        "transfer-halved",
        "the receiver of a transfer counts half its bytes",
        of_kind(
            "B", lambda f: with_field(f, MOVED["bytes"], int(f[5]) // 2) if f[MOVED["leg"]] == "1" else f
        ),
    ),
    Liar(
        "transfer-doubled",
        "the receiver of a transfer counts its bytes twice",
        of_kind("B", lambda f: with_field(f, MOVED["bytes"], int(f[5]) * 2) if f[MOVED["leg"]] == "1" else f),
    ),
    Liar(
        "transfer-halved-at-both",
        "both ends of a transfer count half its bytes",
        of_kind("B", lambda f: with_field(f, MOVED["bytes"], int(f[5]) // 2)),
    ),
    Liar(
        "transfer-slower",
        "a transfer's records lie twice as far apart",
        of_kind("B", lambda f: with_field(f, MOVED["t_ns"], 2 * int(f[4]) - 1767225620000000000)),
    ),
    Liar("records-half", "the second half of the records is gone, at a line's end", half),
    Liar("records-cut", "the records are cut within a line", cut),
    Liar(
        "kinds-unknown",
        "records of messages sent bear an unknown letter",
        of_kind("S", lambda f: ["Z", *f[1:]]),
    ),
)
