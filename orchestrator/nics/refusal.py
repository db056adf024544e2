"""Determines from facts why a lab cannot have a NIC, with a remedy for each reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.nics.model import Facts, Iommu, Nic
from orchestrator.plan.nics import NicUse

ENABLE_INTEL = "enable VT-d in the firmware and boot with intel_iommu=on iommu=pt"
# Linux enables AMD's IOMMU by default, and has no option amd_iommu=on (drivers/iommu/amd/init.c).
ENABLE_AMD = "enable AMD-Vi (IOMMU) in the firmware; Linux then uses it unasked"
UNSAFE = "vfio_iommu_type1 allow_unsafe_interrupts=1"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason against a NIC: the rule that it breaks, and the remedy."""

    rule: str
    remedy: str


def refusal(use: NicUse, nic: Nic, facts: Facts, taken: Mapping[str, str]) -> Refusal | None:
    """Returns the first reason against `nic` for this use; None if the lab can have it. `taken`: by lease
    key, the lab that has the NIC; "" for the lab of this use.
    """
    for reason in (_taken, _management, _in_use, *(_FOR_VM if use.kind == "vm" else _FOR_NAMESPACE)):
        if (found := reason(nic, facts, taken)) is not None:
            return found
    return None


def _taken(nic: Nic, _: Facts, taken: Mapping[str, str]) -> Refusal | None:
    """Refuses a NIC that is requested twice or leased by another lab."""
    if nic.key not in taken:
        return None
    if not taken[nic.key]:
        return Refusal(f"{nic} is requested twice", "give each interface a port of its own")
    return leased(str(nic), taken[nic.key])


def leased(nic: str, lab: str) -> Refusal:
    """Returns the refusal for a NIC that another lab has."""
    remedy = f"`vnet down {lab}` ends that lab, also after a crash; or take another port"
    return Refusal(f"{nic} is leased by lab {lab}", remedy)


def _management(nic: Nic, facts: Facts, _: Mapping[str, str]) -> Refusal | None:
    """Refuses a NIC with an interface that the machine needs."""
    names = {*(nic.function.netdevs if nic.function else ()), *((nic.netdev.name,) if nic.netdev else ())}
    why = next((facts.management[n] for n in sorted(names) if n in facts.management), None)
    if why is None:
        return None
    return Refusal(f"{nic} is the management NIC: {why}", "take a port that the machine itself does not need")


def _in_use(nic: Nic, facts: Facts, _: Mapping[str, str]) -> Refusal | None:
    """Refuses a NIC that is a port of a bridge or bond, has a VLAN or macvlan on it, or is open
    through VFIO.
    """
    netdev = nic.netdev
    if netdev is not None and netdev.master is not None:
        remedy = f"take it out first: ip link set dev {netdev.name} nomaster"
        return Refusal(f"{nic} is in use as a port of {netdev.master}", remedy)
    above = [d.name for d in facts.netdevs if netdev is not None and d.lower == netdev.name]
    if above:
        remedy = f"remove it first: ip link del dev {above[0]}"
        return Refusal(f"{nic} is in use: {', '.join(above)} stands on it", remedy)
    if nic.function is not None and nic.function.busy:
        return Refusal(
            f"{nic} is in use by a virtual machine or another program through VFIO", "end that one first"
        )
    return None


def _no_interface(nic: Nic, _: Facts, __: Mapping[str, str]) -> Refusal | None:
    """Refuses a PCI function without an interface in this namespace."""
    if nic.netdev is not None or nic.function is None:
        return None
    address, driver = nic.function.address, nic.function.driver
    remedy = f"give it to its driver: echo {address} > /sys/bus/pci/drivers_probe"
    if driver is not None:
        remedy = f"echo {address} > /sys/bus/pci/drivers/{driver}/unbind; then " + remedy
    rule = f"{nic} has no interface here (driver {driver or 'none'}), so that no namespace can have it"
    return Refusal(rule, remedy)


def _not_pci(nic: Nic, _: Facts, __: Mapping[str, str]) -> Refusal | None:
    if nic.function is not None:
        return None
    return Refusal(
        f"{nic} is no PCI device, and only those are passed to a virtual machine", "use kind: light"
    )


def _no_iommu(nic: Nic, facts: Facts, _: Mapping[str, str]) -> Refusal | None:
    function, iommu = nic.function, facts.iommu
    if function is None or function.group is not None:
        return None
    return Refusal(f"{nic} is in no IOMMU group: {no_iommu(iommu)}", enable(iommu) + "; or use kind: light")


def no_iommu(iommu: Iommu) -> str:
    """Returns the reason why the IOMMU does not isolate a device that is in no group."""
    if iommu.groups:
        return "the IOMMU does not cover it"
    return "the kernel looked for an IOMMU and found none" if iommu.asked else "the IOMMU is off or absent"


def enable(iommu: Iommu) -> str:
    """Returns the remedy that turns the IOMMU on, for an Intel or AMD processor."""
    return ENABLE_INTEL if iommu.intel else ENABLE_AMD


def _shared_group(nic: Nic, facts: Facts, _: Mapping[str, str]) -> Refusal | None:
    function = nic.function
    if function is None or not function.sharers:
        return None
    others = ", ".join(function.sharers)
    rule = f"{nic} shares IOMMU group {function.group} with {others}: all or none can be passed"
    remedy = "use another slot, or a port that has a group of its own (`vnet doctor` lists them)"
    return Refusal(rule, remedy)


def _no_remapping(_: Nic, facts: Facts, __: Mapping[str, str]) -> Refusal | None:
    if facts.iommu.remapping is not False or facts.iommu.unsafe_allowed:
        return None
    rule = "interrupt remapping is off: a guest could send interrupts to the host"
    return Refusal(
        rule, f"enable it in the firmware (x2APIC, VT-d); on a machine of your own: modprobe {UNSAFE}"
    )


def _no_vfio(_: Nic, facts: Facts, __: Mapping[str, str]) -> Refusal | None:
    if facts.iommu.vfio:
        return None
    return Refusal("the kernel has no vfio-pci, which carries devices into guests", "boot linux-image-amd64")


def _has_virtual_functions(nic: Nic, _: Facts, __: Mapping[str, str]) -> Refusal | None:
    if nic.function is None or not nic.function.virtfns:
        return None
    name = nic.function.netdevs[0] if nic.function.netdevs else nic.function.address
    rule = f"{nic} has {len(nic.function.virtfns)} virtual functions, which would vanish with it"
    remedy = f'ask for one of them ("{name}:vf0"), or remove them: '
    return Refusal(rule, remedy + f"echo 0 > /sys/bus/pci/devices/{nic.function.address}/sriov_numvfs")


_Reason = Callable[[Nic, Facts, Mapping[str, str]], Refusal | None]
_FOR_NAMESPACE: tuple[_Reason, ...] = (_no_interface,)
_FOR_VM: tuple[_Reason, ...] = (
    _not_pci, _no_iommu, _shared_group, _no_remapping, _no_vfio, _has_virtual_functions
)  # fmt: skip
