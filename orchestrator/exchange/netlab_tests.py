"""Reads validation tests of netlab: a ping between nodes becomes a probe, any other test a note."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from .netlab_forms import mapping, nested, words
from .network import Network, Probe, name_of

# Options of ping that do not affect whether an answer arrives: first those with a value, then those without
# one.
_WITH_WORD, _ALONE = ("-c", "-W", "-i", "-w"), ("-A", "-n", "-4", "-q")
_ANSWERS = re.compile(r"""['"] ?64 bytes['"] in stdout""")
_NO_ANSWER = re.compile(r"""['"] ?64 bytes['"] not in stdout""")
# Keys that affect neither the test nor whether its failure counts.
_ABOUT = {"nodes", "devices", "description", "fail", "pass", "wait", "wait_msg", "wait_str", "stop_on_error"}


def probes(network: Network, validate: Any, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Adds the pings of `validate` to the network's probes. Yields (name of the test, note) for each other
    test, and for a ping that is changed. A ping after a test that changes the network (`config`, a command)
    is a note, as is one that contradicts an earlier one. names: name in the file -> node name.
    """
    changed = ""
    if validate and not isinstance(validate, dict):
        yield "", "validate: is no mapping of tests: left out"
    for name, given in mapping(validate).items():
        test = nested(given)
        found = _ping(test)
        targets = [found[0]] if found else []
        ends = [names.get(one, "") for one in (*words(test.get("nodes")), *targets)]
        if found is None or changed or not all(end in network.machines for end in ends) or len(ends) < 2:
            after = f", after {changed}, which changes the network" if changed and found else ""
            yield name, f"{_by_hand(str(name), test)}{after}"
            if found is None and {"config", "exec"} & test.keys():
                changed = changed or f"validate.{name}"
            continue
        *sources, target = ends
        if network.machines[target].forward:
            yield name, f"validate.{name}: netlab pings the loopback of {found[0]}: its first interface here"
        for source in sources:
            known = {(one.source, one.target): one.fails for one in network.probes}
            if known.get((source, target), found[1]) != found[1]:
                yield name, f"validate.{name}: to be checked by hand: an earlier test expects the contrary"
            elif (source, target) not in known:
                taken = {one.name for one in network.probes}
                network.probes.append(Probe(name_of(f"check-{name}", taken), source, target, found[1]))


def _ping(test: dict[str, Any]) -> tuple[str, bool] | None:
    """Returns (target, whether no answer is expected) of a test that is one ping of a node by its name; None
    for any other.
    """
    match sorted(test.keys() - _ABOUT):
        case ["plugin"]:
            return _of_plugin(str(test["plugin"]))
        case ["exec", "valid"]:
            target = _of_command(_single(test["exec"]))
            valid = _single(test["valid"]).strip()
            if target and (_ANSWERS.fullmatch(valid) or _NO_ANSWER.fullmatch(valid)):
                return target, bool(_NO_ANSWER.fullmatch(valid))
    return None


def _single(value: Any) -> str:
    """Returns a command for all devices, or for the only one; "" for several."""
    if isinstance(value, dict):
        return str(next(iter(value.values()))) if len(value) == 1 else ""
    return str(value)


def _of_plugin(text: str) -> tuple[str, bool] | None:
    """Returns (target, whether it is to fail) of `ping('NAME')`, with counts and `expect` as keywords."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match call:
        case ast.Call(func=ast.Name(id="ping"), args=[ast.Constant(value=str(target))], keywords=keywords):
            given = {one.arg: one.value.value for one in keywords if isinstance(one.value, ast.Constant)}
            known = given.keys() <= {"expect", "count", "af"} and len(given) == len(keywords)
            if (
                known
                and given.get("af", "ipv4") == "ipv4"
                and given.get("expect", "success") in ("success", "fail")
            ):
                return target, given.get("expect") == "fail"
    return None


def _of_command(text: str) -> str | None:
    """Returns the target of the command `ping`; None if it is another command or has an unknown option."""
    try:
        given = iter(shlex.split(text))
    except ValueError:
        return None
    if next(given, "") != "ping":
        return None
    targets = []
    for word in given:
        if word in _WITH_WORD:
            next(given, "")
        elif word.startswith("-") and word not in _ALONE:
            return None
        elif not word.startswith("-"):
            targets.append(word)
    return targets[0] if len(targets) == 1 else None


def _by_hand(name: str, test: dict[str, Any]) -> str:
    """Returns a validation test as a line for the report: what to check by hand, and on which nodes."""
    where = ", ".join(words(test.get("nodes"))) or "no node"
    for key in ("exec", "show", "plugin", "config", "wait"):
        if key in test:
            value = test[key]
            text = str(next(iter(value.values()), "") if isinstance(value, dict) else value)
            return f"validate.{name}: to be checked by hand: {key} `{' '.join(text.split())[:80]}` on {where}"
    return f"validate.{name}: to be checked by hand on {where}"
