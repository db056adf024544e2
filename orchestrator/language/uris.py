"""Parses the addresses of machines that run labs: libvirt URIs (`libvirt:`) and ssh URLs (`--kernel`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from .kernels import NAMES
from .units import UnitError

EXAMPLE = 'write for example "qemu+ssh://root@lab7/system"'
EMBED_PATH = "/embed"
EMBED = 'write "qemu:///embed", or leave it out'
LOCAL_PATHS = (EMBED_PATH, "/system", "/session")
# A name that begins with a hyphen would be an option of ssh.
_HOST = re.compile(
    r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?"
)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")


@dataclass(frozen=True, slots=True)
class RemoteMachine:
    """A machine that is reached by ssh, with the kernel for labs on it and the socket of its libvirt daemon.

    If `user`, `port`, `keyfile` or `known_hosts` is None, ssh's own configuration decides; `socket` None:
    libvirt's default.
    """

    host: str
    user: str | None = None
    port: int | None = None
    kernel: str = "auto"
    keyfile: str | None = None
    known_hosts: str | None = None
    socket: str | None = None

    @property
    def url(self) -> str:
        """The machine as a URL for `--kernel`, without key files and socket."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        kernel = f"/{self.kernel}" if self.kernel != "auto" else ""
        return f"ssh://{user}{host}{port}{kernel}"

    @property
    def libvirt(self) -> str:
        """The URI of the machine's libvirt daemon, as used on that machine."""
        if self.socket is None:
            return "qemu:///system"
        return "qemu+unix:///system?" + urlencode({"socket": self.socket}, safe="/")


def check_libvirt(value: object) -> str:
    """Returns the URI unchanged; raises the UnitError (rule, remedy) of `libvirt_machine`."""
    text = value if isinstance(value, str) else ""
    libvirt_machine(text)
    return text


def libvirt_machine(uri: str) -> RemoteMachine | None:
    """Returns the machine of a libvirt URI over ssh; None for a URI of this machine. Raises UnitError for
    other drivers, transports and daemons, and for invalid parameters.
    """
    parts = _split(uri)
    driver, _, transport = parts.scheme.partition("+")
    if driver != "qemu":
        raise UnitError(
            "is not a URI of libvirt's QEMU driver", f'{EXAMPLE}, "qemu:///system" or leave it out'
        )
    if transport == "ssh":
        return _over_ssh(parts)
    if transport not in ("", "unix") or parts.netloc:
        rule = "a lab goes to another machine whole (bridges, captures and all), and over ssh only"
        raise UnitError(rule, EXAMPLE)
    if parts.path not in LOCAL_PATHS:
        raise UnitError("does not name one of QEMU's daemons", 'write "qemu:///system", or leave it out')
    if parts.path == EMBED_PATH and (transport or parts.query or parts.fragment):
        raise UnitError("says where the embedded driver has its files; they are the lab's own", EMBED)
    return None


def kernel_machine(url: str) -> RemoteMachine:
    """Returns the machine of `ssh://[USER@]HOST[:PORT][/KERNEL]`; raises UnitError if the URL is invalid or
    the kernel unknown.
    """
    example = "write for example ssh://root@lab7:22"
    parts = _split(url)
    kernel = parts.path.strip("/") or "auto"
    if parts.scheme != "ssh" or parts.query or parts.fragment:
        raise UnitError("is not ssh://[USER@]HOST[:PORT][/KERNEL]", example)
    if kernel not in NAMES:
        raise UnitError(f'has no kernel "{kernel}" there', f"{example}, or /host or /uml at its end")
    host, user, port = _authority(parts, example)
    return RemoteMachine(host, user, port, kernel)


def _over_ssh(parts: SplitResult) -> RemoteMachine:
    """Returns the machine of a `qemu+ssh` URI; raises UnitError for a path other than /system, and for
    parameters other than absolute paths of keyfile, known_hosts and socket.
    """
    if parts.path != "/system":
        raise UnitError("names no daemon that can run a lab's machines there", EXAMPLE)
    host, user, port = _authority(parts, EXAMPLE)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "no_verify" in given:
        raise UnitError("asks to ignore host keys, which vNET never does", "leave `no_verify` out")
    if unknown := sorted(set(given) - {"keyfile", "known_hosts", "socket"}):
        remedy = "keyfile, known_hosts and socket are; for the rest use ssh's configuration file"
        raise UnitError(f"has parameters that are not taken over: {', '.join(unknown)}", remedy)
    for name, path in given.items():
        if not path.startswith("/"):
            raise UnitError(f"has a {name} that is no absolute path", "write it from / on")
    return RemoteMachine(host, user, port, "host", **given)


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:  # the brackets do not match
        raise UnitError(f"is not a URI ({error})", EXAMPLE) from None


def _authority(parts: SplitResult, example: str) -> tuple[str, str | None, int | None]:
    """Returns host, user and port; raises UnitError if they are invalid or include a password."""
    try:
        host, user, port = parts.hostname, parts.username, parts.port
    except ValueError as error:  # the port is no number, or above 65535
        raise UnitError(f"has a wrong port ({error})", example) from None
    if not host or not _HOST.fullmatch(host) or port == 0:
        raise UnitError("names no host that ssh could reach", example)
    if parts.password is not None:
        raise UnitError(
            "holds a password, which would stand in every record of the run", "use a key of ssh's"
        )
    if user is not None and not _USER.fullmatch(user):
        raise UnitError("names no user that ssh could log in as", example)
    return host, user, port
