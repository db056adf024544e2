"""Tests each row of docs/exchange.md by changes of a file: a construct of the page is carried over (its value
changes the topology), named as left out, without effect, or refused with a line, as its row says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_rows import (
    Case,
    Tool,
    compose,
    containerlab,
    core,
    gns3,
    graphml,
    kathara,
    mahimahi,
    mininet,
    netlab,
    shell,
)

from orchestrator.topology import TopologyError

PAGE = Path(__file__).parents[2] / "docs" / "exchange.md"
TOOLS: tuple[Tool, ...] = tuple(
    module.TOOL
    for module in (shell, containerlab, mininet, kathara, core, gns3, netlab, compose, mahimahi, graphml)
)
# Words of the page that stand for any text of a file.
ANY = {
    "NAME", "NODE", "IF", "N", "X", "Y", "FILE", "MS", "RATE", "UP", "DOWN", "TEXT", "br", "text", "default",
    "word", "name", "topos", "mn", "a-b-c",
}  # fmt: skip
TABLES = {"Read so far"}  # without constructs


def sections() -> dict[str, list[list[str]]]:
    """Returns the rows of each section's table, each as its cells, without the heads."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        head, _, text = part.partition("\n")
        rows = [
            re.split(r"(?<!\\) ?\| ?", line.strip("|").strip())
            for line in text.splitlines()
            if line.startswith("|")
        ]
        if rows[2:] and head not in TABLES:
            found[head] = rows[2:]
    return found


def own(tool: Tool, row: str) -> list[str]:
    """Returns the keys of the tool's cases that begin a row's first cell."""
    return [key for key in tool.rows if row.startswith(key)]


def test_each_row_of_the_page_has_cases_and_each_case_a_row() -> None:
    page = sections()
    assert page.keys() == {tool.section for tool in TOOLS}
    for tool in TOOLS:
        firsts = [row[0] for row in page[tool.section]]
        assert [row for row in page[tool.section] if len(row) != 2] == []
        assert [row for row in firsts if len(own(tool, row)) != 1] == []
        assert [key for key in tool.rows if sum(row.startswith(key) for row in firsts) != 1] == []
        assert [key for key, cases in tool.rows.items() if not cases] == []


def test_each_construct_of_a_row_is_in_one_of_its_cases() -> None:
    page, missing = sections(), []
    for tool in TOOLS:
        for row in page[tool.section]:
            text = " ".join(case.words() for case in tool.rows[own(tool, row[0])[0]])
            for span in re.findall(r"`([^`]+)`", row[0].replace("\\|", "|")):
                words = [one for one in re.findall(r"[A-Za-z_][\w-]*", span) if one not in ANY]
                words = words or [one for one in re.split(r"\w+|\.\.\.|\s+", span) if one]
                missing += [(tool.section, span, one) for one in words if one not in text]
    assert not missing, missing


CASES = [
    pytest.param(number, case, id=f"{tool.section[:12]}-{place}-{index}-{case.result}")
    for number, tool in enumerate(TOOLS)
    for place, cases in enumerate(tool.rows.values())
    for index, case in enumerate(cases)
]


@pytest.mark.parametrize(("number", "case"), CASES)
def test_a_change_of_a_construct_leads_to_what_its_row_says(number: int, case: Case, tmp_path: Path) -> None:
    tool = TOOLS[number]
    text, lines = tool.told(tmp_path, case)
    if case.result == "refused":
        with pytest.raises(TopologyError) as raised:
            tool.told(tmp_path, case, changed=True)
        assert all(problem.line or "two interfaces" in problem.rule for problem in raised.value.problems)
        return
    new_text, new_lines = tool.told(tmp_path, case, changed=True)
    if case.result in ("network", "both"):
        assert new_text != text, (text, new_lines)
    else:
        assert new_text == text
    if case.result in ("said", "both"):
        assert new_lines - lines or (case.result == "both" and lines != new_lines), (lines, new_lines)
    elif case.result == "silent":
        assert new_lines == lines
