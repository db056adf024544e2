"""A malformed topology is refused at its line, by the rule it breaks, with a remedy; never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from malformed import BASE, CASES, Case

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


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"client": "3"}, '-p client: no parameter has this name; did you mean "clients"?'),
        ({"clients": "three"}, '-p clients: "three": is not a whole number'),
        ({"clients": "10"}, "must be at most 9"),
        ({"hold": "60"}, '-p hold: "60": has no unit; write "60 ms"'),
    ],
)
def test_overrides_are_refused(overrides: dict[str, str], expected: str) -> None:
    assert any(expected in problem for problem in _problems(BASE, overrides))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.yaml", Path("/dev/null")):
        with pytest.raises(TopologyError) as caught:
            load(path)
        assert "; " in str(caught.value)
