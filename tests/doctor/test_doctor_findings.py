"""Tests the doctor's findings on simulated machines, and that its check of this machine is quick and
complete.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from orchestrator.doctor import Finding, examine, far, host_kernel, limits, machines, tools, uml, virtual
from orchestrator.kernel.facts import LINKS, MATCHES, QDISCS, HostFacts, find_tool
from orchestrator.kernel.uml.binaries import UmlBinary
from orchestrator.kernel.uml.needs import missing_root, missing_xsave
from orchestrator.kernel.virtual.kernel import MARK
from orchestrator.lab.cgroup import own_pids_max
from orchestrator.lab.vm import accel
from orchestrator.language.uris import RemoteMachine
from orchestrator.project import PROJECT
from orchestrator.software.registry import programs

WORKS = dict.fromkeys([*QDISCS, *LINKS, *MATCHES])


def machine(**changes) -> HostFacts:
    able = {
        "kernel": "6.12", "root": True, "namespaces": None, "kinds": WORKS,
        "controllers": frozenset({"cpu", "cpuacct", "memory"}), "cgroup_version": 2,
    }  # fmt: skip
    return HostFacts(**{**able, **changes})


def by_subject(found):
    return {finding.subject: finding for finding in found}


def test_an_able_machine_has_nothing_to_mend():
    assert {f.state for f in host_kernel.findings(machine())} == {"ok"}


def test_without_netem_uml_is_named():
    found = by_subject(
        host_kernel.findings(machine(kinds={**WORKS, "netem": "Specified qdisc kind is unknown."}))
    )
    assert found["netem"].state == "missing"
    assert found["netem"].found == "Specified qdisc kind is unknown."
    assert "--kernel uml" in found["netem"].consequence
    assert found["qdiscs"].state == "ok"


def test_an_ordinary_user_is_told_what_still_works():
    found = by_subject(host_kernel.findings(machine(root=False)))["kernel"]
    assert (found.state, found.remedy) == ("limited", "run vnet as root")
    assert "--kernel uml can" in found.consequence


def test_no_namespaces_means_no_netem_either():
    found = by_subject(
        host_kernel.findings(machine(namespaces="unshare failed: Operation not permitted", kinds={}))
    )
    assert found["netem"].found == "unshare failed: Operation not permitted"
    assert found["link kinds"].state == "missing"


@pytest.mark.parametrize(
    ("controllers", "version", "state", "words"),
    [
        ({"cpu", "cpuacct", "memory"}, 1, "ok", ""),
        ({"cpuacct", "memory"}, 1, "limited", "CPU limits and reservations"),
        (set(), 0, "missing", "CPU time per node"),
    ],
)
def test_cgroup_layouts(controllers, version, state, words):
    (found,) = host_kernel.cgroups(machine(controllers=frozenset(controllers), cgroup_version=version))
    assert found.state == state
    assert words in found.consequence


def invented_kernel(path, text=b"ELF"):
    path.write_bytes(text)
    return path


def test_virtual_time_needs_the_labs_own_kernel(tmp_path):
    ours = invented_kernel(tmp_path / "ours", b"ELF..." + MARK + b"...")
    other = invented_kernel(tmp_path / "other")
    now = UmlBinary(ours, "7.3.4-lab", "built", None)
    older = UmlBinary(ours, "7.3.4-lab", "built", None, "older")
    fallback = UmlBinary(other, "6.12.117-lab", "built", None, "fallback")
    assert uml.virtual_time([fallback, now]).state == "ok"
    assert uml.virtual_time([older]).state == "limited"
    refused = uml.virtual_time([fallback])
    assert (refused.state, refused.remedy) == ("missing", "make kernel")
    assert "from its fallback source: does not know it" in refused.found
    assert uml.virtual_time([]).state == "missing"


def test_uml_kernels(tmp_path):
    built = UmlBinary(invented_kernel(tmp_path / "k"), "7.3.4-lab", "built", None)
    debian = UmlBinary(invented_kernel(tmp_path / "linux.uml"), "6.1.176", "debian", tmp_path)
    assert uml.findings([built, debian])[0].state == "ok"
    assert uml.findings([])[0].remedy == "apt-get install user-mode-linux kmod"
    old = uml.findings([], [debian])[0]
    assert (old.state, old.remedy) == ("missing", "make kernel")
    assert "6.1.176, Debian's user-mode-linux, cannot hold this processor's AMX registers" in old.found
    broken = uml.findings([debian])[0]
    assert broken.state == "missing"
    assert "overlay.ko does not exist" in broken.found
    module = tmp_path / "kernel/fs/overlayfs/overlay.ko"
    module.parent.mkdir(parents=True)
    module.touch()
    assert uml.findings([debian])[0].remedy == "make kernel"


def test_what_a_guest_needs_of_the_machine_is_told_with_its_remedy():
    (found,) = uml.lacking("uml by seccomp", missing_xsave("flags : fpu sse2\n"), "slower")
    assert (found.state, found.consequence) == ("missing", "slower")
    assert found.found.startswith("XSAVE in the processor: ") and "-cpu host" in found.remedy
    assert uml.lacking("uml guests", missing_root(), "none") == []


def test_a_hanging_kvm_probe_is_not_waited_for(tmp_path):
    device = tmp_path / "kvm"
    device.touch()
    before = time.monotonic()
    found = virtual.kvm(device, (sys.executable, "-c", "import time; time.sleep(60)"), deadline_s=0.3)
    assert time.monotonic() - before < 50
    assert found.state == "missing"
    assert "its probe fails: no answer within 0.3 s" in found.found


def test_kvm_is_never_called_proven_by_one_instruction(tmp_path):
    (tmp_path / "kvm").touch()
    found = virtual.kvm(tmp_path / "kvm", (sys.executable, "-c", "print('ok')"))
    assert found.state == "limited"
    assert "not proven" in found.found
    boots, hangs = (
        accel.Acceleration(True, "a guest came up with it"),
        accel.Acceleration(False, "did not come up"),
    )
    proven = virtual.kvm(tmp_path / "kvm", (sys.executable, "-c", "print('ok')"), known=boots)
    assert (proven.state, proven.found) == ("ok", "a guest came up with it")
    found = virtual.kvm(tmp_path / "kvm", (sys.executable, "-c", "print('ok')"), known=hangs)
    assert found.state == "missing" and "emulated" in found.consequence
    assert virtual.kvm(tmp_path / "none").found == f"no {tmp_path / 'none'}"


def test_what_virtual_machines_lack_is_told_at_once_each_remedy_once(monkeypatch, tmp_path):
    monkeypatch.setattr(machines, "find_tool", lambda name: None)
    monkeypatch.setattr(machines.os, "geteuid", lambda: 0)
    found = machines.programs(list(machines.absent((str(tmp_path / "none.so"),), tmp_path / "tun")))
    assert (found.state, found.consequence) == ("limited", "labs with nodes of kind vm are refused")
    assert found.found.startswith("not here: qemu-system-x86_64, qemu-img, libvirt's QEMU driver")
    assert found.remedy.split("; ")[0] == "images/packages.sh vm" and "modprobe tun" in found.remedy
    assert found.remedy.count("packages.sh") == 1
    monkeypatch.setattr(machines.account, "NAMES", ("no-such-account",))
    assert ("the account no-such-account", machines.INSTALL) in machines.absent()
    assert machines.programs(()).state == "ok"


def test_images_of_virtual_machines_are_named_or_the_command_that_builds_one():
    assert machines.images(["builtin", "builtin-tiny", "builtin"]).found == "builtin, builtin-tiny"
    none = machines.images([])
    assert (none.state, none.remedy) == ("limited", "vnet images build builtin")


def test_a_missing_tool_names_its_package(monkeypatch):
    dot = next(tool for tool in tools.usual() if tool.name == "dot")
    monkeypatch.setattr(tools, "find_tool", lambda name: None)
    assert tools.look(dot) == Finding(
        "dot", "limited", "not installed", "vnet graph draws nothing", "apt-get install graphviz"
    )
    assert tools.look(tools.OURS[0]).state == "missing"


def test_a_file_that_is_no_program_is_found_by_its_path(tmp_path):
    library = tmp_path / "__init__.py"
    assert find_tool(str(library)) is None
    library.touch(mode=0o644)
    assert find_tool(str(library)) == str(library)


def test_bounds_are_said_in_nodes():
    assert limits.descriptors(1024).consequence == "labs of more than about 128 nodes fail"
    assert limits.descriptors(65536).state == "ok"
    assert limits.processes(100_000, 500).found == "at most 500, 700 wanted for 350 nodes"
    assert limits.processes(-1).state in ("ok", "limited")
    found = limits.memory(1 << 30).found
    # 768 MiB: 48, 116 and 256 MiB a machine, with 50 MB of QEMU's own each
    machines = "8 of builtin-tiny, 4 of builtin, 2 of debian"
    assert found == f"1024 MiB available: about 42 light nodes, or machines: {machines}"
    assert limits.memory(1 << 30).state == "limited"


def test_the_pids_limit_of_a_control_group(tmp_path):
    assert own_pids_max("0::/no/such/group\n") is None


def test_this_machine_is_examined_soon_and_as_plain_data():
    before = time.monotonic()
    found = examine()
    assert time.monotonic() - before < 30
    assert len({finding.subject for finding in found}) == len(found) >= 15
    for finding in json.loads(json.dumps([finding.to_dict() for finding in found])):
        assert finding["found"]
        assert finding["state"] == "ok" or finding["consequence"], finding


def test_a_programs_version_is_asked_for_as_its_room_says_and_in_no_other_way(tmp_path):
    """Shows that a program is not started to ask for its version if its module names another command, because
    RabbitMQ's server starts with any option.
    """
    started = tmp_path / "started"
    server = tmp_path / "server"
    server.write_text(f"#!/bin/sh\ntouch {started}\n")
    server.chmod(0o755)
    found = tools.look(tools.Tool(str(server), ("echo", "3.10", "server"), "package", "nothing works"))
    assert (found.state, found.found) == ("ok", f"{server} (3.10 server)") and not started.exists()
    rooms = {program.name: program.version for program in programs()}
    assert rooms.items() <= {tool.name: tool.version for tool in tools.usual()}.items()


def test_a_host_that_cannot_be_asked_is_told_beside_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("VNET_SSH", f"sh -c 'echo Connection refused >&2; exit 255' {tmp_path}")
    hosts = {name: RemoteMachine(name) for name in ("lab1", "lab2")}
    found = far.examine_all(hosts, tmp_path / "agent")
    assert list(found) == ["lab1", "lab2"]
    for name, (one,) in found.items():
        assert one.state == "missing" and f"ssh://{name}: " in one.found
        assert "no ssh server listens there" in one.found and one.consequence == far.NO_PART


def test_the_doctor_of_a_host_needs_the_standard_library_only():
    script = "import sys; sys.modules['pydantic'] = None; import orchestrator.doctor.__main__"
    told = json.dumps([{"name": "sh", "version": ["sh", "-c", "echo 1"], "package": "dash", "without": ""}])
    said = subprocess.run(
        [sys.executable, "-S", "-c", script], input=told, capture_output=True, text=True, cwd=PROJECT
    )
    found = by_subject(Finding(**one) for one in json.loads(said.stdout))
    assert found["sh"].state == "ok" and "netem" in found, said.stderr
