"""Defines the faults that the tests inject into a command of vNET, and draws a sequence of them from
a seed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from orchestrator.lab import cgroup

# For each system call: the errors that are injected, and about how often a process makes the call.
FAILING: dict[str, tuple[tuple[str, ...], int]] = {
    "mkdir": (("ENOSPC", "EPERM"), 24), "rename": (("EROFS", "EIO"), 10),
    "openat": (("EMFILE", "EINTR", "ENOMEM"), 900), "vfork": (("EAGAIN", "ENOMEM"), 3),
    "execve": (("ENOENT", "ENOMEM"), 4), "pipe2": (("EMFILE",), 4), "socket": (("EMFILE", "EPERM"), 2),
    "bind": (("EADDRINUSE",), 1), "flock": (("ENOLCK", "EINTR"), 1), "unlink": (("EPERM",), 2),
    "rmdir": (("EBUSY",), 2), "ftruncate": (("ENOSPC", "EIO"), 2), "fsync": (("EIO",), 4),
    "write": (("EINTR",), 200), "read": (("EINTR",), 700),  # Disk makes these calls fail in other ways
    "sendto": (("ECONNRESET", "EINTR", "ENOBUFS"), 40),
    "recvfrom": (("ECONNRESET", "EINTR"), 40), "connect": (("ECONNREFUSED", "EAGAIN"), 3),
}  # fmt: skip
KILLED = {"write": 200, "read": 700, "openat": 900, "mkdir": 24, "rename": 10, "close": 700, "poll": 30}
FAILS, STAYS, KILLS = "fails", "fails from here on", "kills its process"
FULL, READ_ONLY, POWER = "disk full", "disk read only in the middle", "power cut"
# KiB, the largest size of the disk for each fault; a run writes 900 KiB
DISK_KIB = {FULL: 900, READ_ONLY: 1 << 16, POWER: 1 << 15}
STOPS, ENDS = "a process stopped for 30 s", "a process killed"
STOPPED_S = 30.0
CUT = "ssh connection cut"
SHORT = "short reads and writes"
CLOCK, HOUR_S = "the clock set by an hour", 3600
CLOCK_MS = (500, 5000)  # ms until the clock is set: on the machine, and in a guest, whose kernel is slower
MESSAGES = 70  # messages of a run's longest connection
MEMORY = "memory of a control group used up"
MEMORY_MIB = (16, 320)  # MiB; with 16 no command starts, 320 are enough for all
LONG_MS = 4000  # duration of a run


class Found(Protocol):
    """Returns the pids of the command's running processes."""

    def __call__(self) -> list[int]: ...


class Fault(Protocol):
    """A fault: the words that stand before the command, and an action while the command runs; `out` is the
    directory for its results meanwhile.
    """

    @property
    def name(self) -> str: ...
    @property
    def under(self) -> tuple[str, ...]: ...
    def meanwhile(self, processes: Found) -> Callable[[], None]:
        """Starts the action, and returns a function that ends it."""
        ...


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Call:
    """Makes the n-th system call of that name in each process fail, fail from then on, or kill
    its process.
    """

    call: str
    kind: str
    number: int
    error: str = ""

    @property
    def name(self) -> str:
        return f"`{self.call}` {self.kind}"

    def __str__(self) -> str:
        return " ".join(filter(None, (self.call, str(self.number), self.kind, self.error)))

    @property
    def under(self) -> tuple[str, ...]:
        failing = self.kind in (FAILS, STAYS)
        what = f"error={self.error or FAILING[self.call][0][0]}" if failing else "signal=KILL"
        when = f"{self.number}{'+' * (self.kind == STAYS)}"
        inject = ("-e", f"trace={self.call}", "-e", f"inject={self.call}:{what}:when={when}")
        fast = ("--seccomp-bpf",) if failing else ()  # this option cannot deliver signals
        return ("strace", "-f", *fast, "-qqq", "-o", "/dev/null", *inject)

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        return _nothing


@dataclass(frozen=True)
class Disk:
    """Puts the results on a file system of its own, which is full after a number of KiB, or becomes read-only
    or loses its power after a number of ms.

    Power cut: the journalled file system, as its device was at that moment, is mounted anew at the end.
    """

    kind: str
    number: int

    @property
    def name(self) -> str:
        return self.kind

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    @property
    def under(self) -> tuple[str, ...]:
        size, ms = self.number if self.kind == FULL else DISK_KIB[self.kind], self.number / 1000
        run = 's=0; "$@" || s=$?; wait'
        made = f"mount -t tmpfs -o size={size}k none out"
        # If two successive copies are equal, nothing was written in between, so the copy shows a single
        # moment.
        once = "cp kept/now kept/then"
        copy = f"sleep {ms}; {once}; until cmp -s kept/now kept/then; do {once}; done"
        script = {
            FULL: f"{made}; {run}; cp -a out/. kept",
            READ_ONLY: f"{made}; (sleep {ms}; mount -o remount,ro none out) & {run}; cp -a out/. kept",
            POWER: f"mount -t tmpfs none kept; truncate -s {size}k kept/now; mkfs.ext4 -q kept/now; "
            f"mount -o loop,commit=1 kept/now out; ({copy}) & {run}; "
            "umount out; mount -o loop kept/then out; cp -a out/. safe; umount out; umount kept",
        }[self.kind]
        return ("unshare", "-m", "sh", "-ec", f"{script}; exit $s", "sh")

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        return _nothing


@dataclass(frozen=True)
class Signal:
    """Kills one of the running processes, or stops it for a while, after a number of ms; `draw` chooses the
    process.
    """

    kind: str
    number: int
    draw: int = 0

    @property
    def name(self) -> str:
        return self.kind

    def __str__(self) -> str:
        return f"{self.kind} {self.number} {self.draw}"

    @property
    def under(self) -> tuple[str, ...]:
        return ()

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        over = threading.Event()
        thread = threading.Thread(target=self._strike, args=(processes, over))
        thread.start()

        def end() -> None:
            over.set()
            thread.join()

        return end

    def _strike(self, processes: Found, over: threading.Event) -> None:
        if over.wait(self.number / 1000) or not (there := sorted(processes())):
            return
        victim = os.pidfd_open(there[self.draw % len(there)])
        try:
            if self.kind == ENDS:
                signal.pidfd_send_signal(victim, signal.SIGKILL)
                return
            signal.pidfd_send_signal(victim, signal.SIGSTOP)
            over.wait(STOPPED_S)
            signal.pidfd_send_signal(victim, signal.SIGCONT)
        except ProcessLookupError:
            pass  # the process had ended by itself
        finally:
            os.close(victim)


@dataclass(frozen=True)
class Cut:
    """Ends each connection to another machine after a number of messages (cut.py)."""

    number: int
    name = CUT

    def __str__(self) -> str:
        return f"{self.name} {self.number}"

    @property
    def under(self) -> tuple[str, ...]:
        return ("env", f"VNET_CUT={self.number}")

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        return _nothing


@dataclass(frozen=True)
class Short:
    """Makes reads and writes of every process transfer only a part of the bytes; a seed determines which
    (short.c).
    """

    number: int
    name = SHORT

    def __str__(self) -> str:
        return f"{self.name} {self.number}"

    @property
    def under(self) -> tuple[str, ...]:
        # Python loses the rest if an unbuffered text stream writes only a part.
        whole = ("-u", "PYTHONUNBUFFERED")
        return ("env", *whole, f"LD_PRELOAD={preloaded()}", f"VNET_SHORT={self.number}")

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        return _nothing


@cache
def preloaded() -> Path:
    """Compiles short.c and returns the library, which stays in the build directory."""
    source = Path(__file__).with_name("short.c")
    made = source.parents[2] / "target" / "short.so"
    made.parent.mkdir(exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-o", made, source, "-ldl"], check=True)
    return made


@dataclass(frozen=True)
class Clock:
    """Sets the machine's clock an hour forward or back after a number of ms; only in a guest
    (test_clock.py).
    """

    number: int
    by_s: int = HOUR_S
    name = CLOCK

    def __str__(self) -> str:
        return f"{self.name} {self.number} {self.by_s:+d} s"

    @property
    def under(self) -> tuple[str, ...]:
        return ()

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        if not is_guest():
            raise PermissionError(f"{self}: this machine's clock is not set for a test")
        timer = threading.Timer(self.number / 1000, self._set)
        timer.start()

        def end() -> None:
            timer.cancel()
            timer.join()

        return end

    def _set(self) -> None:
        time.clock_settime(time.CLOCK_REALTIME, time.time() + self.by_s)


def is_guest() -> bool:
    """Returns whether this is a User-Mode Linux kernel."""
    return "User Mode Linux" in Path("/proc/cpuinfo").read_text()


@dataclass(frozen=True)
class Memory:
    """Limits the memory of all processes that the command starts, except nodes, to a number of MiB; the
    kernel kills a process that exceeds it.
    """

    number: int
    name = MEMORY

    def __str__(self) -> str:
        return f"{self.name} {self.number} MiB"

    @property
    def group(self) -> Path:
        (root,) = cgroup.this_machine().roots(("memory",))
        return root / f"chaos-{os.getpid()}-{self.number}"

    @property
    def under(self) -> tuple[str, ...]:
        limit = "memory.max" if cgroup.this_machine().version == 2 else "memory.limit_in_bytes"
        made = f"mkdir {self.group}; echo {self.number}M > {self.group}/{limit}"
        return ("sh", "-ec", f'{made}; echo $$ > {self.group}/cgroup.procs; exec "$@"', "sh")

    def meanwhile(self, processes: Found) -> Callable[[], None]:
        return self._end

    def _end(self) -> None:
        """Removes the control group once it is empty: a lab ends by itself when its owner was killed."""
        until = time.monotonic() + STOPPED_S
        while self.group.is_dir():
            try:
                self.group.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


def faults(seed: int) -> Iterator[Fault]:
    """Yields faults without end, every kind in turn, with numbers drawn from the seed."""
    rng = random.Random(seed)
    while True:
        for call, (errors, most) in FAILING.items():
            error = rng.choice(errors)
            # callers repeat a call that returned EINTR
            kind = FAILS if error == "EINTR" else rng.choice((FAILS, STAYS))
            yield Call(call, kind, rng.randint(1, most), error)
        for call, most in KILLED.items():
            yield Call(call, KILLS, rng.randint(1, most))
        for kind in (STOPS, ENDS, ENDS):
            yield Signal(kind, rng.randint(1, LONG_MS), rng.randint(0, 99))
        yield Cut(rng.randint(1, MESSAGES))
        yield Short(rng.randint(1, 1 << 30))
        if os.geteuid() == 0:
            for _ in range(2):
                yield Disk(FULL, rng.randint(1, DISK_KIB[FULL]))
                yield Disk(READ_ONLY, rng.randint(1, LONG_MS))
                yield Disk(POWER, rng.randint(1, LONG_MS))
                yield Memory(rng.randint(*MEMORY_MIB))
