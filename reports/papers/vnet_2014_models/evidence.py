"""Looks up the measured and the printed values of the paper by interaction model and network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports.claims.document import read_claims
from reports.claims.evidence import Evidence
from reports.claims.verdict import Value
from reports.papers.published import reference
from reports.papers.vnet_2014_models.wire import wire_metrics
from reports.study import Study

ROOM = Path(__file__).parent
# name in claims.yaml and reference.yaml -> title, in the order of table VII
MODELS = {"tcp_ps": "TCP PS", "tcp_rd": "TCP RD", "pgm_ps": "PGM PS", "udp_rr": "UDP RR"}
NETWORKS = ("ideal", "constrained")


def evidence(study: Study) -> Evidence:
    """Returns the evidence for the paper's claims, which includes the metrics of `wire_metrics`."""
    return Evidence(study, read_claims(ROOM / "claims.yaml").factor, wire_metrics)


def measured(found: Evidence, name: str, model: str, network: str) -> Value | None:
    """Returns the value of claims.yaml's quantity MODEL_NAME on a network; None if it was not measured."""
    return found.value(read_claims(ROOM / "claims.yaml").quantities[f"{model}_{name}"], network)


def printed() -> dict[str, Any]:
    """Returns the paper's printed values for these experiments."""
    return dict(reference(ROOM)["multi_protocol"])
