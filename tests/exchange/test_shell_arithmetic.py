"""Tests a shell's arithmetic: the values are those of bash, which the last test runs for comparison."""

from __future__ import annotations

import random
import subprocess

import pytest

from orchestrator.exchange.shell.arithmetic import arithmetic
from orchestrator.exchange.shell.parsing import ShellError
from orchestrator.exchange.shell.values import UNKNOWN


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7/2", "-3"), ("7 / -2", "-3"), ("-7 % 2", "-1"), ("7 % -2", "1"), ("010 + 1", "9"),
        ("0 && 1 / 0", "0"), ("1 || 1 % 0", "1"), ("1 ? 2 : 3 / 0", "2"),
        ("0x1f", "31"), ("2#101", "5"), ("1 & 3 == 1", "0"), ("!0 == 1", "1"), ("!x + 1", "1"),
        ("1 < 2 < 3", "1"), ("1 << 4", "16"), ("x ? 7 : 8", "7"), ("-x", "-10"), ("o", "8"),
        ("none + 2", "2"),
        ("2 > 1 && 0 || 1", "1"), ("~5", "-6"), ("2 * (3 + 4)", "14"), ("$x - ${x}", "0"), ("", "0"),
        ("08", UNKNOWN), ("1_000", UNKNOWN), ("2 ** 3", UNKNOWN), ("(1", UNKNOWN), ("1 +", UNKNOWN),
        ("9223372036854775807 + 1", UNKNOWN), ("word + 1", UNKNOWN), ("1 - $?", UNKNOWN),
        ("x = 3, 4", "4"), ("x = (3, 4)", UNKNOWN),
        ("(" * 99 + "1" + ")" * 99, UNKNOWN), ("1 << 64", UNKNOWN),
    ],
)  # fmt: skip
def test_an_expression(text: str, value: str) -> None:
    assert arithmetic(text, {"x": "10", "o": "010", "word": "abc"}, 1) == value


def test_assignments_change_their_variable() -> None:
    variables = {"i": "3"}
    assert arithmetic("i++", variables, 1) == "3" and variables == {"i": "4"}
    assert arithmetic("i -= 9", variables, 1) == "-5" and arithmetic("i /= 2", variables, 1) == "-2"
    with pytest.raises(ShellError, match="divides by zero"):
        arithmetic("1 / 0", variables, 4)


def test_bash_computes_the_same() -> None:
    chance, made = random.Random(7), []
    signs = ["+", "-", "*", "/", "%", "<", "<=", "==", "!=", "&", "|", "^", "&&", "||", "<<", ">>"]
    while len(made) < 300:
        parts = [f"{chance.choice(('', '-', '!', '~'))}{chance.randint(1, 9)}" for _ in range(4)]
        text = parts[0] + "".join(f" {chance.choice(signs)} {part}" for part in parts[1:])
        try:
            value = arithmetic(text, {}, 1)
        except ShellError:
            continue
        if value != UNKNOWN:
            made.append((text, value))
    script = "\n".join(f"echo $(( {text} ))" for text, _ in made)
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert [value for _, value in made] == said
