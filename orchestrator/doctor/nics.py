"""Reports on NICs: the IOMMU, interrupt remapping, and for each port the kinds of node that can use it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.doctor.finding import Finding
from orchestrator.nics import facts as nic_facts
from orchestrator.nics.model import Facts, Iommu, Nic, NicError, PciNic
from orchestrator.nics.refusal import UNSAFE, Refusal, enable, no_iommu, refusal
from orchestrator.plan.nics import NicUse

NO_GUEST = "no NIC can be passed through to a virtual machine; light nodes can have them"


def findings(root: Path = Path("/")) -> list[Finding]:
    """Returns findings on the IOMMU and on every PCI network port below `root`; one finding `missing` if the
    NICs cannot be examined.
    """
    try:
        facts = nic_facts.look(root)
    except NicError as error:
        return [Finding("nics", "missing", str(error), "no NIC can be in a lab", "apt-get install iproute2")]
    return [iommu(facts.iommu), *(port(function, facts) for function in facts.pci)]


def iommu(found: Iommu) -> Finding:
    """Returns a finding on whether PCI devices can be passed to virtual machines: it needs IOMMU groups,
    vfio-pci, and interrupt remapping or the permission to do without (then `limited`).
    """
    if not found.groups:
        return Finding("iommu", "missing", no_iommu(found), NO_GUEST, enable(found))
    text = f"{found.groups} groups"
    if not found.vfio:
        return Finding("iommu", "missing", f"{text}, no vfio-pci", NO_GUEST, "boot linux-image-amd64")
    if found.remapping is False:
        if found.unsafe_allowed:
            consequence = "a guest that has a NIC could send interrupts to the host"
            return Finding("iommu", "limited", f"{text}, interrupts unmapped by {UNSAFE}", consequence)
        remedy = f"enable it in the firmware (x2APIC); on a machine of your own: modprobe {UNSAFE}"
        return Finding("iommu", "missing", f"{text}, interrupt remapping is off", NO_GUEST, remedy)
    mapped = "interrupts remapped" if found.remapping else "interrupt remapping unknown"
    return Finding("iommu", "ok", f"{text}, {mapped}, vfio-pci available")


def port(function: PciNic, facts: Facts) -> Finding:
    """Returns a finding on one port: its description, and whether light nodes, virtual machines, both or none
    can use it. The management NIC, which no lab gets, is `ok`.
    """
    netdev = facts.netdev(function.netdevs[0]) if function.netdevs else None
    nic = Nic(function, netdev)
    subject = f"nic {function.address}"
    light, guest = (refusal(use, nic, facts, {}) for use in (_LIGHT, _GUEST))
    found = _described(function)
    if light is None and guest is None:
        return Finding(subject, "ok", f"{found}: for light nodes and virtual machines")
    if light is None and guest is not None:
        return Finding(subject, "limited", f"{found}: for light nodes", guest.rule, guest.remedy)
    if light is not None and guest is None:
        return Finding(subject, "limited", f"{found}: for virtual machines", light.rule, light.remedy)
    assert light is not None
    return _for_nobody(subject, found, function, light, facts)


def _for_nobody(subject: str, found: str, function: PciNic, why: Refusal, facts: Facts) -> Finding:
    if reason := next((facts.management[n] for n in function.netdevs if n in facts.management), None):
        return Finding(subject, "ok", f"{found}: the management NIC, which no lab gets: {reason}")
    return Finding(subject, "limited", found, why.rule, why.remedy)


def _described(function: PciNic) -> str:
    words = [function.ident, *function.netdevs, f"driver {function.driver or 'none'}"]
    if function.group is not None:
        words.append(f"IOMMU group {function.group}")
    if function.physfn is not None:
        words.append(f"virtual function of {function.physfn}")
    elif function.virtfns_possible:
        words.append(f"{len(function.virtfns)} of {function.virtfns_possible} virtual functions")
    return ", ".join(words)


_LIGHT = NicUse("", "", "namespace")
_GUEST = NicUse("", "", "vm")
