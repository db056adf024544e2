"""Tests that conditions and roles follow from levels, flows and sessions, and not from the names of the
software.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic import run_of, write_campaign, write_run
from synthetic_shape import Shape

from reports.metrics.ramp import total_clients
from reports.papers import paper_of, unknown
from reports.roles import guarantees, roles, scenario
from reports.rundir import Run, RunDirectoryError, read_run
from reports.series import series
from reports.study import Study, study_of_campaign, study_of_run, study_of_runs


def flow(sender: str, receivers: str, guarantee: str = "UDP") -> dict[str, Any]:
    return {"sender": sender, "deliveries": [{"receivers": receivers, "guarantee": {"name": guarantee}}]}


def node(name: str, role: str, endpoint: str = "", listens: bool = False) -> dict[str, Any]:
    session = {"endpoint": endpoint or name, "listens": listens}
    return {"name": name, "software": [{"role": role, "session": session, "kind": "any"}]}


def planned(**plan: Any) -> Run:
    return run_of(plan=plan)


def test_roles_of_requests_and_of_a_chain() -> None:
    """Shows that a server counts by its software, a node that sends and receives as both, and a node that
    does neither as none.
    """
    run = planned(
        nodes=[
            node("server", "server", "server-udp", listens=True),
            node("ask1", "client", "ask1-a"),
            node("relay", "client"),
            node("sink", "utility"),
            {"name": "idle", "software": [{"role": "client"}]},
            {"name": "bare", "software": []},
        ],
        flows=[flow("ask1-a", "servers"), flow("relay", "end"), flow("ask1-a", "middle")],
        receivers={"servers": ["server-udp"], "end": ["sink"], "middle": ["relay"], "unused": ["idle"]},
    )
    assert roles(run).sets() == {
        "server": ("server",),
        "receiver": ("sink",),
        "sender": ("ask1",),
        "client": ("relay",),
    }
    assert total_clients(run) == 3  # software that only listens does not count as a client in the ramp


def test_a_run_without_a_plan_has_no_roles() -> None:
    assert roles(planned()).sets() == {} and guarantees(planned()) == []


def test_scenarios_are_called_as_their_reference_does() -> None:
    assert scenario(planned(scenario="mqtt_scenario_1")) == "scenario 1"
    assert scenario(planned(scenario="constrained_network")) == "constrained network"
    assert scenario(planned()) == "lab"


def guaranteed(name: str) -> Run:
    return planned(flows=[flow("a", "b", name)])


def test_series_are_named_by_the_levels_that_vary() -> None:
    plain, several = guaranteed("TCP"), planned(flows=[flow("a", "b", "TCP"), flow("a", "b", "UDP")])
    runs = [(plain, {"delay": d, "clients": c, "hold": "20 s"}) for d in ("1 ms", "20 ms") for c in (5, 10)]
    assert series(runs) == [
        "delay 1 ms, clients 5",
        "delay 1 ms, clients 10",
        "delay 20 ms, clients 5",
        "delay 20 ms, clients 10",
    ]
    assert series([(plain, {"delay": "1 ms"})]) == ["TCP"]
    assert series([(several, {})]) == ["all messages"] and series([(planned(), {})]) == ["measured"]


def test_a_factor_that_is_the_promise_is_called_by_it() -> None:
    runs = [(guaranteed(f"QoS {q}"), {"qos": q, "clients": c}) for q in (0, 1) for c in (5, 10)]
    assert series(runs)[:2] == ["QoS 0, clients 5", "QoS 0, clients 10"]
    # both are guarantees of publications
    same = [(guaranteed("QoS 0"), {"qos": 0}), (guaranteed("QoS 0"), {"qos": 1})]
    assert series(same) == ["qos 0", "qos 1"]


def test_topologies_are_told_by_their_scenario_or_else_by_name() -> None:
    runs = [(planned(scenario=f"scenario_{n}"), {"topology": f"file{n}"}) for n in (1, 2)]
    assert series(runs) == ["measured", "measured"]
    runs = [(planned(scenario="scenario_1"), {"topology": name}) for name in ("light", "vm")]
    assert series(runs) == ["topology light", "topology vm"]


def test_campaigns_of_earlier_versions_say_factors(tmp_path: Path) -> None:
    path = write_campaign(tmp_path / "c", [Shape(qos=q, hold_s=20) for q in (0, 1)])
    new = study_of_campaign(path)
    text = (path / "cells.jsonl").read_text()
    assert '"levels"' in text
    (path / "cells.jsonl").write_text(text.replace('"levels"', '"factors"'))
    old = study_of_campaign(path)
    assert [(c.series, c.levels) for c in old.cells] == [(c.series, c.levels) for c in new.cells]
    assert new.cells[1].levels == {"scenario": 1, "qos": 1}


def test_metrics_are_compared_once_a_study(tmp_path: Path) -> None:
    study = study_of_run(write_run(tmp_path / "run", Shape(hold_s=20)))
    assert study.compared is study.compared


def test_runs_side_by_side_are_told_apart_by_their_parameters(tmp_path: Path) -> None:
    shapes = [Shape(hold_s=20), Shape(hold_s=20, rate=10.0), Shape(hold_s=20, seed=2)]
    study = study_of_runs("set", tmp_path, [write_run(tmp_path / str(i), s) for i, s in enumerate(shapes)])
    assert [(c.series, c.repetition) for c in study.cells] == [
        ("rate 20.0/s", 1),
        ("rate 10.0/s", 1),
        ("rate 20.0/s", 2),
    ]


def referring(folder: Path, *names: str | None) -> Study:
    paths = []
    for number, name in enumerate(names):
        path = write_run(folder / str(number), Shape(hold_s=20))
        plan = json.loads((path / "plan.json").read_text())
        (path / "plan.json").write_text(json.dumps(plan | {"reference": name}))
        paths.append(path)
    return study_of_runs("set", folder, paths)


def test_the_paper_is_the_one_that_runs_refer_to(tmp_path: Path) -> None:
    paper = paper_of(referring(tmp_path / "one", "vnet_2014", None))
    assert paper is not None and paper.name == "vnet_2014"
    assert paper_of(referring(tmp_path / "none", None)) is None


def test_a_reference_without_a_room_is_said(tmp_path: Path) -> None:
    study = referring(tmp_path / "other", "nobody_1999")
    assert paper_of(study) is None
    (said,) = unknown(study)
    assert "'nobody_1999'" in said and "vnet_2014" in said


def test_an_old_run_directory_names_the_version_that_reports_it(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", Shape(hold_s=20))
    plan = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps(plan | {"format": 1}))
    with pytest.raises(RunDirectoryError, match=r"format 1, .* reads format 2; .* made it: vnet 0\.1\.0"):
        read_run(path)
