"""Tests searches of campaigns: the steps between two values, and the keys that a file may have for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from malformed import BASE

from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError, load_campaign
from orchestrator.topology.search import Search, Trial, following, largest, next_values

HOLDS = "holds: [{metric: latency_p99, classes: [client.publish], at_most: 100}]"
GOOD = f"{{clients: {{from: 2, to: 9, {HOLDS}}}}}"


def search(low: int = 1000, high: int = 65536, resolution: str = "10 %") -> Search:
    holds = [{"metric": "messages_lost", "classes": ["up"], "at_most": 0}]
    return Search.model_validate({"from": low, "to": high, "resolution": resolution, "holds": holds})


def steps(one: Search, limit: int) -> dict[int, bool]:
    """Returns all values that the search tries on a path on which values up to `limit` hold."""
    tried: dict[int, bool] = {}
    while (value := following(one, tried)) is not None:
        assert value not in tried, "nothing is tried twice"
        tried[value] = value <= limit
    return tried


def test_it_doubles_until_a_trial_fails_and_halves_what_is_open() -> None:
    assert list(steps(search(), 10_000)) == [1000, 2000, 4000, 8000, 16000, 11314, 9514, 10375]


@given(limit=st.integers(1, 100_000), low=st.integers(1, 5000), share=st.integers(1, 50))
def test_what_it_finds_is_the_limit_within_its_resolution(limit: int, low: int, share: int) -> None:
    one = search(low, 65_536, f"{share} %")
    tried = steps(one, limit)
    found = largest(tried)
    assert len(tried) < 40
    if limit < low:
        assert found is None and list(tried) == [low]
    else:
        assert found is not None and found <= limit
        above = min((value for value in tried if value > limit), default=None)
        assert found == 65_536 if above is None else above - found <= max(1, share / 100 * above)


def test_searches_share_their_runs_and_one_that_is_over_stands_at_its_least_value() -> None:
    searches = {"slow": search(), "fast": search()}
    tried: dict[str, dict[int, bool]] = {"slow": {}, "fast": {}}
    runs = []
    while (values := next_values(searches, tried)) is not None:
        runs.append(values)
        for name, limit in (("slow", 0), ("fast", 3000)):
            tried[name][values[name]] = values[name] <= limit
    assert [run["fast"] for run in runs] == [1000, 2000, 4000, 2828, 3363, 3084]
    assert {run["slow"] for run in runs} == {1000}
    assert {name: largest(found) for name, found in tried.items()} == {"slow": None, "fast": 2828}


def campaign(tmp_path: Path, block: str) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "campaign.yaml"
    path.write_text(f"name: c\ncampaign:\n  topologies: [base.yaml]\n{block}\n")
    return path


def test_a_campaign_begins_with_one_run_of_each_combination_and_is_given_more(tmp_path: Path) -> None:
    block = f"  factors: {{hold: [10 s, 20 s]}}\n  search: {GOOD}"
    path = campaign(tmp_path, block)
    names = [cell.name for cell in load_campaign(path).cells]
    assert names == ["small.p001.hold-10s.r1", "small.p001.hold-20s.r1"]
    more = Trial(str(tmp_path / "base.yaml"), {"hold": "20 s"}, 2, {"clients": 4})
    cells = load_campaign(path, {}, [more]).cells
    assert [cell.name for cell in cells] == [*names, "small.p002.hold-20s.r1"]
    assert cells[2].levels == {"clients": 4, "hold": "20 s"}
    assert cells[2].loaded.model.groups["client"].count == 4


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (f"search: {{clients: {{from: 9, to: 9, {HOLDS}}}}}", "campaign.search.clients: 9 to 9: is no range"),
        (f"points: [{{clients: 2}}]\n  search: {GOOD}", "conflicts with `points`"),
        (f"factors: {{clients: [2]}}\n  search: {GOOD}", "and by `factors` too"),
        ("search: {clients: {from: 2, to: 9, holds: []}}", "campaign.search.clients: has no condition"),
        ("search: {clients: {from: 2, to: 9, expect: [latency_p9 < 5 ms]}}", "expect[0].metric"),
        (f"search: {GOOD[:-1].replace('p99', 'p9')}}}", 'did you mean "latency_p99"?'),
        (f"search: {{clients: {{from: 0, to: 9, {HOLDS}}}}}", "campaign.search.clients.from: 0"),
        (f"search: {{people: {{from: 2, to: 9, {HOLDS}}}}}", "people"),
        (f"search: {{clients: {{from: 2, to: 9, resolution: 0 %, {HOLDS}}}}}", "resolution"),
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_made_is_refused(tmp_path: Path, block: str, said: str) -> None:
    with pytest.raises(TopologyError) as refused:
        load_campaign(campaign(tmp_path, f"  {block}"))
    assert said in str(refused.value)


def test_classes_of_a_search_are_checked_before_its_first_run(tmp_path: Path) -> None:
    wanted = 'expect: ["latency_p99[class=client.pup] < 100 ms"]'
    (cell,) = load_campaign(campaign(tmp_path, f"  search: {{clients: {{from: 2, to: 9, {wanted}}}}}")).cells
    with pytest.raises(TopologyError) as refused:
        make_plan(cell.loaded)
    said = str(refused.value)
    assert "campaign.search.clients.expect[0].class" in said and 'did you mean "client.pub"?' in said
    right = wanted.replace("pup", "pub")
    (cell,) = load_campaign(campaign(tmp_path, f"  search: {{clients: {{from: 2, to: 9, {right}}}}}")).cells
    assert make_plan(cell.loaded).expectations == (), "a run of a search may fail them"
