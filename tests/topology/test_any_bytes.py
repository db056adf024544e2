"""Tests that any file gives a plan or a TopologyError: random bytes, mutated files and values."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from malformed import BASE
from ruamel.yaml import YAML

from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError, load_campaign
from orchestrator.topology.loading import parse

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
SHIPPED = sorted(TOPOLOGIES.glob("*.yaml"))
RING = (TOPOLOGIES / "ring-ospf.yaml").read_text()
TEXTS = [BASE, *(path.read_text() for path in SHIPPED)]
# Values that have broken parsers; a test puts them in the place of correct ones.
NASTY = (
    "", "~", "-1", "0", "1e999", ".nan", "9" * 5000, "[]", "{}", "[[]]", "{a: }", "*x", "&x y",
    "!!int 3",
    "'", '"', "|", ">", "${", "${}", "${clients}", "$${x}", "${a${b}}", "{{", "\t", "\x00", "\u2028",
    "\ufeff",
    "{% for i in range(9**9) %}{% endfor %}", "true", "2001-01-01", "0x10", "- a", "? a", "a: b: c", "<<: *x",
    "%TAG", "---", "...", "100 %", "1 h", "client[1-999999]", "client[9-1]", "[[!", "\\", "#", "\u0661 ms",
    "10.0.0.0/0", "../..",
)  # fmt: skip


def _survives(content: bytes) -> None:
    try:
        make_plan(parse("fuzz.yaml", content))
    except TopologyError as error:
        assert error.problems
        assert all(problem.rule and problem.remedy for problem in error.problems)


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=300)
@example(b"\xef\xbb\xbfname: a")
@example(b"a: &a {a: *a}")
@example(b"{" * 3000)
def test_random_bytes(content: bytes) -> None:
    _survives(content)


@given(st.text(alphabet="ab:{}[]-,#&*!|>'\"%@`$ \n\t?<=0123", max_size=200))
@settings(deadline=None, max_examples=400)
def test_random_yaml_signs(text: str) -> None:
    _survives(text.encode())


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draws a valid file with a few lines dropped, doubled, swapped, or with other values."""
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.sampled_from(("drop", "double", "indent", "value", "inside", "swap")))
        if how == "drop" and len(lines) > 1:
            del lines[at]
        elif how == "double":
            lines.insert(at, lines[at])
        elif how == "indent":
            lines[at] = draw(st.sampled_from((" ", "  ", "    "))) + lines[at]
        elif how == "value":
            lines[at] = lines[at].partition(":")[0] + ": " + draw(st.sampled_from(NASTY))
        elif how == "inside":
            place = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:place] + draw(st.sampled_from(NASTY)) + lines[at][place:]
        else:
            other = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


@given(mutated())
@example(
    RING.replace("  west: {subnet: 10.1.0.0/24}\n", "")
)  # the nodes' routes lead to a segment that does not exist
@settings(deadline=None, max_examples=120)
def test_mutated_files(text: str) -> None:
    _survives(text.encode("utf-8", "surrogatepass"))


@pytest.mark.sweep
@pytest.mark.slow
@given(mutated())
@settings(deadline=None, max_examples=1000)
def test_many_mutated_files(text: str) -> None:
    _survives(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 8))])
def test_every_value_replaced_by_every_nasty_one(seed: int) -> None:
    """Shows that no line of BASE with a nasty value makes the check crash: a quarter of all pairs of line and
    value for each seed.
    """
    chance = random.Random(seed)
    lines = BASE.splitlines()
    for at in range(len(lines)):
        for value in chance.sample(NASTY, len(NASTY) // 4):
            changed = [*lines[:at], lines[at].partition(":")[0] + ": " + value, *lines[at + 1 :]]
            _survives("\n".join(changed).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("value", ["5", "true", "text", "1.5", "[]", "[5]", "{}", "{a: 5}", "{a: [5]}"])
def test_any_section_of_another_shape(value: str) -> None:
    document = YAML(typ="safe", pure=True).load(BASE)
    for section in document:
        lines = [f"{key}: {json.dumps(document[key])}" for key in document if key != section]
        _survives("\n".join([*lines, f"{section}: {value}"]).encode())


@given(st.dictionaries(st.sampled_from(["clients", "hold", "x"]), st.text(max_size=12)))
@settings(deadline=None, max_examples=150)
def test_any_override(overrides: dict[str, str]) -> None:
    try:
        parse("fuzz.yaml", BASE.encode(), overrides)
    except TopologyError as error:
        assert error.problems


@given(st.binary(max_size=60), st.integers(0, 400))
@settings(deadline=None, max_examples=100)
def test_campaign_files(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    text = b"name: c\ncampaign:\n  topologies: [base.yaml]\n  factors: {clients: [1, 2]}\n  repetitions: 2\n"
    folder = tmp_path_factory.mktemp("campaign")
    (folder / "base.yaml").write_text(BASE)
    (folder / "campaign.yaml").write_bytes(text[:at] + noise + text[at:])
    try:
        assert load_campaign(folder / "campaign.yaml").cells
    except TopologyError as error:
        assert error.problems
