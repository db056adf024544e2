"""Defines the facts of a machine's NICs, from sysfs and `ip`, as frozen dataclasses, and the errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class NicError(RuntimeError):
    """Raised if a NIC cannot be used, moved or given back; the text names the NIC and the reason, and the
    remedy if one is known.
    """


class GoneError(NicError):
    """Raised if a leased interface no longer exists, for example a virtual one that ended with its
    namespace.
    """


@dataclass(frozen=True, slots=True)
class Netdev:
    """A network interface of the machine's own namespace, as `ip -d -j addr` reports it."""

    name: str
    index: int
    mac: str
    mtu: int
    up: bool = False
    carrier: bool = False
    kind: str = ""  # "" for a hardware device, otherwise veth, bridge, vlan ...
    master: str | None = None  # bridge or bond of which the NIC is a port
    lower: str | None = None  # lower interface of a vlan or macvlan
    addresses: tuple[str, ...] = ()  # global addresses, such as "192.0.2.1/24"
    altnames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PciNic:
    """A PCI function of the class "network controller", as sysfs reports it."""

    address: str  # 0000:01:00.0
    vendor: str  # 8086
    device: str  # 10c9
    driver: str | None = None
    netdevs: tuple[str, ...] = ()
    group: int | None = None  # IOMMU group
    sharers: tuple[str, ...] = ()  # other functions of that group, except bridges
    physfn: str | None = None  # physical function, if this is a virtual one
    # The addresses of a physical function's virtual functions, by number.
    virtfns: Mapping[int, str] = field(default_factory=dict)
    virtfns_possible: int = 0
    busy: bool = False  # whether the NIC is bound to vfio-pci and a program has its group open

    @property
    def ident(self) -> str:
        return f"{self.vendor}:{self.device}"


@dataclass(frozen=True, slots=True)
class Iommu:
    """The machine's IOMMU. `remapping`: whether interrupts are remapped, None if unknown; `vfio`: True if
    vfio-pci is available.
    """

    groups: int = 0
    remapping: bool | None = None
    unsafe_allowed: bool = False  # whether vfio_iommu_type1 is configured to work without interrupt remapping
    vfio: bool = False
    intel: bool = True  # whether the processor is Intel's; for AMD's the remedies differ
    asked: bool = False  # whether the kernel's command line enables an IOMMU


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a machine's NICs. `management`: for each interface that the machine or its user needs, the
    reason.
    """

    pci: tuple[PciNic, ...] = ()
    netdevs: tuple[Netdev, ...] = ()
    iommu: Iommu = Iommu()
    management: Mapping[str, str] = field(default_factory=dict)

    def netdev(self, name: str) -> Netdev | None:
        """Returns the interface with that name or alternative name; None if it does not exist."""
        return next((d for d in self.netdevs if name == d.name or name in d.altnames), None)

    def function(self, address: str) -> PciNic | None:
        return next((p for p in self.pci if p.address == address), None)

    def function_of(self, netdev: str) -> PciNic | None:
        """Returns the PCI function of an interface; None for an interface without one (virtual, USB)."""
        return next((p for p in self.pci if netdev in p.netdevs), None)


@dataclass(frozen=True, slots=True)
class Nic:
    """One port: a PCI function with its interface (None without one), or an interface alone (USB,
    virtual).
    """

    function: PciNic | None
    netdev: Netdev | None

    @property
    def key(self) -> str:
        """The name of the port's lease: the PCI address, or `net-` and the interface name."""
        return self.function.address if self.function else f"net-{self.netdev.name if self.netdev else ''}"

    def __str__(self) -> str:
        names = f" ({', '.join(self.function.netdevs)})" if self.function and self.function.netdevs else ""
        return f"{self.function.address}{names}" if self.function else str(self.netdev and self.netdev.name)
