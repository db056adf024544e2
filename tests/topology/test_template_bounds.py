"""Tests that templates which need too much memory, time or text are refused without using up the machine's
memory.
"""

from __future__ import annotations

import pytest

from orchestrator.language import templates
from orchestrator.language.template_rules import MEMORY, TemplateFaultError
from orchestrator.language.templates import fault, render

_DOUBLING = (
    "{{% set ns = namespace(s={first}) %}}{{% for i in range(60) %}}"
    "{{% set ns.s = ns.s {operator} ns.s %}}{{% endfor %}}{{{{ ns.s|length }}}}"
)
LARGE = {
    "center": "{{ 'x'|center(900000000)|length }}",
    "ljust": "{{ 'x'.ljust(900000000)|length }}",
    "zfill": "{{ 'x'.zfill(900000000)|length }}",
    "expandtabs": "{{ '\t'.expandtabs(900000000)|length }}",
    "format": "{{ '{:>999999999}'.format(1)|length }}",
    "percent": "{{ '%999999999d' % 1 }}",
    "percent star": "{{ '%*d' % (900000000, 1) }}",
    "join": _DOUBLING.format(first="'x'", operator="~"),
    "lists": _DOUBLING.format(first="[1]", operator="+"),
    "batch": "{{ range(3)|batch(999999999,'x')|list|length }}",
}
ENDLESS = {
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}x",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(40) }}",
}


@pytest.mark.parametrize("template", LARGE.values(), ids=list(LARGE))
def test_memory(template: str) -> None:
    with pytest.raises(TemplateFaultError, match=f"{MEMORY >> 20} MiB"):
        render(template, {})


@pytest.mark.parametrize("template", ENDLESS.values(), ids=list(ENDLESS))
def test_cpu_time(template: str) -> None:
    with pytest.raises(TemplateFaultError, match="3 s of CPU time"):
        render(template, {})
    assert render("{{ index + 1 }}", {"index": 1}) == "2"  # another process renders it


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in [1] %}" * 25 + "{% endfor %}" * 25,
        "{% if 1 %}" * 200 + "{% endif %}" * 200,
        "{% set d = {'a': 1} %}{% for k in d %}{% set _ = d.update({k ~ 'x': 1}) %}{% endfor %}",
        "{{ " + "9" * 5000 + " }}",
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "{{ '\\ud800' }}",
        "{{ 'a\\x00b' }}",
        "{{ range(9)|random }}",
        "{{ lipsum(n=1) }}",
    ],
    ids=["loops", "ifs", "dictionary", "number", "parentheses", "half a pair", "zero", "random", "lipsum"],
)
def test_what_fails_in_the_compiler_or_is_no_text_is_a_fault(
    template: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Shows that the error is one sentence, and that the process prints no traceback."""
    with pytest.raises(TemplateFaultError):
        if reason := fault(template):
            raise TemplateFaultError(reason)
        render(template, {})
    assert not capfd.readouterr().err


def test_many_slow_templates_take_no_more_time_than_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a template that never ends, in 10,000 nodes, does not take its time limit of 3 s for each of
    them.
    """
    monkeypatch.setattr(templates, "ALL_CPU_S", 1)
    monkeypatch.setattr(templates, "_renderer", templates._Renderer())
    with pytest.raises(TemplateFaultError, match="3 s of CPU time"):
        render(ENDLESS["loops"], {})
    for _ in range(1000):
        with pytest.raises(TemplateFaultError, match="other templates took more than 1 s"):
            render(ENDLESS["loops"], {})
    monkeypatch.setattr(templates, "_renderer", templates._Renderer())
    assert all(render("{{ index }}", {"index": n}) == str(n) for n in range(2000)), "quick ones are free"


def test_values_are_those_of_the_request() -> None:
    addresses = {"a": "10.0.0.1"}
    assert render("{{ node }} {{ addresses.a }}", {"node": "a", "addresses": addresses}) == "a 10.0.0.1"
    assert render("{{ node }} {{ addresses.a }}", {"node": "b", "addresses": addresses}) == "b 10.0.0.1"
    assert render("{{ addresses.a }}", {"addresses": {"a": "10.0.0.2"}}) == "10.0.0.2"


def test_a_value_of_an_earlier_request_is_unknown_to_the_next() -> None:
    assert render("{{ node }}", {"node": "a"}) == "a"
    with pytest.raises(TemplateFaultError, match="'node' is undefined"):
        render("{{ node }}", {})


def test_a_text_that_cannot_be_parsed() -> None:
    assert "unexpected" in str(fault("{{ a"))
    assert fault("{{ node }}") is None
