"""Tests the filter of the sandbox for imported scripts, followed step by step as the kernel does."""

from __future__ import annotations

import struct

import pytest

from orchestrator.exchange.sandboxed import (
    ALLOW,
    CLONE_THREAD,
    ENOSYS,
    EPERM,
    FAMILIES,
    MACHINES,
    REFUSED,
    SOCKET,
    STEP,
    X32,
    _filter,
)


def answer(program: bytes, call: int, audit: int, first: int = 0) -> int:
    """Returns the filter's answer to a system call with this number, architecture and first argument."""
    data, value, at = {0: call, 4: audit, 16: first}, 0, 0
    while True:
        code, yes, no, number = struct.unpack_from("HBBI", program, STEP * at)
        at += 1
        match code:
            case 0x20:
                value = data[number]
            case 0x06:
                return int(number)
            case 0x15:
                at += yes if value == number else no
            case 0x35:
                at += yes if value >= number else no
            case 0x45:
                at += yes if value & number else no


@pytest.mark.parametrize("machine", MACHINES)
def test_no_call_makes_a_process(machine: str) -> None:
    program, (audit, clone, forks, clone3) = _filter(machine), MACHINES[machine]
    assert answer(program, 0, audit) == ALLOW
    assert answer(program, clone, audit, CLONE_THREAD) == ALLOW
    assert answer(program, clone, audit) == EPERM and answer(program, clone3, audit) == ENOSYS
    assert {answer(program, number, audit) for number in forks} <= {EPERM}
    assert answer(program, 0, audit ^ 1) == EPERM
    for number in (*forks, clone, clone3):  # calls of x32, by which the same kernel makes processes
        assert answer(program, X32 + number, audit) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_no_call_gains_rights_or_leaves_the_namespaces(machine: str) -> None:
    program, (audit, *_) = _filter(machine), MACHINES[machine]
    assert {answer(program, number, audit) for number in REFUSED[machine]} == {EPERM}
    given = {family for family in range(46) if answer(program, SOCKET[machine], audit, family) == ALLOW}
    assert given == set(FAMILIES)
    assert answer(program, SOCKET[machine], audit, 40) == EPERM, "vsock"


def test_an_unknown_machine_has_no_sandbox() -> None:
    with pytest.raises(OSError, match="architecture riscv64: only x86_64 and aarch64 have a filter"):
        _filter("riscv64")
