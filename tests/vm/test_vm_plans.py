"""Tests virtual machines in the plan: taps, links of their own, bridge VMs, memory, kernel requirements,
clones.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.images.recipe import recipes
from orchestrator.kernel import lab_command, needs, virtual_machines
from orchestrator.kernel.facts import HostFacts
from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.protocol import Launch, Wish
from orchestrator.lab.probes import spaced_probes
from orchestrator.plan import vms
from orchestrator.plan.bridge_vms import with_bridge_vms
from orchestrator.plan.build import make_plan
from orchestrator.plan.capacity import DISK_BYTES, MEMORY_SHARE, VM_BYTES, MachineFacts, problems
from orchestrator.plan.clone import CloneError, clones
from orchestrator.topology import load

ROOT = Path(__file__).parents[2]
DOCS, TOPOLOGIES = ROOT / "docs", ROOT / "topologies"
TEXT = """
name: small
segments:
  near: {subnet: 10.1.0.0/24}
  far: {}
nodes:
  server: {segment: far, kind: vm}
groups:
  client: {count: 2, segment: near, kind: vm, image: builtin-nic, vcpus: 2, boot_within: 90 s}
  light: {count: 1, segment: near}
links:
  wan: {between: [near, far], both: {delay: 20 ms}}
  access: {between: [client, near], forward: {loss: 1 %}}
run: {hold: 5 s}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(TEXT)
    return path


def lines(plan: Plan) -> list[str]:
    return [line for step in plan.steps if step.tool == "ip" for line in step.text.splitlines()]


def test_a_machine_has_a_tap_and_a_light_node_a_veth(file: Path) -> None:
    plan = make_plan(load(file))
    made = lines(plan)
    assert "tuntap add dev server mode tap vnet_hdr" in made
    assert any(line.startswith("link add name light1 ") and "type veth" in line for line in made)
    assert not any("netns vnet-small.server" in line for line in made)


def test_a_machine_is_given_what_the_file_says_or_its_image_needs(file: Path) -> None:
    nodes = {n.name: n for n in make_plan(load(file)).nodes}
    server, client = nodes["server"].vm, nodes["client1"].vm
    assert server is not None and client is not None and nodes["light1"].vm is None
    assert (server.image, server.memory_bytes) == ("builtin", recipes()["builtin"].memory_mib << 20)
    assert (client.image, client.vcpus, client.boot_deadline_ns) == ("builtin-nic", 2, 90 * 10**9)


def test_an_image_that_is_a_file_stands_beside_the_topology(file: Path) -> None:
    file.write_text(TEXT.replace("kind: vm}", "kind: vm, image: mine.qcow2}", 1))
    vm = make_plan(load(file)).nodes[0].vm
    assert vm is not None and vm.image == str(file.parent / "mine.qcow2")


def test_a_machines_own_link_stands_in_the_core_where_it_can_be_proven(file: Path) -> None:
    plan = make_plan(load(file))
    links = {link.name: link for link in plan.links}
    own = links["access-client1"]
    assert (own.kind, own.a, own.b) == ("access", "client1", "near")
    assert {d.netns for d in (own.forward, own.reverse)} == {"vnet-small"}
    card = next(n for n in plan.nodes if n.name == "client1").interfaces[0]
    assert f"link set dev {card.port} master {card.bridge} up" in lines(plan)
    assert f"link set dev {own.reverse.device} master br-near up" in lines(plan)
    assert own.forward.impairment.loss == 0.01


def test_netem_moves_into_bridge_vms_where_the_host_has_none(file: Path) -> None:
    plan = with_bridge_vms(make_plan(load(file)))
    names = [n.name for n in plan.nodes if n.vm is not None and n.vm.netem]
    assert names == ["netem-wan", "netem-access-client1", "netem-access-client2"]
    assert "netem" in needs.needs_of(make_plan(load(file))).kinds
    assert "netem" not in needs.needs_of(plan).kinds
    wan = next(link for link in plan.links if link.name == "wan")
    assert (wan.forward.netns, wan.forward.device) == ("vnet-small.netem-wan", "eth1")
    assert (wan.forward.enter, wan.forward.leave) == ("wan-a", "wan-b")
    probe = next(p for p in spaced_probes([wan]) if p["direction"] == "reverse")
    assert (probe["netns"], probe["device"], probe["far_device"]) == ("vnet-small", "wan-b", "wan-a")
    made = lines(plan)
    assert "link set dev wan-a master br-near up" in made and "link set dev wan-b master br-far up" in made
    assert not any(line.startswith("link add name wan-a") for line in made), "no wire past the machine"
    card = next(n for n in plan.nodes if n.name == "client1").interfaces[0]
    near = next(n for n in plan.nodes if n.name == "netem-access-client1").interfaces[0]
    assert near.bridge == card.bridge


def test_a_kernel_without_netem_places_it_in_the_plan_that_there_is(file: Path) -> None:
    plan, host = make_plan(load(file)), HostKernel(HostFacts("6.1", root=True, namespaces=None, kinds={}))
    assert host.examine(plan, Wish(bridged=with_bridge_vms)).plan == with_bridge_vms(plan)
    assert host.examine(plan, Wish(carried=True)).plan == plan, "another machine has placed it"


WIRES = """
name: wires
nodes:
  light: {forward: true}
  one: {kind: vm, forward: true}
  two: {kind: vm}
links:
  a: {between: [light, one], both: {delay: 3 ms}, mtu: 1400}
  b: {between: [one, two], duplex: half, both: {rate: 1 Mbit/s, backpressure: true}}
"""


def test_links_between_nodes_that_are_machines_lie_in_the_core(file: Path) -> None:
    file.write_text(WIRES)
    plan = make_plan(load(file))
    made, (a, b) = lines(plan), plan.links
    cards = {(n.name, c.segment): c for n in plan.nodes for c in n.interfaces}
    assert a.through_core and b.through_core and b.half_duplex and not a.half_duplex
    for (name, _), card in cards.items():
        assert (f"tuntap add dev {card.port} mode tap vnet_hdr" in made) is (name != "light")
        assert f"link set dev {card.port} master {card.bridge} up" in made
    assert f"link set dev {a.forward.device} master {cards['light', 'a'].bridge} up" in made
    assert f"link set dev {a.reverse.device} master {cards['one', 'a'].bridge} up" in made
    assert "netem" in needs.needs_of(plan).kinds and from_json(Plan, to_json(plan)) == plan


def test_a_bridge_vm_carries_the_netem_of_a_link_between_nodes(file: Path) -> None:
    file.write_text(WIRES)
    plan = with_bridge_vms(make_plan(load(file)))
    (between,) = (n for n in plan.nodes if n.vm is not None and n.vm.netem)
    cards = {(n.name, c.segment): c for n in plan.nodes if n is not between for c in n.interfaces}
    made, sides = lines(plan), between.interfaces
    assert [side.bridge for side in sides] == [cards["light", "a"].bridge, cards["one", "a"].bridge]
    assert [side.mtu for side in sides] == [1400, 1400]
    for side in sides:
        assert made.index(f"link set dev {side.bridge} up") < made.index(
            f"link set dev {side.port} master {side.bridge} up"
        )
    assert not any(line.startswith(f"link add name {sides[0].port} ") for line in made)
    assert "netem" not in needs.needs_of(plan).kinds


def test_no_two_devices_or_addresses_are_the_same(file: Path) -> None:
    plan = with_bridge_vms(make_plan(load(file)))
    made = [li.split()[3] for li in lines(plan) if li.startswith(("link add name", "tuntap add dev"))]
    macs = [card.mac for node in plan.nodes for card in node.interfaces]
    assert len(made) == len(set(made)) and len(macs) == len(set(macs))


def test_the_plan_survives_its_own_text(file: Path) -> None:
    plan = with_bridge_vms(make_plan(load(file)))
    assert from_json(Plan, to_json(plan)) == plan


def test_memory_that_is_not_there_is_refused_with_what_the_machines_take(file: Path) -> None:
    plan = make_plan(load(file))
    (problem,) = problems(plan, MachineFacts(memory_available_bytes=300 << 20))
    assert "of it the memory of 3 virtual machines" in str(problem) and "less `memory`" in str(problem)
    assert problems(plan, MachineFacts(memory_available_bytes=4 << 30)) == []


MANY = """
name: many
segments: {lan: {subnet: 10.1.0.0/16}}
groups: {m: {count: 300, segment: lan, kind: vm, image: IMAGE}}
"""


def test_three_hundred_machines_are_priced_by_what_was_measured(file: Path) -> None:
    file.write_text(MANY.replace("IMAGE", "builtin-tiny"))
    found = {p.name: p for p in make_plan(load(file)).predictions}
    assert found["memory as measured"].value == 300 * 71e6 < found["memory"].value
    assert found["memory as measured"].scope == "300 of 300 machines"
    assert found["boot CPU, emulated"].value == pytest.approx(465)
    assert found["idle CPU, emulated"].value == pytest.approx(126)
    file.write_text(MANY.replace("IMAGE", "debian"))
    found = {p.name: p for p in make_plan(load(file)).predictions}
    assert "memory as measured" not in found, "nobody has measured it, so nothing is said"
    assert found["disks"].value == 300 * DISK_BYTES


@pytest.mark.parametrize(
    ("free_gb", "told"),
    [
        (40, "(209 of these machines fit, or all with 66 MiB each)"),
        (20, "(104 of these machines fit)"),
        (0.2, "or free memory"),
    ],
)
def test_machines_that_do_not_fit_are_refused_with_the_setting_that_would(
    file: Path, free_gb: float, told: str
) -> None:
    file.write_text(MANY.replace("IMAGE", "builtin"))
    (problem,) = problems(make_plan(load(file)), MachineFacts(memory_available_bytes=int(free_gb * 1e9)))
    assert str(problem).endswith(told)


def test_disks_that_do_not_fit_once_booted_are_refused(file: Path) -> None:
    file.write_text(
        "name: d\nsegments: {lan: {subnet: 10.1.0.0/24}}\n"
        "groups: {m: {count: 3, segment: lan, kind: vm, image: debian}}\n"
    )
    plan = make_plan(load(file))
    assert [p.value for p in plan.predictions if p.name == "disks"] == [3 * DISK_BYTES]
    small = MachineFacts(machines_disk_bytes=60_000_000, machines_disk_place="/var/lib/vnet/disks")
    (problem,) = problems(plan, small)
    assert "about 75 MB once booted, 60 MB are free at /var/lib/vnet/disks" in str(problem)
    assert "VNET_DISK_DIR" in str(problem)
    assert problems(plan, MachineFacts(machines_disk_bytes=80_000_000)) == []
    file.write_text(file.read_text().replace("image: debian", "image: builtin"))
    assert [p for p in make_plan(load(file)).predictions if p.name == "disks"] == [], "it lives in memory"


def test_disks_that_may_outgrow_the_room_are_a_warning_of_check(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/interop/qcow2.rst: a disk of 40 GiB
    head = b"QFI\xfb" + bytes(20) + (40 << 30).to_bytes(8) + bytes(72)
    (tmp_path / "own.qcow2").write_bytes(head)
    file.write_text(
        "name: d\nsegments: {lan: {subnet: 10.1.0.0/24}}\n"
        f"groups: {{m: {{count: 2, segment: lan, kind: vm, image: {tmp_path}/own.qcow2}}}}\n"
    )
    plan = make_plan(load(file))
    free = {"free": 50 * 10**9}
    monkeypatch.setattr(virtual_machines.shutil, "disk_usage", lambda _: type("Usage", (), free))
    (found,) = virtual_machines.growing_disks(plan, tmp_path)
    assert found.what == "the disks of 2 virtual machines may grow to 86 GB"
    assert found.reason.startswith(f"50 GB are free at {tmp_path}") and "VNET_DISK_DIR" in found.remedy
    free["free"] = 90 * 10**9
    assert virtual_machines.growing_disks(plan, tmp_path) == []


def test_the_pages_give_the_planners_figures_of_machines() -> None:
    def each(image: str) -> str:
        return f"{(VM_BYTES + vms.memory(image)) / 1e6:.0f} MB"

    pages = (DOCS / "lab-staff.md", DOCS / "how-to" / "300-vms.md")
    for text in (" ".join(page.read_text().split()) for page in pages):
        assert (
            f"{each('builtin')} for each" in text.replace("virtual machine", "VM")
            and f"({each('builtin-tiny')} of `builtin-tiny`" in text
        )
        assert f"{each('own.qcow2')} of an image of your own" in text
    for image in ("builtin-tiny", "builtin"):
        plan = make_plan(load(TOPOLOGIES / "mqtt-vm.yaml", {"clients": "298", "image": image}))
        needed = next(p.value for p in plan.predictions if p.name == "memory") / MEMORY_SHARE
        assert f"{needed / 1e9:.0f} GB with `{image}`" in pages[1].read_text(), (image, needed)


def test_the_lab_process_of_machines_gets_its_packages_and_its_driver(file: Path) -> None:
    plan = make_plan(load(file))
    run, state, agent = Path("/run"), Path("/state"), Path("/agent")
    found = lab_command.arguments(Launch(plan, run, state, agent, scenario=True), state, agent)
    assert "-S" not in found and found[found.index("--driver") + 1] == "vm"
    light = dataclasses.replace(plan, nodes=tuple(n for n in plan.nodes if n.vm is None))
    found = lab_command.arguments(Launch(light, run, state, agent, scenario=True), state, agent)
    assert "-S" in found and "--driver" not in found


def test_a_clone_of_a_machine_has_wires_of_its_own(file: Path) -> None:
    plan = make_plan(load(file))
    now = {n.name: {"interfaces": [dataclasses.asdict(i) for i in n.interfaces]} for n in plan.nodes}
    (clone,) = clones(plan, now, "client", 1)
    (card,), (link,) = clone.node.interfaces, clone.links
    text = "".join(step.text for step in clone.steps)
    assert clone.node.name == "client3" and clone.node.vm == plan.nodes[1].vm
    assert f"tuntap add dev {card.port} " in text and f"dev {card.port} master {card.bridge} up" in text
    taken = {d.device for li in plan.links for d in (li.forward, li.reverse)}
    assert {link.forward.device, link.reverse.device}.isdisjoint(taken)
    assert "loss random 1%" in text
    with pytest.raises(CloneError, match="runs through a bridge VM"):
        clones(with_bridge_vms(make_plan(load(file))), now, "client", 1)
