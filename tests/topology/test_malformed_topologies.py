"""Tests that a malformed topology is refused at its line, by the rule it breaks, with a remedy and without a
traceback.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from malformed import BASE, CASES, Case
from malformed.base import WAN

from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError, load
from orchestrator.topology.loading import parse


def _problems(text: str | bytes, overrides: dict[str, str] | None = None) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(TopologyError) as caught:
        parse("file.yaml", content, overrides)
    assert caught.value.problems
    return [str(problem) for problem in caught.value.problems]


def test_the_base_is_right() -> None:
    assert parse("file.yaml", BASE.encode()).name == "small"


def test_there_are_at_least_a_hundred_cases_with_names_of_their_own() -> None:
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_refused_by_its_rule(case: Case) -> None:
    assert BASE.count(case.old) >= 1
    at = BASE.index(case.old)
    text = BASE[:at] + case.new + BASE[at + len(case.old) :]
    line = case.line if case.line is not None else BASE[:at].count("\n") + 1
    found = _problems(text)
    start = f"file.yaml:{line}: " + (f"{case.place}: " if case.place else "")
    assert any(p.startswith(start) and case.rule in p for p in found), "\n".join(
        ["wanted " + start + case.rule, *found]
    )
    assert all("; " in problem for problem in found), "a problem without a remedy"


WHOLE_FILES = {
    "empty": (b"", "is empty"),
    "only spaces": (b"  \n\n ", "is empty"),
    "only a comment": (b"# nothing\n", "holds no document"),
    "a list": (b"- a\n- b\n", "a topology is a mapping"),
    "a word": (b"hello\n", "a topology is a mapping"),
    "latin-1": ("name: café".encode("latin-1"), "is not UTF-8 text"),
    "utf-16": ("name: a".encode("utf-16"), "is not"),
    "nul bytes": (b"name: \x00\x00", "is not YAML"),
    "binary": (bytes(range(256)) * 4, "is not"),
    "brackets": (b"[" * 100_000, "is nested more than 32 deep"),
    "braces": (b"{a: " * 5_000, "is nested more than 32 deep"),
    "deep block": ("\n".join(" " * i + "a:" for i in range(60)).encode(), "is nested more than 32 deep"),
    "too large": (b"#" * (1 << 21), "is larger than"),
    "no nodes": (b"name: a\nsegments: {x: {subnet: 10.0.0.0/24}}\n", "describes no node"),
    "recursive alias": (b"name: &a [*a]\n", "this alias has no anchor before it"),
    "directive": (b"%YAML 9.9\n---\nname: a\n", "is not YAML"),
    "unclosed quote": (b'name: "a\n', "is not YAML"),
    "loop of segments": (
        b"""name: a
segments: {x: {subnet: 10.0.0.0/24}, y: {}, z: {}}
nodes: {n: {segment: x}}
links: {p: {between: [x, y]}, q: {between: [y, z]}, r: {between: [z, x]}}
""",
        "4: links.r.between: closes a loop of segments",
    ),
    "merge key": (b"x: &x {a: 1}\nname: {<<: *x}\n", "is not a key here"),
}


@pytest.mark.parametrize("name", WHOLE_FILES, ids=lambda name: name.replace(" ", "-"))
def test_whole_files(name: str) -> None:
    content, rule = WHOLE_FILES[name]
    found = _problems(content)
    assert any(rule in problem for problem in found), found


def test_an_alias_bomb_stays_small() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert any("aliases expand to more than" in problem for problem in _problems("\n".join(lines)))


_ENDLESS = "{% for i in range(90000) %}{{ addresses }}{% endfor %}"
TEMPLATES = {
    "text times a number": ("command: \"{{ 'x' * 10000000000 }}\"", "* multiplies numbers only"),
    "a huge power": ('command: "{{ 9 ** 9 ** 9 }}"', "an exponent below 64"),
    "calls itself": (
        'command: "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"', "maximum recursion depth exceeded"
    ),
    "without an end": (f"command: ls, files: {{a: '{_ENDLESS}'}}", "it makes more than 1048576 characters"),
    "a long argument": (f"command: [echo, {'y' * 140_000}]", "has at most 131071 bytes"),
    "a long variable": ("command: ls, env: {A: '" + "{{ node }}" * 30_000 + "'}", "has at most 131071 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES, ids=lambda name: name.replace(" ", "-"))
def test_templates_that_cannot_be_carried_out(name: str) -> None:
    text, rule = TEMPLATES[name]
    topology = parse(
        "file.yaml",
        BASE.replace("{broker: mosquitto}", f"{{broker: mosquitto}}\n      x: {{{text}}}").encode(),
    )
    with pytest.raises(TopologyError, match="a template fails on node broker") as caught:
        make_plan(topology)
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (11, "nodes.broker.software")
    assert rule in problem.rule


def test_templates_may_reckon() -> None:
    text = 'x: {command: "echo {{ index * 2.5 }} {{ 2 ** 10 }}"}'
    plan = make_plan(
        parse("f", BASE.replace("{broker: mosquitto}", f"{{broker: mosquitto}}\n      {text}").encode())
    )
    process = plan.nodes[0].software[1].process
    assert process is not None
    assert process.argv[-1] == "echo 2.5 1024"


def test_more_values_than_anybody_writes() -> None:
    assert any("expand to more than" in problem for problem in _problems(f"name: [{'x,' * 60_000}]"))


def test_thousands_of_overlapping_segments_are_told_once_each() -> None:
    """Shows that 2,000 overlapping segments give one error each, not one for each of millions of pairs."""
    segments = "".join(f"  s{i}: {{subnet: 10.0.0.0/8}}\n" for i in range(2000))
    found = _problems(f"name: a\nsegments:\n{segments}nodes: {{n: {{segment: s0}}}}\n")
    assert len(found) == 1999
    assert all("overlaps 10.0.0.0/8 of segment s0" in problem for problem in found)


def test_a_wide_subnet_hides_no_narrow_one() -> None:
    subnets = ("10.1.0.0/24", "10.0.0.0/8", "10.2.0.0/16", "11.0.0.0/8")
    segments = "".join(f"  s{i}: {{subnet: {subnet}}}\n" for i, subnet in enumerate(subnets))
    found = _problems(f"name: a\nsegments:\n{segments}nodes: {{n: {{segment: s0}}}}\n")
    assert [problem.split(";")[0] for problem in found] == [
        'file.yaml:4: segments.s1.subnet: "10.0.0.0/8": '
        "overlaps 10.1.0.0/24 of segment s0, which no link joins to it",
        'file.yaml:5: segments.s2.subnet: "10.2.0.0/16": '
        "overlaps 10.0.0.0/8 of segment s1, which no link joins to it",
    ]


def test_no_mistake_writes_to_the_terminal_or_on_a_second_line() -> None:
    for sign in ("\\n", "\\e[31m", "\\u202e", "\\0"):
        assert all(problem.isprintable() for problem in _problems(BASE.replace("reader:", f'"re{sign}":')))


def test_every_mistake_is_reported_at_once() -> None:
    text = (
        BASE.replace("delay: 10 ms", "delay: 10")
        .replace("qos: 1", "qos: 7")
        .replace("node broker", "node nobody")
    )
    text = text.replace("for: 2 s", "fro: 2 s").replace("name: small", "name: SMALL")
    lines = [int(problem.split(":")[1]) for problem in _problems(text)]
    assert lines == sorted(lines)
    assert {1, 17, 26, 30, 32, 34} <= set(lines)


def test_a_wrong_event_hides_no_other() -> None:
    first, second = "  - {at: 5 s, link-down: wan}\n", "  - {at: hold, kill: nobody}\n"
    found = _problems(BASE.replace("  - {at: hold + 5 s", first + second + "  - {at: hold + 50 s"))
    assert [problem.split(": ")[1] for problem in found] == [
        "timeline[0].at",
        "timeline[1].kill",
        "timeline[2].at",
    ]


def test_the_whole_text_of_an_error() -> None:
    found = _problems(BASE.replace("delay: 10 ms", 'delay: "10"'))
    assert found == [
        'file.yaml:30: links.wan.both.delay: "10": has no unit; write "10 ms" (units: ns, us, ms, s, min, h)'
    ]


def test_two_wrong_values_of_one_link_are_two_mistakes() -> None:
    text = BASE.replace(WAN, "both: {delay: 10, jitter: 1}")
    assert text != BASE
    assert [problem.split(":")[2].strip() for problem in _problems(text)] == [
        "links.wan.both.delay",
        "links.wan.both.jitter",
    ]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"client": "3"}, '-p client: no parameter has this name; did you mean "clients"?'),
        ({"clients": "three"}, '-p clients: "three": is not a whole number'),
        ({"clients": "10"}, "must be at most 9"),
        ({"hold": "60"}, '-p hold: "60": has no unit; write "60 s"'),
    ],
)
def test_overrides_are_refused(overrides: dict[str, str], expected: str) -> None:
    assert any(expected in problem for problem in _problems(BASE, overrides))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.yaml", Path("/dev/null"), Path("/dev/zero")):
        with pytest.raises(TopologyError) as caught:
            load(path)
        assert "; " in str(caught.value)


def test_a_pipe_is_refused_and_does_not_hold_the_reader_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(TopologyError, match=r"not a regular file.*give - and pipe it in"):
        load(tmp_path / "pipe.yaml")
