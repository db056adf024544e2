"""Inserts numbers of published examples into README.md and the pages (`make figures`).

    figures.py            writes what differs, and names the pages
    figures.py --check    writes nothing; status 1 and the names where something differs

A page says `<!-- figure: NAME -->`, what FIGURES has for NAME, and `<!-- end of figure -->`. What stands
between them comes from the example's tables and is never written by hand.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from published import VERDICTS, cell, metric, table, verdicts

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"(<!-- figure: ([\w-]+) -->)(.*?)(<!-- end of figure -->)", re.DOTALL)
MQTT, CCC, PRIORITY = "mqtt-qos-campaign", "ccc-2011", "priority"
RESERVE = ("1a-latency", "1b-latency", "3-highest-rate", "4-recovery", "5-outage", "6-corruption", "7-clock")
# Study -> its page, and the examples that judge its claims
STUDIES = {
    "vNET, 2014: MQTT at three levels of QoS": ("examples/mqtt-qos-campaign/README.md", (MQTT,)),
    "vNET, 2014: four interaction models": ("interaction-models.md", ("interaction-models",)),
    "RESERVE D4.6, 2018: AMQP, MQTT, Sampled Values": (
        "power-protocols.md",
        (*(f"reserve-{name}" for name in RESERVE), "reserve-8-efficiency"),
    ),
    "Switched Ethernet in substations: priorities": ("industrial-ethernet.md", (PRIORITY,)),
    "The same: substations of 19 and 122 nodes": (
        "industrial-ethernet.md#two-substations-figures-3-5-6-and-7",
        ("substation-flat", "substation-bays"),
    ),
    "Cooperative congestion control, 2011": ("cooperative-congestion-control.md", (CCC,)),
    "Smart Grid Communication Comparison, 2017": ("distributed-control.md", ("middleware-reduced",)),
}


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table, with the blank lines that Markdown wants around it."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in lines) + "\n"


def claims() -> str:
    """A row a study: how many of its claims have each verdict."""

    def row(title: str, page: str, examples: tuple[str, ...]) -> Iterator[str]:
        found = verdicts(examples)
        yield f"[{title}]({page})"
        yield from (str(found[verdict]) for verdict in VERDICTS)

    return markdown(("study", *VERDICTS), (row(title, *found) for title, found in STUDIES.items()))


MQTT_ROWS = {
    "broker receives, kB/s": {"name": "received", "nodes": "broker"},
    "latency p50, ms (10 ± 1 ms one way)": {"name": "latency_p50", "traffic_class": "client.meter"},
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
    """A whole table of the page."""

    def text() -> str:
        head, *rows = table(example, caption)
        return markdown(head, rows)

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
}


def inserted(page: str, text: str) -> str:
    """The page with each marked figure as its example has it now."""

    def now(match: re.Match[str]) -> str:
        if match[2] not in FIGURES:
            raise SystemExit(f"figures: {page}: {match[2]!r}: no such figure; there are {', '.join(FIGURES)}")
        return f"{match[1]}{FIGURES[match[2]]()}{match[4]}"

    return MARKED.sub(now, text)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def differing() -> dict[Path, str]:
    """Pages whose figures differ from the examples, with the text that they should have."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    made = {page: inserted(str(page.relative_to(ROOT)), text) for page, text in texts.items()}
    return {page: text for page, text in made.items() if text != texts[page]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    found = differing()
    for page, text in found.items():
        print(f"figures: {page.relative_to(ROOT)}: {'differs' if options.check else 'written'}")
        if not options.check:
            page.write_text(text, encoding="utf-8")
    raise SystemExit(1 if found and options.check else 0)


if __name__ == "__main__":
    main()
