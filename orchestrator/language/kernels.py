"""Lists the kernels that a lab may run in: a new kernel needs one class, and one line in this list."""

from __future__ import annotations

from dataclasses import dataclass

HERE, THERE, HOSTS = "this machine", "another machine", "several hosts"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kernel: its name for `--kernel`, its class (module:class), the place and the kinds of time in which
    its labs run.

    `listed`: True if `auto` may choose the kernel and messages name it. `apart`: True if every lab has its
    own kernel, so that labs of one name may run at the same time.
    """

    name: str
    place: str
    where: str = HERE
    times: tuple[str, ...] = ("real",)
    listed: bool = True
    apart: bool = False


# In the order of preference: `auto` takes the first that can carry a plan.
KERNELS = (
    Kind("hosts", "orchestrator.kernel.multi_host.kernel:HostsKernel", HOSTS, ("real", "virtual")),
    Kind("ssh", "orchestrator.kernel.remote.kernel:RemoteKernel", THERE),
    Kind("uml", "orchestrator.kernel.virtual.kernel:VirtualKernel", times=("virtual",), apart=True),
    Kind("host", "orchestrator.kernel.host:HostKernel"),
    Kind("uml", "orchestrator.kernel.uml.kernel:UmlKernel", apart=True),
    Kind("fake", "orchestrator.kernel.host:FakeKernel", times=("real", "virtual"), listed=False, apart=True),
)
LOCAL = tuple(kind for kind in KERNELS if kind.where == HERE and "real" in kind.times)
NAMES = ("auto", *(kind.name for kind in LOCAL))
LISTED = ("auto", *(kind.name for kind in LOCAL if kind.listed))
WORDS = f"{', '.join(LISTED[:-1])} or {LISTED[-1]}"


def apart(kernel: str, time: str) -> bool:
    """Returns whether labs with this kernel and time each have their own kernel, and share neither names nor
    the machine's kernel. Always True for virtual time.
    """
    return time == "virtual" or any(kind.name == kernel and kind.apart for kind in LOCAL)
