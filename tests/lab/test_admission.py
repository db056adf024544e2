"""Tests clients that their broker rejects on each attempt, and clients whose rejection the file expects."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.plan import Plan
from orchestrator.lab import admission
from orchestrator.lab.drivers.fake_traffic import Traffic
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Events
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

FILE = """\
name: admission
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server: {segment: lan, software: {b: {broker: mosquitto, users: {good: x}}}}
  good: {segment: lan, software: {m: {mqtt: {broker: server, LOGIN, subscribe: [{topic: a}]}}}}
  bad: {segment: lan, software: {m: {mqtt: {broker: server, user: bad, admission: refused, subscribe: [{topic: a}]}}}}
run: {hold: 10 s}
"""  # noqa: E501
REFUSED = "C,good,connecting,1,\nC,good,failed,2,refused: NotAuthorized\n"


def plan(run: str = "hold: 10 s", more: str = "") -> Plan:
    text = FILE.replace("LOGIN", f"user: good, password: x{more}").replace("hold: 10 s", run)
    return make_plan(parse("a.yaml", text.encode()))


def judge(tmp_path: Path, records: str, made: Plan, connected: bool = False) -> Events:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "messages.csv").write_text(records)
    lab: Any = SimpleNamespace(plan=made, run_dir=tmp_path, events=Events())
    admission.insist(lab, connected)
    return lab.events  # type: ignore[no-any-return]


BAD = "C,bad,failed,2,refused: NotAuthorized\n"


def test_a_client_that_is_refused_each_time_fails_the_run_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"^good: no attempt to connect succeeded: refused: NotAuth"):
        judge(tmp_path, REFUSED + BAD, plan())


def test_one_that_was_admitted_once_or_never_reached_the_broker_does_not(tmp_path: Path) -> None:
    later = "C,good,connected,3,new session\nC,good,failed,9,TLS: received fatal alert: CertificateExpired\n"
    assert judge(tmp_path, REFUSED + later + BAD, plan()).warnings == []
    other = tmp_path / "other.csv"
    other.write_text("C,good,failed,2,Connection refused (os error 111)\n")
    assert admission.admissions(other) == {}


def test_a_file_that_continues_gets_a_warning_that_makes_the_run_suspect(tmp_path: Path) -> None:
    going_on = plan("hold: 10 s, on_node_failure: continue")
    (warning,) = judge(tmp_path, REFUSED + BAD, going_on).warnings
    assert warning.suspect and "refused: NotAuthorized" in warning.text


def test_a_refusal_that_the_file_expects_must_happen(tmp_path: Path) -> None:
    assert admission.unwelcome(plan()) == {"bad"}
    with pytest.raises(LabError, match=r"^bad: admitted, though the file has .*; leave `admission: ref"):
        judge(tmp_path, "C,good,connected,1,\nC,bad,connected,1,\n", plan(), connected=True)


def test_a_client_without_an_answer_was_neither_admitted_nor_refused(tmp_path: Path) -> None:
    late = "C,good,connected,1,\nC,bad,failed,1,no CONNACK in time\n"
    with pytest.raises(LabError, match=r"^bad: not refused: no attempt to connect had an answer"):
        judge(tmp_path, late, plan(), connected=True)


def test_all_faults_are_told_at_once_each_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(LabError) as raised:
        judge(tmp_path, REFUSED + "C,bad,connected,1,\n", plan())
    wanted = ("good: no", admission.EXPECT, "bad: admitted", admission.ADMIT)
    assert all(text in str(raised.value) for text in wanted)


def test_a_last_line_that_was_cut_short_is_no_fault(tmp_path: Path) -> None:
    assert judge(tmp_path, f"C,good,connected,1,\n{BAD}C,goo", plan()).warnings == []


def test_records_of_a_users_program_are_no_login(tmp_path: Path) -> None:
    records = f"C,good,connected,1,\n{BAD}C,own-program,failed,2,refused: no token\n"
    assert judge(tmp_path, records, plan()).warnings == []


def test_the_fake_driver_refuses_whom_the_file_expects_to_be_refused(tmp_path: Path) -> None:
    made = plan(more=", publish: {topic: a, rate: 1 /s}")
    traffic = Traffic(made, t0_ns=0, end_ns=5 * 10**9, delay_ns=0)
    records = "\n".join(traffic.records(traffic.messages())) + "\n"
    assert "C,good,connected," in records and "S,0,0," in records
    assert judge(tmp_path, records, made).warnings == []


def test_several_clients_of_one_reason_are_one_sentence() -> None:
    found = {"a": "TLS: x", "b": "TLS: x", "c": "refused: y", "d": ""}
    assert [text for text, _ in admission.faults(found, frozenset())] == [
        "a and 1 more client: no attempt to connect succeeded: TLS: x",
        "c: no attempt to connect succeeded: refused: y",
    ]


def test_nobody_expects_messages_at_a_client_that_is_to_be_refused() -> None:
    made = plan(more=", publish: {topic: a, rate: 1 /s}")
    (flow,) = made.flows
    receivers = {name for one in flow.deliveries for name in made.receivers[one.receivers]}
    assert receivers == {"good"}
