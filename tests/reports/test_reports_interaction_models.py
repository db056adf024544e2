"""Tests the report of the paper on interaction models: data for which each claim holds and data for which it
fails, and tables beside the printed values.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from reports.claims.evidence import Evidence
from reports.claims.verdict import FAILS, HOLDS, OPEN
from reports.metrics.compare import SCHEMA
from reports.metrics.metric import OF, Of
from reports.papers import PAPERS
from reports.papers.vnet_2014_models import tables
from reports.papers.vnet_2014_models.evidence import MODELS, NETWORKS, printed
from reports.study import Study

CLAIMS = PAPERS["vnet_2014_models"].claims()


class Crafted(Evidence):
    """Evidence from figures (ideal, constrained) by the names of claims.yaml."""

    def __init__(self, figures: dict[str, tuple[float, float]], half: float = 0.0) -> None:
        super().__init__(Study("crafted", Path("nowhere"), (), False), CLAIMS.factor)
        rows = []
        for name, values in figures.items():
            quantity = CLAIMS.quantities[name]
            of = quantity.of[0]
            for network, v in zip(NETWORKS, values, strict=True):
                self.series[quantity.scenario, network] = network
                of_columns = (getattr(of, f) for f in OF)
                key = (quantity.scenario, network, quantity.metric)
                rows.append((*key, *of_columns, v, v - half, v + half, "u", 5, 5, ""))
        self.table = pl.DataFrame(rows, schema=SCHEMA, orient="row")


CASES: dict[str, tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float]]]] = {
    "published-slow": (
        {"tcp_ps_round_trip": (345.6, 1), "udp_rr_round_trip": (2.183, 1)},
        {"tcp_ps_round_trip": (300.0, 1), "udp_rr_round_trip": (2.183, 1)},
    ),
    "published-slow-pgm": (
        {"pgm_ps_round_trip": (363.7, 1), "udp_rr_round_trip": (2.183, 1)},
        {"pgm_ps_round_trip": (3.0, 1), "udp_rr_round_trip": (2.183, 1)},
    ),
    "udp-loss": ({"udp_rr_missing": (0, 39.3)}, {"udp_rr_missing": (0, 99.8)}),
    "pgm-utility-least": (
        {"pgm_ps_sent": (0.01, 1), "udp_rr_sent": (1.4, 1)},
        {"pgm_ps_sent": (1.5, 1), "udp_rr_sent": (1.4, 1)},
    ),
    "congestion-worse-than-loss": (
        {"tcp_ps_sent": (5, 4), "tcp_ps_answered": (5, 4)},
        {"tcp_ps_sent": (2, 4), "tcp_ps_answered": (2, 4)},
    ),
    "pgm-most-efficient": (
        {f"{m}_share": (s, s) for m, s in zip(MODELS, (60, 55, 50, 30), strict=True)},
        {f"{m}_share": (s, s) for m, s in zip(MODELS, (50, 55, 60, 30), strict=True)},
    ),
    "pub-sub-worst": (
        {f"{m}_overhead": (o, o) for m, o in zip(MODELS, (3, 2, 1, 1), strict=True)},
        {
            f"{m}_overhead": (o, o) for m, o in zip(MODELS, (2, 3, 1, 1), strict=True)
        },  # the value of router/dealer is above
    ),
    "router-less": (
        {"tcp_ps_overhead": (3, 3), "tcp_rd_overhead": (1, 2)},
        {"tcp_ps_overhead": (3, 1), "tcp_rd_overhead": (1, 2)},
    ),
    "worst-delay": (
        {f"{m}_round_trip": (1, t) for m, t in zip(MODELS, (21500, 604, 17040, 47), strict=True)}
        | {"tcp_ps_missing": (0, 0.33)},
        {f"{m}_round_trip": (1, t) for m, t in zip(MODELS, (17040, 604, 21500, 47), strict=True)}
        | {"tcp_ps_missing": (0, 0.33)},
    ),
}


def test_a_mean_of_survivors_cannot_be_told() -> None:
    claim = next(one for one in CLAIMS.claims if one.key == "worst-delay")
    judged = claim.judge(Crafted(CASES["worst-delay"][0] | {"tcp_ps_missing": (0, 51.7)}))
    assert judged.verdict == OPEN and "of 48 % of the messages only" in judged.reason


def test_a_claim_on_both_networks_needs_both() -> None:
    claim = next(one for one in CLAIMS.claims if one.key == "udp-fastest")
    found = Crafted({f"{m}_round_trip": (t, t) for m, t in zip(MODELS, (300, 5, 400, 1), strict=True)})
    assert claim.judge(found).verdict == HOLDS
    unanswered = (pl.col("scenario") == "udp request response") & (pl.col("series") == "constrained")
    found.table = found.table.filter(~unanswered)
    judged = claim.judge(found)
    assert judged.verdict == OPEN and "constrained: needs runs of all four models" in judged.reason


@pytest.mark.parametrize("key", CASES)
def test_a_claim_is_judged_both_ways(key: str) -> None:
    claim = next(one for one in CLAIMS.claims if one.key == key)
    assert [claim.judge(Crafted(figures)).verdict for figures in CASES[key]] == [HOLDS, FAILS]


def test_table_vii_has_the_printed_values_beside_the_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"udp_rr_round_trip": (0.07, 300.0), "udp_rr_missing": (0.0, 99.5), "udp_rr_sent": (1.43, 1.43)}
    monkeypatch.setattr(tables, "evidence", lambda _study: Crafted(figures))
    six, seven = tables.tables(Study("crafted", Path("nowhere"), (), False))
    assert six.rows[0] == ("utility data, MB", "1.43", "1.42", "1.43", "1.42")
    assert seven.rows[7] == ("8. UDP RR, constrained", "300", "46.8", "99.5", "39.30")
    assert seven.rows[0][1] == "" and seven.rows[0][2] == "346"


def test_the_printed_values_are_the_papers() -> None:
    found = printed()
    assert found["table_vi_udp"]["constrained"]["loss_percent"] == 39.3
    assert [row["n"] for row in found["table_vii"]] == list(range(1, 9))
    assert {row["model"] for row in found["table_vii"]} == MODELS.keys()
    assert Of() == CLAIMS.quantities["udp_rr_sent"].of[0]
