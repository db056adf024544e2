"""Tests NODES patterns (names, groups, ranges, globs): properties over generated labs, and the
error texts.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.nodes import PatternError, alternatives, describe, expand

LAB = {"broker": "broker", **{f"client{n}": "client" for n in range(1, 31)}, "subscriber": "subscriber"}

names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
labs = st.dictionaries(names, names, min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("broker", ["broker"]),
        ("client", [f"client{n}" for n in range(1, 31)]),
        ("client[1-3]", ["client1", "client2", "client3"]),
        ("client[2,7-8]", ["client2", "client7", "client8"]),
        ("client[2,7-8],broker", ["broker", "client2", "client7", "client8"]),
        ("client3?", ["client30"]),
        ("*s*", ["subscriber"]),
        ("client1, client1,client1*", ["client1", *(f"client1{n}" for n in range(10))]),
    ],
)
def test_pattern_means_these_nodes_in_the_labs_order(pattern: str, expected: list[str]) -> None:
    assert expand(pattern, LAB) == expected


THERE = "nodes: broker, client (client1 ... client30), subscriber"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("clinet*", f"no such node or group; {THERE}"),
        ("client[29-32]", f"no such node or group (client31, client32); {THERE}"),
        ("client[3-1]", "the range 3-1 runs backwards; write 1-3"),
        ("client[a-b]", '"[a-b]" is not a range; write [1-20] or [1-5,8]'),
        ("client[1-2", "brackets do not pair; a range is written client[1-20]"),
        ("broker,,client", 'a part is empty; write for example "broker,client[1-20]"'),
        ("client[1-999999999]", "the range 1-999999999 has more than 100000 numbers"),
        ("a[1-99999]b[1-99999]", "9999800001 names; at most 100000 can be written as one range"),
    ],
)
def test_refusal_says_what_and_what_exists(pattern: str, text: str) -> None:
    with pytest.raises(PatternError) as refused:
        expand(pattern, LAB)
    assert str(refused.value) == f'nodes: "{pattern}": {text}'


@given(labs)
def test_a_star_means_every_node_in_order(groups: dict[str, str]) -> None:
    assert expand("*", groups) == list(groups)


@given(labs, st.data())
def test_names_mean_themselves_once_in_the_labs_order(groups: dict[str, str], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.sampled_from(sorted(groups)), min_size=1))
    assert expand(",".join(wanted), groups) == [name for name in groups if name in wanted]


@given(labs, st.text(max_size=20))
def test_any_text_gives_known_nodes_or_a_refusal(groups: dict[str, str], text: str) -> None:
    try:
        found = expand(text, groups)
    except PatternError as refused:
        assert str(refused).startswith("nodes: ")
    else:
        assert found and set(found) <= set(groups)


@given(st.integers(0, 500), st.integers(0, 40))
def test_a_range_is_its_numbers(low: int, width: int) -> None:
    assert (
        alternatives(f"m[{low}-{low + width}]") == [f"m{n}" for n in range(low, low + width + 1)] or low == 0
    )


def test_a_leading_zero_fixes_the_width() -> None:
    assert alternatives("m[08-11]") == ["m08", "m09", "m10", "m11"]


def test_description_of_a_group_of_one() -> None:
    assert describe({"meter1": "meter"}) == "meter (meter1)"
