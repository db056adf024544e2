"""Tests retired keys: accepted with a note for one more version, refused beside the new key, rewritten by
`vnet migrate`.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.inventory import Inventory
from orchestrator.topology.loading import parse
from orchestrator.topology.migrate import MigrateError, migrated
from orchestrator.topology.retired import TABLE

OLD = """\
name: old
segments: {lan: {subnet: 10.9.0.0/24}}
hosts: {here: {machine: local, clock: 2.4 GHz}}
nodes:
  a:
    segment: lan
    sees: [/srv/in]   # models
    software:
      program:
        command: sleep 1
        expect: exited
        flows:
          data: {to: b, size: 100 B, rate: 10 /s, promise: {lossless: true}}
    # results
    writes:
      - /srv/out
  b: {segment: lan, software: {take: {command: sleep 1, receives: true}, gauge: {udp: {listen: 9000}}}}
groups:
  c:
    count: 2
    segment: lan
    software: {send: {udp: {to: b, obeys: {listen: 70, flow: x}, push: {size: 99 B, rate: 1 /s}}}}
"""
NEW = """\
name: old
segments: {lan: {subnet: 10.9.0.0/24}}
hosts: {here: {machine: local, cpu_clock: 2.4 GHz}}
nodes:
  a:
    segment: lan
    mounts:
      read: [/srv/in]   # models
      # results
      write:
        - /srv/out
    software:
      program:
        command: sleep 1
        at_end: exited
        flows:
          data: {to: b, size: 100 B, rate: 10 /s, guarantee: {lossless: true}}
  b: {segment: lan, software: {take: {command: sleep 1, receives: true}, gauge: {udp: {listen: 9000}}}}
groups:
  c:
    count: 2
    segment: lan
    software: {send: {udp: {to: b, rate_limits_from: {listen: 70, flow: x}, push: {size: 99 B, rate: 1 /s}}}}
"""


PROGRAM = "nodes.a.software.program."


def test_old_keys_give_the_same_topology_with_a_note_for_each() -> None:
    old, new = parse("old.yaml", OLD.encode()), parse("old.yaml", NEW.encode())
    assert old.model == new.model and new.notes == ()
    assert sorted(note.place for note in old.notes) == [
        "old.yaml:11: nodes.a.software.program.expect",
        "old.yaml:13: nodes.a.software.program.flows.data.promise",
        "old.yaml:15: nodes.a.writes",
        "old.yaml:22: groups.c.software.send.udp.obeys",
        "old.yaml:3: hosts.here.clock",
        "old.yaml:7: nodes.a.sees",
    ]
    (one,) = (note for note in old.notes if note.place.endswith("sees"))
    assert one.text == "`sees` is the retired spelling of `mounts.read`, read for one more version"
    assert one.remedy == "write `mounts: {read: ...}`, or run `vnet migrate old.yaml`"
    assert {note.text.split("`")[1] for note in old.notes} == {key.old for key in TABLE}, (
        "all of them are here"
    )


def test_the_plan_carries_the_notes() -> None:
    text = OLD.replace("hosts: {here: {machine: local, clock: 2.4 GHz}}\n", "")
    noted = [note for note in make_plan(parse("old.yaml", text.encode())).notes if "retired" in note.text]
    assert len(noted) == 5


@pytest.mark.parametrize(
    ("old", "both", "line", "place", "new"),
    [
        ("    sees: [/srv/in]   # models\n", "    mounts: {read: [/x]}\n", 8, "nodes.a.sees", "mounts.read"),
        ("        expect: exited\n", "        at_end: running\n", 12, PROGRAM + "expect", "at_end"),
    ],
)  # fmt: skip
def test_both_spellings_are_refused(old: str, both: str, line: int, place: str, new: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse("f.yaml", OLD.replace(old, both + old).encode())
    word = place.rpartition(".")[2]
    rule = f"is the retired spelling of `{new}`, which the file has too; remove `{word}`"
    assert str(caught.value) == f"f.yaml:{line}: {place}: {rule}"


def test_a_mistake_in_an_old_keys_value_is_shown_in_its_line() -> None:
    with pytest.raises(TopologyError) as caught:
        parse("f.yaml", OLD.replace("- /srv/out", "- srv/out").encode())
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (16, "nodes.a.mounts.write[0]")


def test_a_retired_variable_of_the_inventory(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text("lab_hosts:\n  hosts:\n    rack1: {ansible_host: 10.0.0.1, vnet_clock: 2.4 GHz}\n")
    inventory = Inventory(file)
    assert inventory.hosts()["rack1"]["cpu_clock"] == "2.4 GHz"
    (note,) = inventory.notes
    assert note.place == f"{file}:3: vnet_clock" and note.remedy == "write `vnet_cpu_clock:`"


def test_migrate_keeps_comments_and_layout() -> None:
    assert migrated("old.yaml", OLD.encode()).decode() == NEW
    assert migrated("new.yaml", NEW.encode()).decode() == NEW, "nothing to do"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_stay(newline: str, mark: str) -> None:
    old, new = (mark + text.replace("\n", newline) for text in (OLD, NEW))
    assert migrated("old.yaml", old.encode()).decode() == new


KEYS = {
    "sees": "[/srv/in]",
    "writes": "[/srv/out, /srv/log]",
    "software": '{p: {command: sleep 1, "expect":"exited"}}',
}
BLOCKS = {
    "sees": "\n      - /srv/in  # {}\n\n      # {}\n      - /srv/more",
    "writes": " &w\n      - /srv/out",
    "software": "\n      p:\n        # {}\n        command: |\n          sleep 1\n        expect: exited",
}
HEAD = "name: drawn\nsegments: {lan: {subnet: 10.9.0.0/24}}\nnodes:\n"


@st.composite
def nodes(draw: st.DrawFn) -> str:
    """Draws a node with some retired keys in some order, in a block or in braces, with comments."""
    names = draw(st.permutations(["segment", *draw(st.sets(st.sampled_from([*KEYS]), min_size=1))]))
    values = {"segment": "lan", **KEYS}
    if draw(st.booleans()):
        return "{" + ", ".join(f"{name}: {values[name]}" for name in names) + "}  # braces"
    text, count = "", itertools.count()
    for name in names:
        if draw(st.booleans()):
            text += f"\n    # above {next(count)}"
        block = name in BLOCKS and draw(st.booleans())
        text += f"\n    {name}:" + (BLOCKS[name].replace("{}", "inside") if block else f" {values[name]}")
        if not block and draw(st.booleans()):
            text += f"  # behind {next(count)}"
        text += draw(st.sampled_from(["", "\n"]))
    return text


@settings(max_examples=30, deadline=None)
@given(st.lists(nodes(), min_size=1, max_size=3))
def test_any_layout_loads_the_same_after_it_without_a_note(drawn: list[str]) -> None:
    text = HEAD + "".join(f"  n{i}: {node}\n" for i, node in enumerate(drawn))
    found = migrated("drawn.yaml", text.encode())
    before, after = parse("drawn.yaml", text.encode()), parse("drawn.yaml", found)
    assert after.model == before.model and after.notes == ()
    comments = [sorted(line.partition("#")[2] for line in t.splitlines()) for t in (text, found.decode())]
    assert [*filter(None, comments[0])] == [*filter(None, comments[1])]


def test_aliases_are_followed_or_refused_never_broken() -> None:
    text = (
        HEAD + "  a: &a {segment: lan, sees: &in [/srv/in]}\n  b: *a\n  c:\n    segment: lan\n    sees: *in\n"
    )
    found = migrated("f.yaml", text.encode()).decode()
    assert found.endswith(
        "mounts: {read: &in [/srv/in]}}\n  b: *a\n  c:\n    segment: lan\n    mounts: {read: *in}\n"
    )
    shared = HEAD + "  a:\n    segment: lan\n    mounts: &m\n      read: [/srv/in]\n"
    shared += "  b:\n    segment: lan\n    mounts: *m\n    writes: [/srv/out]\n"
    with pytest.raises(MigrateError, match=r"f\.yaml:10: `mounts` is written in a form that takes no key"):
        migrated("f.yaml", shared.encode())
    lost = HEAD + "  a:\n    segment: lan\n    mounts: {read: [/srv/in]}\n    writes: [/srv/out]  # kept\n"
    with pytest.raises(MigrateError, match="it would lose something"):
        migrated("f.yaml", lost.encode())
