"""Tests that each rule on disturbances warns above its threshold and not below it, and reports when it cannot
tell.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from rundirs import T0, S, flow, guarantee, node, plan, run_dir

from capture import disturbance
from capture.reduce import reduce_run
from contract import manifest
from reports.report import report

MS = 1_000_000
PLAN = plan([node("p"), node("s", listens=True)], [flow("p", ("s", guarantee()))], {"s": ["s"]})
SECONDS = 20
NAMES = list(disturbance.COLUMNS)
QUIET = {  # the counters of one second of a lab on an idle machine of two cores
    "beats": 20, "late_ns": 2 * MS, "worst_ns": MS, "stalled_ns": 0, "suspended_ns": 0, "set_ns": 0,
    "periods": 10, "throttled": 0, "throttled_ns": 0, "ran_ns": 200 * MS, "waited_ns": 12 * MS,
    "slices": 1000, "pressure_ns": 20 * MS, "cores": 2, "cores_ns": 2 * S, "idle_ns": 1.6 * S,
    "steal_ns": 10 * MS, "own_core_ns": S, "own_steal_ns": 5 * MS, "heat_ns": 0, "stopped": 0,
}  # fmt: skip
ONCE = (
    "beats",
    "late_ns",
    "worst_ns",
    "stalled_ns",
    "cores",
    "stopped",
)  # these are values of one second; the other counters grow from second to second


def judged(
    path: Path,
    *,
    file: str = "disturbance.csv",
    kind: str = "host",
    at: int = 10,
    absent: tuple[str, ...] = (),
    of: dict[str, Any] = PLAN,
    every: dict[str, float] | None = None,
    said: dict[str, dict[str, str]] | None = None,
    **once: float,
) -> dict[str, Any]:
    """Returns the manifest of a run of 20 s; `every` changes the counters of each second, `once` only those
    at second `at`.
    """
    run = run_dir(path, of)
    total = dict.fromkeys(NAMES, 0.0)
    lines = []
    for second in range(SECONDS + 1):
        step: dict[str, float] = QUIET | (every or {}) | (once if second == at else {})
        for name, value in step.items():
            total[name] = value if name in ONCE else total[name] + value
        values = {**total, "t_ns": T0 + second * S}
        lines.append(",".join("" if name in absent else str(int(values[name])) for name in NAMES))
    (run / "raw" / file).write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    for name, reasons in (said or {}).items():
        (run / "raw" / name).write_text(json.dumps(reasons))
    known = {"phases": {"hold": [T0, T0 + SECONDS * S]}, "kernel": {"kind": kind}, "host": {"cores": 4}}
    manifest.write(run, manifest.read(run) | known)  # type: ignore[operator]
    reduce_run(run)
    return dict(manifest.read(run))


def codes(found: dict[str, Any]) -> list[str]:
    assert found["suspect"] == any(w["suspect"] for w in found["warnings"])
    return [w["code"].removeprefix("trust-") for w in found["warnings"] if w["suspect"]]


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    names = tuple(f"{name} (" for name in disturbance.RULES)  # without the conservation checks
    return {c["name"]: c["verdict"] for c in found["checks"] if c["name"].startswith(names)}


def test_a_quiet_run_has_nothing_against_it(tmp_path: Path) -> None:
    found = judged(tmp_path / "run")
    assert codes(found) == [] and set(verdicts(found).values()) == {"holds"}
    assert len(verdicts(found)) == len(disturbance.RULES)


@pytest.mark.parametrize(
    ("code", "below", "beyond"),
    [
        ("stalls", {"worst_ns": 150 * MS, "stalled_ns": 150 * MS}, {"worst_ns": 700 * MS}),
        # There are many short stalls, together more than 1 % of 20 s.
        ("stalls", {}, {"worst_ns": 120 * MS, "stalled_ns": 220 * MS}),
        ("stopped", {}, {"stopped": 1}),
        ("suspended", {"suspended_ns": 5 * MS}, {"suspended_ns": 3 * S}),
        ("clock-steps", {"set_ns": -20 * MS}, {"set_ns": -S}),
        ("throttling", {"throttled_ns": 300 * MS}, {"throttled": 8, "throttled_ns": 500 * MS}),
        ("run-queue", {"waited_ns": 200 * MS}, {"waited_ns": 500 * MS}),
        ("heat", {"heat_ns": 300 * MS}, {"heat_ns": 500 * MS}),
        ("core-steal", {"steal_ns": 500 * MS}, {"own_steal_ns": 400 * MS}),
    ],
)  # fmt: skip
def test_each_rule_has_a_threshold(
    tmp_path: Path, code: str, below: dict[str, float], beyond: dict[str, float]
) -> None:
    assert codes(judged(tmp_path / "below", **below)) == []
    found = judged(tmp_path / "beyond", **beyond)
    assert codes(found) == [code] and verdicts(found)[f"{code} (lab)"] == "fails"
    if code == "stopped":
        return
    outer = judged(tmp_path / "outer", file="disturbance.outer.csv", kind="uml", **beyond)
    assert codes(outer) == [code], "the machine outside"


def test_only_the_cores_that_the_lab_may_use_are_looked_at(tmp_path: Path) -> None:
    one = {"cores": 1, "cores_ns": S, "idle_ns": 0.02 * S}
    found = judged(tmp_path / "one", every=one)
    assert codes(found) == ["core-busy"] and "the 1 of 4 cores" in found["warnings"][-1]["text"]
    assert codes(judged(tmp_path / "all", every={**one, "cores": 4})) == [], "capture.trust judges all cores"


def test_what_cannot_be_read_is_said_and_the_rest_is_judged(tmp_path: Path) -> None:
    quota = ("periods", "throttled", "throttled_ns")
    found = judged(tmp_path / "run", absent=quota, worst_ns=700 * MS)
    assert codes(found) == ["stalls"] and verdicts(found)["throttling (lab)"] == "cannot tell"
    (text,) = [w["text"] for w in found["warnings"] if w["code"] == "trust-unmade"]
    assert "throttling (lab): raw/disturbance.csv has no throttled_ns" in text

    run = tmp_path / "run"
    (run / "raw" / "disturbance.json").write_text(
        json.dumps({"throttling": "/cg/cpu.stat: Permission denied"})
    )
    (run / "seal.json").unlink()
    reduce_run(run)
    assert "/cg/cpu.stat: Permission denied" in str(manifest.read(run)["warnings"])


def test_without_schedstat_the_pressure_of_the_machine_is_judged(tmp_path: Path) -> None:
    none = ("ran_ns", "waited_ns", "slices")
    assert codes(judged(tmp_path / "a", absent=none)) == []
    assert codes(judged(tmp_path / "b", absent=none, every={"pressure_ns": 0.4 * S})) == ["run-queue"]
    found = judged(tmp_path / "c", absent=(*none, "pressure_ns"))
    assert verdicts(found)["run-queue (lab)"] == "cannot tell"


UNREADABLE = {
    ("throttling",): (("periods", "throttled", "throttled_ns"), "throttling", "cpu.stat: Permission denied"),
    ("run-queue",): (("ran_ns", "waited_ns", "slices", "pressure_ns"), "run queue", "there is no schedstat"),
    ("core-steal", "core-busy"): (
        ("cores", "cores_ns", "idle_ns", "steal_ns", "own_core_ns", "own_steal_ns"), "cores", "no /proc/stat",
    ),
    ("stopped",): (("stopped",), "stopped", "no look"),
}  # fmt: skip


@pytest.mark.parametrize("names", UNREADABLE)
@pytest.mark.parametrize(
    ("file", "kind", "where"), [("disturbance.csv", "host", "lab"), ("disturbance.outer.csv", "uml", "outer")]
)
def test_a_check_that_cannot_be_made_says_so_in_manifest_and_page(
    tmp_path: Path, names: tuple[str, ...], file: str, kind: str, where: str
) -> None:
    """Shows that a check that cannot be made has the verdict "cannot tell" in manifest and page, that the
    other checks are made, and that the run is not suspect for this reason.
    """
    if "stopped" in names and where == "outer":
        pytest.skip("nobody looks at processes outside of a lab's kernel")
    absent, counter, reason = UNREADABLE[names]
    run = tmp_path / "run"
    said = {Path(file).with_suffix(".json").name: {counter: reason}} if counter != "stopped" else {}
    found = judged(run, file=file, kind=kind, absent=absent, said=said)
    about = {name: verdict for name, verdict in verdicts(found).items() if name.endswith(f"({where})")}
    untold = {f"{name} ({where})" for name in names}
    assert {name for name, verdict in about.items() if verdict == "cannot tell"} == untold
    assert {about[name] for name in about.keys() - untold} == {"holds"} and codes(found) == []
    (text,) = [w["text"] for w in found["warnings"] if w["code"] == "trust-unmade"]
    assert all(f"{name}: " in text for name in untold) and reason in text
    assert html.escape(reason) in report(run).read_text()
    assert codes(judged(tmp_path / "bad", file=file, kind=kind, absent=absent, worst_ns=700 * MS)) == [
        "stalls"
    ]


def test_a_machine_whose_cores_stand_still_tells_nothing_of_them(tmp_path: Path) -> None:
    still = dict.fromkeys(("cores_ns", "idle_ns", "steal_ns", "own_core_ns", "own_steal_ns"), 0)
    found = judged(tmp_path / "run", every={**still, "cores": 1})
    about = verdicts(found)
    assert (about["core-steal (lab)"], about["core-busy (lab)"]) == ("cannot tell", "cannot tell")
    assert codes(found) == []


def test_heat_is_counted_by_few_machines(tmp_path: Path) -> None:
    found = judged(tmp_path / "run", absent=("heat_ns",))
    assert verdicts(found)["heat (lab)"] == "cannot tell"
    assert "trust-unmade" not in [w["code"] for w in found["warnings"]]


def test_in_a_guest_only_beats_are_of_the_lab(tmp_path: Path) -> None:
    found = judged(tmp_path / "run", kind="uml", waited_ns=5 * S)
    assert codes(found) == [] and verdicts(found)["stalls (lab)"] == "holds"
    assert verdicts(found)["throttling (outer)"] == "cannot tell", "no heartbeats outside"


def test_a_generator_takes_what_there_is(tmp_path: Path) -> None:
    trials = plan([node("p", kind="frames")])
    found = judged(tmp_path / "run", of=trials, worst_ns=900 * MS, waited_ns=9 * S, throttled_ns=9 * S)
    assert codes(found) == ["throttling"]
