"""Tests parts of labs on another machine without a network: URIs, ssh's error texts, files that are sent,
files that are fetched.
"""

from __future__ import annotations

import gzip
import io
import platform
import random
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from kernel_plans import node, plan

from contract.plan import Plan, Vm
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.registry import machine_of
from orchestrator.kernel.remote import stage
from orchestrator.kernel.remote.account import Account
from orchestrator.kernel.remote.home import unpack
from orchestrator.kernel.remote.refusals import explained
from orchestrator.language.units import UnitError
from orchestrator.language.uris import RemoteMachine, kernel_machine, libvirt_machine
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

THERE = Account(
    True, False, "lab7", "x86_64", "/home/u/.cache/vnet", "/home/u/.local/state/vnet", "python3", (3, 11)
)
LAB7 = RemoteMachine("lab7", "alice", 2222)


@pytest.mark.parametrize(
    "uri", ["qemu:///embed", "qemu:///system", "qemu:///session", "qemu+unix:///system?socket=/run/x"]
)
def test_libvirt_of_this_machine(uri: str) -> None:
    assert libvirt_machine(uri) is None


def test_libvirt_of_another_machine() -> None:
    found = libvirt_machine("qemu+ssh://alice@lab7:2222/system?keyfile=/k&known_hosts=/h&socket=/run/s")
    assert found == replace(LAB7, kernel="host", keyfile="/k", known_hosts="/h", socket="/run/s")
    assert found.libvirt == "qemu+unix:///system?socket=/run/s"
    plain = libvirt_machine("qemu+ssh://lab7/system")
    assert plain is not None and plain.libvirt == "qemu:///system"
    assert plain.url == "ssh://lab7/host"


@pytest.mark.parametrize(
    ("url", "machine"),
    [
        ("ssh://lab7", RemoteMachine("lab7")),
        ("ssh://alice@lab7:2222", LAB7),
        ("ssh://alice@lab7:2222/uml", replace(LAB7, kernel="uml")),
        ("ssh://[fe80::1]:22", RemoteMachine("fe80::1", port=22)),
    ],
)
def test_kernels_of_other_machines(url: str, machine: RemoteMachine) -> None:
    assert kernel_machine(url) == machine
    assert machine.url == url


@pytest.mark.parametrize(
    ("uri", "rule"),
    [
        ("nonsense://x", "is not a URI of libvirt's QEMU driver"),
        ("xen+ssh://lab7/system", "is not a URI of libvirt's QEMU driver"),
        ("", "is not a URI of libvirt's QEMU driver"),
        ("qemu+tls://lab7/system", "over ssh only"),
        ("qemu+tcp://lab7/system", "over ssh only"),
        ("qemu://lab7/system", "over ssh only"),
        ("qemu:///sytem", "does not name one of QEMU's daemons"),
        ("qemu+ssh:///system", "names no host that ssh could reach"),
        ("qemu+ssh://-oProxyCommand=x/system", "names no host that ssh could reach"),
        ("qemu+ssh://-l@lab7/system", "names no user that ssh could log in as"),
        ("qemu+ssh://a:b@lab7/system", "holds a password"),
        ("qemu+ssh://lab7:99999/system", "has a wrong port"),
        ("qemu+ssh://lab7:0/system", "names no host"),
        ("qemu+ssh://[lab7/system", "is not a URI"),
        ("qemu+ssh://lab7/embed", "names no daemon"),
        ("qemu+ssh://lab7/system?no_verify=1", "asks to ignore host keys, which vNET never does"),
        ("qemu+ssh://lab7/system?command=/bin/x", "parameters that are not taken over: command"),
        ("qemu+ssh://lab7/system?keyfile=k", "has a keyfile that is no absolute path"),
    ],
)
def test_wrong_uris_are_refused_by_the_rule_that_they_break(uri: str, rule: str) -> None:
    with pytest.raises(UnitError) as refusal:
        libvirt_machine(uri)
    assert rule in refusal.value.rule
    assert refusal.value.remedy


@pytest.mark.parametrize("url", ["ssh:lab7", "ssh://", "ssh://lab7/vmware", "ssh://lab7?x=1", "ssh://-x"])
def test_wrong_urls_of_kernels_are_refused(url: str) -> None:
    with pytest.raises(UnitError):
        kernel_machine(url)


def test_a_wrong_uri_is_refused_where_it_stands_in_the_file() -> None:
    text = b"name: x\nlibvirt: qemu+tls://lab7/system\n"
    text += b"segments: {lan: {subnet: 10.0.0.0/24}}\nnodes: {a: {segment: lan}}\n"
    with pytest.raises(TopologyError) as refusal:
        parse("x.yaml", text)
    (problem,) = refusal.value.problems
    assert (problem.line, problem.path) == (2, "libvirt")
    assert "qemu+ssh://root@lab7/system" in problem.remedy


def machine(image: str = "builtin") -> Plan:
    vm = replace(node(), kind="vm", vm=Vm(image, 96 << 20))
    return plan(nodes=(vm,), libvirt="qemu+ssh://alice@lab7/system")


def test_the_machine_of_a_plan() -> None:
    assert machine_of(plan()) is None
    assert machine_of(plan(libvirt="qemu+ssh://lab7/system")) is None, "libvirt runs nothing of it"
    assert machine_of(plan(), "ssh://lab8") == RemoteMachine("lab8")
    named = machine_of(machine())
    assert named is not None and (named.host, named.kernel) == ("lab7", "host")
    assert machine_of(machine(), "ssh://alice@lab7") == replace(named, kernel="auto")
    assert machine_of(machine(), "fake") is None


@pytest.mark.parametrize("kernel", ["host", "uml", "ssh://lab8", "ssh://bob@lab7", "ssh://alice@lab7:99"])
def test_a_file_and_an_option_that_mean_two_machines_are_refused(kernel: str) -> None:
    with pytest.raises(TopologyError, match="leave out one of the two"):
        machine_of(machine(), kernel)


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("alice@lab7: Permission denied (publickey).", "it takes none of the keys that ssh has here"),
        ("Host key verification failed.", "run `ssh -p 2222 alice@lab7` once"),
        ("@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@\nHost key verification failed.",
         "shows another host key than the one known here"),
        ("ssh: connect to host lab7 port 2222: Connection refused", "no ssh server listens there"),
        ("ssh: connect to host lab7 port 2222: Connection timed out", "the machine is off, or a firewall"),
        ("ssh: Could not resolve hostname lab7: Name or service not known", "no such name is known"),
        ("", "ssh ended without an error message; `ssh -p 2222 alice@lab7` tries it by hand"),
        ("something new", "something new; `ssh -p 2222 alice@lab7` tries it by hand"),
    ],
)  # fmt: skip
def test_words_of_ssh_are_kept_and_explained(said: str, meaning: str) -> None:
    text = explained(LAB7, said)
    assert text.startswith("ssh://alice@lab7:2222: ") and meaning in text
    assert said.split()[-1:] == [] or said.split()[-1].strip("@") in text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"version": (3, 9)}, "Python 3.11 or newer as python3 (a lab is run by it; it has 3.9)"),
        ({"python": "", "version": (0, 0)}, "it has none"),
        ({"arch": "riscv64"}, "that is riscv64"),
    ],
)
def test_what_no_lab_can_do_without(change: dict[str, object], what: str) -> None:
    (missing,) = replace(replace(THERE, arch=platform.machine()), **change).missing()  # type: ignore[arg-type]
    assert what in str(missing)


def test_commands_are_root_s_through_sudo() -> None:
    line = replace(THERE, sudo=True).program("/c d", "down", "/h")
    assert line.startswith("sudo -n -H sh -c ")
    assert "PYTHONPATH=" in line and "orchestrator.run.remote down /h" in line


def test_code_is_named_by_its_content(tmp_path: Path) -> None:
    agents = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for path, content in zip(agents, (b"1", b"2", b"1"), strict=True):
        path.write_bytes(content)
    first, other, same = (stage.code(THERE, agent) for agent in agents)
    assert first.target == same.target != other.target
    names = {name for name, _ in first.files}
    wanted = ["run/remote.py", "lab/vm/domain.xml.j2", "kernel/uml/init.py"]
    assert {f"orchestrator/{name}" for name in wanted} <= names
    assert {"images/guest/recipes.toml", "capture/tcpdump.py", "target/release/vnet-agent"} <= names
    assert not any("__pycache__" in name for name in names)


def test_a_disk_of_ones_own_is_carried_by_its_content(tmp_path: Path) -> None:
    disk = tmp_path / "own.qcow2"
    disk.write_bytes(b"QFI\xfb" + bytes(100))
    made = machine(str(disk))
    (cargo,) = stage.images(THERE, made)
    there = stage.with_images_there(THERE, made)
    assert there.nodes[0].vm is not None
    assert there.nodes[0].vm.image == f"{cargo.target}/disk.qcow2"
    assert cargo.target.startswith("/home/u/.cache/vnet/disks/")
    layer = tmp_path / "layer.qcow2"
    layer.write_bytes(b"QFI\xfb" + bytes(10) + b"\1\0" + bytes(100))
    with pytest.raises(KernelError, match="a layer over another file"):
        stage.images(THERE, machine(str(layer)))


def packed(*members: tuple[str, bytes | None]) -> io.BytesIO:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as zipped, tarfile.open(fileobj=zipped, mode="w|") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.type = tarfile.REGTYPE if data is not None else tarfile.SYMTYPE
            member.linkname = "/etc/passwd"
            member.size = len(data or b"")
            tar.addfile(member, io.BytesIO(data or b""))
    out.seek(0)
    return out


def test_a_run_directory_comes_back_over_what_is_here(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "progress.jsonl").write_text("ours")
    (tmp_path / "manifest.json").write_text("old")
    unpack(packed(("./raw/progress.jsonl", b"theirs"), ("./manifest.json", b"new")), tmp_path)
    assert (tmp_path / "raw" / "progress.jsonl").read_text() == "ours"
    assert (tmp_path / "manifest.json").read_text() == "new"


@pytest.mark.parametrize("member", [("../x", b"1"), ("/tmp/x", b"1"), ("link", None)])
def test_what_no_run_directory_holds_is_refused(tmp_path: Path, member: tuple[str, bytes | None]) -> None:
    with pytest.raises(KernelError, match="no run directory holds that"):
        unpack(packed(member), tmp_path / "run")


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in more.items():
        setattr(made, key, value)
    return made


HOSTILE = {
    "above": [member("../x")],
    "above from below": [member("raw/../../x")],
    "absolute": [member("/tmp/x")],
    "symbolic link": [member("raw", tarfile.SYMTYPE, linkname="/tmp"), member("raw/x")],
    "hard link": [member("x", tarfile.LNKTYPE, linkname="/etc/passwd")],
    "device": [member("x", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "disk": [member("x", tarfile.BLKTYPE, devmajor=8)],
    "pipe": [member("x", tarfile.FIFOTYPE)],
    "nul": [member("x", pax_headers={"path": "a\0b"})],
    "sparse": [member("x", pax_headers={"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 50)})],
    "the directory itself": [member(".")],
    "a file in a file": [member("x"), member("x/y")],
    "a file that is a directory": [member("x", tarfile.DIRTYPE), member("x")],
    "a directory that is a file": [member("x"), member("x", tarfile.DIRTYPE)],
}


def hostile(what: str) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for one in HOSTILE[what]:
            tar.addfile(one)
    out.seek(0)
    return out


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_with_the_reason(tmp_path: Path, what: str) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with pytest.raises(KernelError, match=r"no run directory holds that|is a file and a directory"):
        unpack(hostile(what), run_dir)
    assert list(tmp_path.iterdir()) == [run_dir]
    assert all(path.is_dir() or path.stat().st_size == 0 for path in run_dir.rglob("*"))


@pytest.mark.parametrize("at", [0, 5, 300, 600, 900])
def test_an_archive_that_is_altered_is_an_error(tmp_path: Path, at: int) -> None:
    whole = bytearray(packed(("./raw.csv", random.Random(1).randbytes(2000))).getvalue())
    whole[at : at + 8] = bytes(b ^ 0xFF for b in whole[at : at + 8])
    with pytest.raises((tarfile.TarError, EOFError, KernelError)):
        unpack(io.BytesIO(whole), tmp_path)


def test_what_was_cut_off_is_an_error(tmp_path: Path) -> None:
    whole = packed(("./raw.csv", bytes(range(256)) * 4000)).getvalue()
    with pytest.raises((tarfile.TarError, EOFError)):
        unpack(io.BytesIO(whole[: len(whole) // 2]), tmp_path)
