"""The proofs of several runs as one table."""

from __future__ import annotations

from typing import Any

from reports.figures.proof import proofs
from reports.study import Study


def proof_summary(study: Study) -> list[dict[str, Any]]:
    """Proofs by link, direction and quantity, the runs of a campaign taken together; failures first.

    Of several runs: how many, the smallest and largest realised value, the worst verdict, no interval.
    """
    keys = ["link", "direction", "quantity", "asked", "expected", "unit"]
    found = []
    for _, rows in proofs(study.cells).group_by(keys, maintain_order=True):
        first = rows.row(0, named=True)  # proofs are sorted, the worst verdict first
        many = rows.height > 1
        text = _span(rows.get_column("realised").drop_nulls().to_list())
        interval = {"low": None, "high": None} if many else {}
        n = rows.get_column("n").sum() if many else first["n"]
        found.append({**first, **interval, "n": n, "shown": text, "runs": rows.height})
    return found


def _span(values: list[float]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
