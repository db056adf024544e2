"""Explains error messages of libvirt and VFIO about passed-through devices, with remedies."""

from __future__ import annotations

import re

# The texts are from libvirt 9.0 (src/hypervisor/virhostdev.c, src/qemu/qemu_hostdev.c, src/util/virpci.c) and
# QEMU (hw/vfio).
_TEXTS: tuple[tuple[str, str], ...] = (
    (
        r"host doesn't support passthrough of host PCI devices",
        "the IOMMU is off, or vfio-pci is not loaded; `vnet doctor` says which: enable it in the firmware "
        "and boot with intel_iommu=on iommu=pt (AMD's needs no word), or run `modprobe vfio-pci`",
    ),
    (
        r"group (?P<group>\d+) is not viable",
        "IOMMU group {group} also holds devices that the host uses, and a group is passed whole or not at "
        "all; `vnet doctor` lists its members: use another slot or port",
    ),
    (
        r"failed to setup container for group (?P<group>\d+)[^\n]*Operation not permitted",
        "the machine does not remap interrupts, so that VFIO refuses; enable VT-d's interrupt remapping "
        "(x2APIC) in the firmware, or on a machine of your own "
        "`modprobe vfio_iommu_type1 allow_unsafe_interrupts=1`",
    ),
    (
        r"PCI device (?P<nic>\S+) is in use by driver \S+, domain (?P<domain>\S+)",
        "{nic} is already in the virtual machine {domain}; end that one (`virsh destroy {domain}`; for a "
        "vNET lab `vnet down LAB`), or take another port",
    ),
    (
        r"Unmanaged PCI device (?P<nic>\S+) must be manually detached from the host",
        "the domain's <hostdev> says managed='no'; vNET always writes managed='yes', so that this domain is "
        "not vNET's: detach {nic} with `virsh nodedev-detach`, or correct the domain",
    ),
    (
        r"(vfio|hostdev)[^\n]*Device or resource busy",
        "another program has the device's VFIO group open; end it, then try again",
    ),
    (
        r"(cannot limit locked memory|VFIO_MAP_DMA|Cannot allocate memory)",
        "passing a device pins the guest's whole memory: raise the limit of locked memory (`ulimit -l`) or "
        "give the guest less",
    ),
)  # fmt: skip


def explain(text: str) -> str | None:
    """Returns the meaning and remedy of an error of libvirt or QEMU about a passed-through NIC, from the
    first pattern that occurs in the text; None if the error is unknown.
    """
    for pattern, meaning in _TEXTS:
        if match := re.search(pattern, text):
            return meaning.format(**match.groupdict())
    return None
