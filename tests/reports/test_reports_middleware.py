"""Tests the comparison of middleware and serialisers: the values of a run, the heat maps, and each claim both
ways.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from synthetic import plan_of

from contract.manifest import Manifest
from reports.claims.verdict import FAILS, HOLDS
from reports.figures.spec import CannotDrawError
from reports.papers.middleware_2017 import MIDDLEWARE_2017
from reports.papers.middleware_2017.heat import SPECS
from reports.papers.middleware_2017.pairs import LATENCY, PATTERNS, THROUGHPUT, pair_metrics, pairs, use_of
from reports.rundir import Run
from reports.study import Study

SECOND = 10**9
USES = ("zeromq", "ice", "rmi", "corba", "opc-ua", "xmpp", "web-services")
SERIALISERS = ("protostuff", "kryo", "json-gson", "json-genson", "yaml-jackson", "xml-jaxb")
# The paper's messages a second for each pair of a middleware and a serialiser.
OF_USES = dict(zip(USES, (10.0, 9.0, 6.0, 5.0, 1.0, 1.0, 1.0), strict=True))
OF_SERIALISERS = dict(zip(SERIALISERS, (100.0, 60.0, 30.0, 10.0, 9.0, 2.0), strict=True))


ORDERS = (
    "zeromq-leads", "ice-leads", "opc-ua-struggles", "xmpp-struggles", "web-services-struggle", "opc-ua-late",
    "xmpp-late", "web-services-late", "binary-faster", "xml-worst", "json-library", "kryo-not-fastest",
)  # fmt: skip


def study(of_uses: dict[str, float], of_serialisers: dict[str, float]) -> Study:
    rows = []
    for pattern in PATTERNS:
        for use, one in of_uses.items():
            for serialiser, other in of_serialisers.items():
                rows.append((use, serialiser, pattern, THROUGHPUT, one * other))
                rows.append((use, serialiser, pattern, LATENCY, 1000.0 / (one * other)))
    names = ["use", "serialiser", "pattern", "name", "value"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return crafted(frame)


def crafted(rows: pl.DataFrame) -> Study:
    """Returns a study without runs whose values are these pairs."""
    of = Study("crafted", Path("nowhere"), (), False)
    of._made[pairs] = rows
    return of


def verdicts(of: Study) -> dict[str, str]:
    return {key: judged.verdict for key, (_, judged) in MIDDLEWARE_2017.judged(of).items()}


def test_each_claim_holds_where_all_is_as_in_the_paper() -> None:
    found = verdicts(study(OF_USES, OF_SERIALISERS))
    assert {found[key] for key in ORDERS} == {HOLDS}


def test_each_claim_fails_where_all_is_the_other_way_round() -> None:
    uses = dict(zip(USES, (0.1, 0.1, 0.6, 0.5, 1.0, 1.0, 1.0), strict=True))
    serialisers = dict(zip(SERIALISERS, (9.0, 10.0, 30.0, 30.0, 60.0, 100.0), strict=True))
    found = verdicts(study(uses, serialisers))
    assert {found[key] for key in ORDERS} == {FAILS}


def test_nothing_is_judged_without_its_runs() -> None:
    judged = verdicts(Study("none", Path("nowhere"), (), False))
    assert not {HOLDS, FAILS} & set(judged.values())


def test_heat_maps_have_the_best_first() -> None:
    of = study(OF_USES, OF_SERIALISERS)
    assert [spec.key for spec in SPECS] == [f"figure-{number}" for number in range(1, 7)]
    for spec in SPECS:
        frame = spec.data(of)
        assert frame.height == len(USES) * len(SERIALISERS) and frame["share"].max() == 1.0
        drawn = spec.draw(frame, of).to_dict()
        encoding = drawn["layer"][0]["encoding"]
        assert encoding["x"]["sort"][:2] == ["zeromq", "ice"]
        assert encoding["y"]["sort"] == list(SERIALISERS)
    with pytest.raises(CannotDrawError, match=r"topologies/papers/middleware\.yaml"):
        SPECS[0].data(Study("none", Path("nowhere"), (), False))


def run(rows: list[dict[str, Any]]) -> Run:
    flows = [
        {
            "schedule": None,
            "traffic_class": f"{pattern}-greedy",
            "start_ns": 5 * SECOND,
            "stop_ns": 7 * SECOND,
        }
        for pattern in PATTERNS
    ]
    columns = {
        "class": pl.String,
        **dict.fromkeys(("received_ns", "replied_ns", "latency_ns", "round_trip_ns"), pl.Int64),
    }
    table = pl.DataFrame(rows, schema=columns)
    plan = plan_of({"flows": flows, "parameters": {"use": "ice", "serialiser": "kryo"}})
    return cast(Run, SimpleNamespace(table=lambda _name: table, plan=plan, manifest=Manifest()))


def test_a_pairs_figures_are_counted_as_the_paper_did() -> None:
    greedy = [{"class": "push-greedy", "received_ns": 6 * SECOND + at * SECOND // 10} for at in range(40)]
    calm = [{"class": "request", "round_trip_ns": ms * 1_000_000, "latency_ns": 1} for ms in (2, 4)]
    found = {(m.name, m.of.traffic_class): m.value for m in pair_metrics(run([*greedy, *calm]))}
    assert found[THROUGHPUT, "push"] == 10.0, "20 of 40 arrive within two seconds of the first"
    assert found[LATENCY, "request"] == 1.5, "half of the mean round trip"
    assert found[THROUGHPUT, "publish"] == 0.0
    assert (LATENCY, "push") not in found


def test_the_agents_own_roles_stand_beside_and_are_not_ranked() -> None:
    of = study(OF_USES, OF_SERIALISERS)
    fast = [("agent udp", "protostuff", "push", THROUGHPUT, 1e6)]
    rows = pl.concat([of.once(pairs), pl.DataFrame(fast, schema=of.once(pairs).schema, orient="row")])
    beside = crafted(rows)
    assert verdicts(beside) == verdicts(of)
    (of_push,) = (spec for spec in SPECS if spec.key == "figure-2")
    shares = dict(of_push.data(beside).group_by("use").agg(pl.col("share").max()).rows())
    assert shares["agent udp"] == shares["zeromq"] == 1.0


def test_a_roles_throughput_is_that_of_its_full_seconds() -> None:
    rates = [{"from_ns": at * SECOND, "per_s": per_s} for at, per_s in ((0, 0), (5, 8000), (7, 0))]
    flow = {"traffic_class": "udp-push-greedy", "schedule": {"rates": rates}, "payload": {"bytes": 1484}}
    arrived = [
        {
            "class": "udp-push-greedy",
            "received_ns": 6 * SECOND + at * SECOND // 10,
            "replied_ns": None,
            "latency_ns": 1,
            "round_trip_ns": None,
        }
        for at in range(40)
    ]
    table = pl.DataFrame(
        arrived,
        schema={
            "class": pl.String,
            **dict.fromkeys(("received_ns", "replied_ns", "latency_ns", "round_trip_ns"), pl.Int64),
        },
    )
    plan = plan_of({"flows": [flow], "scenario": "agents", "parameters": {}})
    cell = SimpleNamespace(
        run=SimpleNamespace(table=lambda _name: table, plan=plan, manifest=Manifest()), levels={}
    )
    found = pairs(Study("crafted", Path("nowhere"), cast(Any, (cell,)), True))
    assert found.rows() == [("agent udp", "protobuf-protostuff", "push", THROUGHPUT, 10.0)]


def test_another_device_or_network_is_said_and_not_ranked() -> None:
    assert use_of({"use": "ice", "cpu": "0.25 cores", "network": "100 Mbit/s"}) == "ice"
    assert use_of({"use": "ice", "cpu": "0.9 cores", "network": "1 Gbit/s"}) == "ice, 0.9 cores, 1 Gbit/s"
    of = study(OF_USES, OF_SERIALISERS)
    slow = [("zeromq, 10 Mbit/s", "protostuff", "push", THROUGHPUT, 1e6)]
    rows = pl.concat([of.once(pairs), pl.DataFrame(slow, schema=of.once(pairs).schema, orient="row")])
    assert verdicts(crafted(rows)) == verdicts(of)
