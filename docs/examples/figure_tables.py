"""The figures that pages show: each a short function from published examples to Markdown."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import rejudged
from published import VERDICTS, cell, metric, table
from works import WORKS, Study

HERE = Path(__file__).parent
MQTT, CCC, PRIORITY = "mqtt-qos-campaign", "ccc-2011", "priority"


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table, with the blank lines that Markdown wants around it."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in lines) + "\n"


def claims() -> str:
    """A row a study: how many of its claims have each verdict."""

    def row(study: Study) -> Iterator[str]:
        found = Counter(one.judged.verdict for one in rejudged.of_work(study.paper, study.examples))
        yield f"[{study.title}]({study.page})"
        yield from (str(found[verdict]) for verdict in VERDICTS)

    return markdown(("study", *VERDICTS), (row(study) for studies in WORKS.values() for study in studies))


MQTT_ROWS = {
    "broker receives, kB/s": {"name": "received", "nodes": "broker"},
    "latency p50, ms (link: 10 ± 1 ms each way)": {"name": "latency_p50", "traffic_class": "client.meter"},
    "latency p99, ms": {"name": "latency_p99", "traffic_class": "client.meter"},
    "packets that carry payload, %": {"name": "goodput_packets", "capture": "broker"},
    "messages lost": {"name": "messages_lost", "traffic_class": "client.meter"},
    "messages duplicated": {"name": "messages_duplicated", "traffic_class": "client.meter"},
    "broker CPU, % of a core, modelled": {"name": "cpu", "nodes": "broker"},
}
LEVELS = ("QoS 0", "QoS 1", "QoS 2")


def mqtt_campaign() -> str:
    """Scenario 1 of the vNET paper at each level."""
    rows = (
        (words, *(metric(MQTT, scenario="scenario 1", series=level, **of) for level in LEVELS))
        for words, of in MQTT_ROWS.items()
    )
    return markdown(("scenario 1", *LEVELS), rows)


def mqtt_payload() -> str:
    return metric(MQTT, scenario="scenario 1", series="QoS 0", **MQTT_ROWS["packets that carry payload, %"])


def beside_paper(example: str, caption: str, row: str, column: str) -> str:
    """Our value, and in italics what the paper printed."""
    ours, printed = (cell(example, caption, row, column, beside) for beside in (0, 1))
    return f"{ours}, *{printed}*"


CCC_SPANS = ("40 to 60 s", "60 to 80 s", "80 to 90 s", "90 to 100 s")
CCC_TABLES = {
    "without: too late": "Table 7.1.",
    "without: dropped": "Table 7.3.",
    "with: too late": "Table 7.2.",
    "with: dropped": "Table 7.4.",
}


def ccc_printed() -> str:
    """A-HRT's packets without and with cooperation, beside the printed values."""
    rows = (
        (words, *(beside_paper(CCC, caption, "A-HRT", span) for span in CCC_SPANS))
        for words, caption in CCC_TABLES.items()
    )
    return markdown(("% of the packets: ours, *printed*", *CCC_SPANS), rows)


def ccc_value(caption: str, row: str, column: str) -> Callable[[], str]:
    return lambda: cell(CCC, caption, row, column)


CCC_QUEUES = "Beyond the paper: what of substation A's flows comes in time"
CCC_SHARED = "Beyond the paper: a class that a PMU (50 ms)"
CCC_FAULTS = "Beyond the paper: HRT sends twice what is reserved"


def as_published(example: str, caption: str) -> Callable[[], str]:
    """A whole table of the page; what it has no figure for is empty."""

    def text() -> str:
        head, *rows = table(example, caption)
        return markdown(head, (["" if text == "none" else text for text in row] for row in rows))

    return text


PRIORITY_TABLES = {
    "untagged": "Table 1.",
    "tagged, no queues": "Table 2.",
    "tagged, priority queues": "Table 3.",
}


def priority_printed() -> str:
    """Round trips under load, beside the printed values."""
    columns = ("mean", "std", "max")
    rows = (
        (words, load, *(beside_paper(PRIORITY, caption, f"{load} load", column) for column in columns))
        for words, caption in PRIORITY_TABLES.items()
        for load in ("receive", "transmit")
    )
    return markdown(("us: ours, *printed*", "load", *columns), rows)


SYSTEMS = {"Ethernet": "ethernet", "LTE": "lte", "NR": "nr"}
SETTINGS = (
    "AMQP, default settings",
    "AMQP, good settings",
    "MQTT, default settings",
    "MQTT, good settings",
    "Sampled Values",
    "UDP",
)
FIRST, LAST, NEVER = "first message after, s", "last late one after, s", "never arrived"


def recovery() -> str:
    """After a cut of 10 s: seconds to the first message and to the last late one, and what never arrived."""

    def text(system: str, kind: str) -> str:
        caption = f"Recovery: recovery {system}, "
        first, last, never = (
            cell("reserve-4-recovery", caption, kind, name) for name in (FIRST, LAST, NEVER)
        )
        return f"{first} / {last}, {never}"

    rows = ((kind, *(text(system, kind) for system in SYSTEMS.values())) for kind in SETTINGS)
    return markdown(("first / last late, s; never arrived", *SYSTEMS), rows)


def outages() -> str:
    """After cuts of 1 to 150 s: what never arrived, and seconds to the first message."""

    def text(seconds: int, kind: str) -> str:
        caption = f"Recovery: recovery lte, outage {seconds} s."
        never, first = (cell("reserve-5-outage", caption, kind, name) for name in (NEVER, FIRST))
        return f"{never}, {'never' if first == 'none' else first}"

    rows = (
        (f"{seconds} s", *(text(seconds, kind) for kind in SETTINGS)) for seconds in (1, 3, 10, 30, 90, 150)
    )
    return markdown(("cut for", *SETTINGS), rows)


CLOCKS = (
    "chronyd, the kernel's time stamps",
    "ptp4l, the kernel's time stamps",
    "SNTP, the program's own time stamps",
)
FLOODS = {"": "1 kbit/s", "uplink full, ": "22 Mbit/s"}


FIGURE_OF = {"Ethernet": "figure-6.csv", "LTE": "figure-7.csv", "NR": "figure-8.csv"}  # of the deliverable


def high_traffic() -> str:
    """How many messages of 10 signals arrived through a full link, and their mean latency."""

    def row(system: str, name: str) -> Iterator[str]:
        file = HERE / "reserve-1b-latency" / "report" / "tables" / name
        with file.open(encoding="utf-8") as lines:
            found = {
                (one["protocol"], one["rate"]): one for one in csv.DictReader(lines) if one["signals"] == "10"
            }
        yield system
        for protocol in ("AMQP", "MQTT", "UDP", "SV"):
            rates = [found.get((protocol, rate)) for rate in ("10", "100")]  # None: no message arrived
            counts = " / ".join(f"{int(one['messages']):,}" if one else "0" for one in rates)
            means = " / ".join(format(float(one["mean"]) / 1e3, ".2g") for one in rates if one)
            yield f"{counts}; {means} s"

    head = ("arrived; mean latency", "AMQP", "MQTT", "UDP", "Sampled Values")
    return markdown(head, (row(*one) for one in FIGURE_OF.items()))


def clocks() -> str:
    """What each daemon believes its clock to be off by: the mean and 96 % of the answers."""

    def text(daemon: str, system: str, flood: str) -> str:
        row = f"clock {system}, flood {flood}, {daemon}"
        rows = {cells[0] for cells in table("reserve-7-clock", "Test 7.")[1:]}
        if not all(name.endswith(CLOCKS) and name.startswith("clock ") for name in rows):
            raise SystemExit(
                f"reserve-7-clock: unknown rows in the table of test 7: {', '.join(sorted(rows))}"
            )
        if row not in rows:
            return "no answer"
        columns = ("mean", "2nd percentile", "98th percentile")
        mean, low, high = (cell("reserve-7-clock", "Test 7.", row, column) for column in columns)
        return f"{mean} ({low} to {high})"

    head = ("ms", *(f"{words}{system}" for words in FLOODS for system in SYSTEMS))
    rows = (
        (daemon, *(text(daemon, system, flood) for flood in FLOODS.values() for system in SYSTEMS.values()))
        for daemon in CLOCKS
    )
    return markdown(head, rows)


def substation_flat() -> str:
    """Mean delays by the stack of a PISA, beside the printed ones."""
    streams = [
        f"{way}, {load}"
        for way in ("PISA to controller", "controller to PISA")
        for load in ("no files", "beside files")
    ]
    rows = (
        (
            f"{stack} us",
            *(
                beside_paper("substation-flat", f"Figure 3. ... pisa {stack} us", one, "mean")
                for one in streams
            ),
        )
        for stack in (200, 100, 50)
    )
    return markdown(("stack of a PISA", *streams), rows)


FIGURES: dict[str, Callable[[], str]] = {
    "claims": claims,
    "mqtt-campaign": mqtt_campaign,
    "mqtt-payload": mqtt_payload,
    "ccc-printed": ccc_printed,
    "ccc-dropped-without": ccc_value("Table 7.3.", "A-HRT", "40 to 60 s"),
    "ccc-queues": as_published(CCC, CCC_QUEUES),
    "ccc-shared": as_published(CCC, CCC_SHARED),
    "ccc-faults": as_published(CCC, CCC_FAULTS),
    "priority-printed": priority_printed,
    "interaction-round-trips": as_published("interaction-models", "Table VII."),
    "reserve-highest-rate": as_published("reserve-3-highest-rate", "Test 3."),
    "reserve-recovery": recovery,
    "reserve-outages": outages,
    "reserve-high-traffic": high_traffic,
    "reserve-clocks": clocks,
    "reserve-bytes": as_published("reserve-8-efficiency", "Table 5."),
    "reserve-traffic": as_published("reserve-8-efficiency", "Table 4."),
    "substation-flat": substation_flat,
    "substation-bays": as_published("substation-bays", "Figures 5 to 7. ... pisa 100 us, busbar 20 us"),
}
