"""Makes hosts with a kernel each for tests: User-Mode Linux with network cards, an init and an sshd of its
own.

The first one's clock is that of the machine outside; each other's has an offset. To power a host off is to
end its kernel's process. The first card is on the rack's bridge; tests use the second while the first is cut.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import signal
import subprocess
import time

from rack import BRIDGE, HERE, Host, ip

from orchestrator.kernel.process import end, session_members

# environment variable with the kernel's path; tests/multi_host/kernel/build.sh builds the kernel
KERNEL = "VNET_HOST_KERNEL"
MANAGING, MANAGE = "manage", "198.51.100"
MEMORY = "1024M"
OFF_S = 3.7  # seconds by which each further host's clock differs from the previous one's
PR_SET_PDEATHSIG = 1
ASK = """
import os, time
open({ready!r}, "w").close()
while not os.path.exists({asked!r}):
    pass
with open({told!r}, "w") as file:
    file.write(str(time.time_ns()) + "\\n")
"""


class Machine(Host):
    """A host with a kernel of its own. Its interface on the rack's bridge is named like that of a host in
    namespaces.
    """

    @property
    def listens_on(self) -> list[str]:
        return [*super().listens_on, self.manage]

    @property
    def manage(self) -> str:
        """The address of the machine's second card."""
        return f"{MANAGE}.{10 + self.number}"

    @property
    def clock_off_s(self) -> float:
        return OFF_S * (self.number - 1)

    @classmethod
    def prepare(cls) -> None:
        ip(f"link add {MANAGING} type bridge\naddress add {MANAGE}.1/24 dev {MANAGING}\n")
        ip(f"link set {MANAGING} up\n")

    @classmethod
    def clear(cls) -> None:
        ip(f"link del {MANAGING}\n")

    def start(self, delay_ms: float) -> None:
        """Powers the machine on. The machine's end of the cable delays frames by twice `delay_ms`, instead of
        `delay_ms` at both ends.
        """
        ports = {f"v{self.number}": f"master {BRIDGE}", f"m{self.number}": f"master {MANAGING}"}
        for port, master in ports.items():
            subprocess.run(["ip", "tuntap", "add", "dev", port, "mode", "tap"], check=True)
            ip(f"link set {port} {master} up\n")
        delay = f"{2 * delay_ms}ms" if delay_ms else "none"
        init = [str(HERE / "machine_init.sh"), str(self.place), self.name, str(self.clock_off_s)]
        init += [delay, self.manage, self.address, self.address6]
        self._boot(list(ports), init)
        self._until("its ssh server", self._answers)

    def _boot(self, ports: list[str], init: list[str]) -> None:
        argv = [os.environ[KERNEL], f"mem={MEMORY}", "seccomp=auto", "rootfstype=hostfs", "rootflags=/", "ro"]
        argv += ["con=null", "con0=null,fd:1", "ssl=null", f"uml_dir={self.place}", "umid=uml"]
        argv += [  # with gro, the bridge passes on segments longer than a frame, which would be cut off
            f"vec{n}:transport=tap,gro=1,ifname={port},mac={self.mac[:-5]}{2 + n:02x}:{self.mac[-2:]}"
            for n, port in enumerate(ports)
        ]
        argv += [f"init={init[0]}", "--", *init[1:]]
        prctl = ctypes.CDLL(None).prctl
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # hostfs holds a descriptor for each open file

        def prepare() -> None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(
                argv,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": "/tmp"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=prepare,
            )

    def inside(self, *words: str) -> list[str]:
        """Returns the command that runs `words` on the machine, by its second card."""
        config = self.place.parent / "config"
        return ["ssh", "-F", str(config), "-n", "-l", "root", self.manage, shlex.join(words)]

    def kill(self) -> None:
        """Powers the machine off: kills the kernel's process with all its threads."""
        assert self.process is not None
        self.cut(there=False)
        self.process.kill()
        self.process.wait()
        assert not end(session_members(self.process.pid, os.environ[KERNEL]))
        ip(f"link del v{self.number}\nlink del m{self.number}\n")
        self.process = None

    def cut(self, there: bool) -> None:
        """Takes the machine's tap device off the bridge, or puts it back (`there`); a card whose tap device
        was ever set down would fail for good.
        """
        ip(f"link set v{self.number} {f'master {BRIDGE}' if there else 'nomaster'}\n")

    def clock_off_ns(self) -> tuple[int, int]:
        """Returns bounds of the machine's clock minus ours, measured by files that both see."""
        ready, asked, told = (self.place / name for name in ("ready", "asked", "told"))
        for file in (ready, asked, told):
            file.unlink(missing_ok=True)
        script = ASK.format(ready=str(ready), asked=str(asked), told=str(told))
        process = subprocess.Popen(self.inside("/usr/bin/python3", "-S", "-c", script))
        self._until("its readiness", ready.exists)
        before = time.time_ns()
        asked.touch()
        self._until("its time", lambda: told.exists() and told.read_text().endswith("\n"))
        after = time.time_ns()
        assert process.wait() == 0
        there = int(told.read_text())
        return there - after, there - before

    def _answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, (self.place / "log").read_text()
        return not subprocess.run(self.inside("true"), capture_output=True, check=False).returncode
