"""Tests that templates which need too much memory, time or text are refused without using up the machine's
memory.
"""

from __future__ import annotations

import pytest

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
    assert render("{{ index + 1 }}", {"index": 1}) == "2"  # by another process


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
