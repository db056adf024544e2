"""Tests the choice of a kernel from simulated facts; the real machine is not examined."""

from __future__ import annotations

import ast
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from kernel_plans import ALL_KINDS, DELAYED, facts, link, node, plan

from contract.plan import Event, Host, Step
from orchestrator.kernel import registry
from orchestrator.kernel.host import FakeKernel, HostKernel
from orchestrator.kernel.needs import needs_of
from orchestrator.kernel.protocol import KernelError, NoKernel, Wish
from orchestrator.kernel.registry import choose
from orchestrator.kernel.uml.binaries import UmlBinary
from orchestrator.kernel.uml.kernel import UmlKernel
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.language.kernels import KERNELS, LOCAL, Kind

ROOT = Path(__file__).parents[2]

UML = UmlBinary(Path("/usr/bin/linux.uml"), "7.3.4-lab", "built", None)
NO_NETEM = {**ALL_KINDS, "netem": "Specified qdisc kind is unknown."}


def kernels(host=None, binaries=(UML,)):
    return [HostKernel(host or facts()), UmlKernel(binaries)]


def test_auto_takes_the_host_where_it_can():
    choice = choose(plan(links=(link(DELAYED),)), Wish("auto"), kernels())
    assert choice.kernel.name == "host"
    assert choice.why == "host (Linux 6.12.0): it has all that the topology needs"


def test_an_impairment_without_netem_moves_the_lab_into_uml_and_says_so():
    choice = choose(plan(links=(link(DELAYED),)), Wish("auto"), kernels(facts(kinds=NO_NETEM)))
    assert choice.kernel.name == "uml"
    assert "host lacks netem in the kernel (link wan has an impairment; tried: Specified" in choice.why
    assert choice.kernel.why == choice.why


def test_netem_is_not_asked_for_where_nothing_is_impaired():
    assert choose(plan(), Wish("auto"), kernels(facts(kinds=NO_NETEM))).kernel.name == "host"


def test_an_event_that_impairs_needs_netem():
    event = Event("hold", 0, "impair", ("wan",), {"forward": {"loss": 0.1}, "reverse": None}, "lossy")
    assert needs_of(plan(events=(event,))).kinds["netem"] == "event lossy sets an impairment"


def test_an_event_that_clears_an_impairment_needs_none():
    event = Event("hold", 0, "impair", ("wan",), {"forward": None, "reverse": None})
    assert "netem" not in needs_of(plan(events=(event,))).kinds


def test_steps_name_their_kinds():
    step = Step("tc", "vnet-pair", "qdisc add dev x root handle 1: htb default 1\n", "rate of link x")
    assert needs_of(plan(steps=(step,))).kinds["htb"] == "rate of link x"


def test_an_ordinary_user_gets_uml():
    choice = choose(plan(), Wish("auto"), kernels(facts(root=False)))
    assert choice.kernel.name == "uml"
    assert "host lacks root" in choice.why


def test_a_cpu_limit_needs_the_controller():
    limited = plan(nodes=(node(cpu_limit_mhz=200.0),))
    choice = choose(limited, Wish("auto"), kernels(facts(controllers=frozenset({"memory"}))))
    assert choice.kernel.name == "uml"
    assert "cgroup controller cpu (node a has a CPU limit or reservation)" in choice.why


def test_asking_for_a_kernel_that_cannot_is_refused_with_the_remedy():
    with pytest.raises(NoKernel) as refusal:
        choose(plan(links=(link(DELAYED),)), Wish("host"), kernels(facts(kinds=NO_NETEM)))
    assert "pair.yaml: no kernel of this machine can run lab pair" in str(refusal.value)
    assert "host: needs netem in the kernel" in str(refusal.value)
    assert "or use --kernel uml" in str(refusal.value)


def test_nobody_can_names_every_kernel():
    with pytest.raises(NoKernel) as refusal:
        choose(plan(), Wish("auto"), kernels(facts(root=False), binaries=()))
    assert "host: needs root" in str(refusal.value)
    assert "uml: needs a User-Mode Linux kernel" in str(refusal.value)
    assert "apt-get install user-mode-linux" in str(refusal.value)


def test_no_remedy_is_a_kernel_that_is_refused_too():
    machines = plan(nodes=(replace(node(), kind="vm"),))
    with pytest.raises(NoKernel) as refusal:
        choose(machines, Wish("auto"), kernels(facts(root=False)))
    assert "run as root" in str(refusal.value) and "--kernel" not in str(refusal.value)
    with pytest.raises(NoKernel, match="use --kernel host"):
        choose(machines, Wish("uml"), kernels(facts(root=False)))


def test_too_many_nodes_for_the_memory_are_refused():
    huge = plan(nodes=tuple(node(f"n{i}") for i in range(1)) * 10_000_000)
    with pytest.raises(NoKernel, match="memory for the guest"):
        choose(huge, Wish("uml"), kernels())


def test_an_unknown_kernel_is_a_mistake_of_the_command_line():
    with pytest.raises(KernelError, match="--kernel vmware: no such kernel; write auto, host or uml"):
        choose(plan(), Wish("vmware"))


def test_the_fallback_does_not_pretend_to_virtual_time(tmp_path):
    (tmp_path / "linux").write_bytes(b"a kernel without our patch")
    fallback = UmlBinary(tmp_path / "linux", "6.12.117-lab", "built", None, "fallback")
    with pytest.raises(NoKernel) as refusal:
        choose(plan(), Wish("uml"), [VirtualKernel([fallback])])
    assert "6.12.117-lab, built by make kernel from its fallback source: knows no virtual" in str(
        refusal.value
    )


class Own(FakeKernel):
    """A kernel that consists of one class and one line of the registry."""

    name = "own"


def test_a_new_kernel_is_one_class_and_one_line(monkeypatch):
    line = Kind("own", f"{Own.__module__}:Own", listed=False)
    monkeypatch.setattr(registry, "KERNELS", (*KERNELS, line))
    choice = choose(plan(), Wish("own"))
    assert (choice.kernel.name, choice.why) == ("own", f"{Own().described}: asked for")
    assert registry.recorded("own") is Own


def test_each_line_of_the_table_has_its_class():
    for kind in KERNELS:
        module, _, name = kind.place.partition(":")
        assert getattr(import_module(module), name).name == kind.name


@pytest.mark.parametrize(
    ("wish", "names"),
    [(Wish(), ["host", "uml"]), (Wish("fake"), ["fake"]), (Wish("fake", "virtual"), ["fake"]),
     (Wish("uml"), ["uml"]), (Wish("auto", "virtual"), ["uml"]), (Wish("host", "virtual"), [])],
)  # fmt: skip
def test_which_kernels_of_this_machine_are_meant(wish, names):
    assert [kernel.name for kernel in registry.meant(plan(), wish)] == names


def test_several_hosts_have_no_virtual_time():
    hosts = plan(hosts=(Host("h1", "ssh://lab7"),))
    with pytest.raises(KernelError, match="hosts have kernels and clocks of their own, not --time virtual"):
        choose(hosts, Wish(time="virtual"))


def test_a_dead_lab_is_taken_away_by_the_kernel_that_its_record_names():
    assert registry.recorded("uml") is UmlKernel
    assert registry.recorded("host") is HostKernel
    assert registry.recorded("ssh://root@lab7").__name__ == "RemoteKernel"
    assert registry.recorded("") is None


def test_kernels_are_named_in_one_place():
    names, found = {kind.name for kind in LOCAL}, []
    for file in sorted((ROOT / "orchestrator").rglob("*.py")):
        text = file.read_text()
        lists = ast.walk(ast.parse(text)) if sum(f'"{name}"' in text for name in names) > 1 else ()
        for one_list in lists:
            if isinstance(one_list, ast.Tuple | ast.List | ast.Set):
                words = {one.value for one in one_list.elts if isinstance(one, ast.Constant)}
                found += [f"{file.relative_to(ROOT)}:{one_list.lineno}"] * (len(words & names) > 1)
    assert not found, f"{found}: take the names from orchestrator/language/kernels.py"
