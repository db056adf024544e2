"""Builds tcpdump's command line for a capture point, parses its messages and final statistics, checks
filters, and counts the packets of a file that match one.

Imports the standard library only.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# The kernel's ring: 16 MiB hold 0.1 s of a full gigabit, enough for the time until tcpdump runs again.
BUFFER_KIB = 16 * 1024
# tcpdump reads packets when a block of the ring is full or a second old, and discards an unfinished block
# when it ends. So it must run for this time after the last relevant packet; the value is measured.
SETTLE_NS = 1_200_000_000
# The maximum of tcpdump itself, used for a capture without `snaplen`.
WHOLE_FRAME = 262_144
COMPILE_S = 10.0  # time limit to compile a filter, which takes 10 ms


class CapturePoint(Protocol):
    """The part of a plan's Capture that tcpdump needs."""

    @property
    def device(self) -> str: ...
    @property
    def snaplen(self) -> int: ...
    @property
    def filter(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of packets: written, passed by the kernel's filter, dropped in the kernel and at the
    interface.
    """

    packets: int
    received: int
    dropped_kernel: int
    dropped_interface: int


def argv(point: CapturePoint, program: str = "tcpdump") -> tuple[str, ...]:
    """Returns the command that writes the point's packets to standard output, each as soon as it is captured.

    The command writes no file itself, because tcpdump drops root before it opens files.
    """
    snaplen = point.snaplen or WHOLE_FRAME
    command = (
        program, "-i", point.device, "-n", "--time-stamp-precision=nano",
        "-B", str(BUFFER_KIB), "-s", str(snaplen), "-U", "-w", "-",
    )  # fmt: skip
    return (*command, point.filter) if point.filter else command


def compile_argv(point: CapturePoint, program: str = "tcpdump") -> tuple[str, ...]:
    """Returns the command that prints the instructions of the point's filter, which must not be empty, as
    they are for its device.
    """
    return (program, "-i", point.device, "-s", str(point.snaplen or WHOLE_FRAME), "-ddd", "--", point.filter)


def program(printed: str) -> list[tuple[int, int, int, int]]:
    """Parses the output of `compile_argv`: for each instruction of classic BPF its code, the offsets of its
    jumps if true and if false, and its operand. ValueError if the text is something else.
    """
    count, *lines = printed.splitlines() or [""]
    found = [tuple(map(int, line.split())) for line in lines]
    if not count.isdigit() or len(found) != int(count) or any(len(one) != 4 for one in found):
        raise ValueError(f"no program in tcpdump's output: {printed[:80]!r}")
    return [(code, true, false, operand) for code, true, false, operand in found]


@functools.lru_cache(maxsize=256)
def fault(wanted: str, program: str = "tcpdump") -> str | None:
    """Returns tcpdump's error on a filter for Ethernet; None if it accepts the filter, is not installed, or
    refuses any filter.

    tcpdump only compiles the filter, which needs no interface and no privilege. Results are cached.
    """
    if (found := shutil.which(program)) is None:
        return None
    wrong, said = _compiled(found, wanted)
    # Without this check, tcpdump would refuse every expression on such a link, which shows nothing about this
    # one.
    if wrong and not _compiled(found, "ip")[0]:
        return said
    return None


def _compiled(program: str, wanted: str) -> tuple[bool, str]:
    """Compiles a filter and returns (True if tcpdump refuses it, the last line of the error text). A program
    that cannot start or takes 10 s also counts as a refusal. Name servers have one second to answer.
    """
    command = [program, "-y", "EN10MB", "-d", "--", wanted]
    quick = {**os.environ, "LC_ALL": "C", "RES_OPTIONS": "timeout:1 attempts:1"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_S,
            check=False,
            env=quick,
        )
    except (OSError, ValueError) as error:
        return True, str(error)
    except subprocess.TimeoutExpired:
        return True, f"does not answer within {COMPILE_S:.0f} s"
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Warning:")]
    return done.returncode != 0, (lines or ["no reason"])[-1].removeprefix("tcpdump: ")


def matching(pcap: Path, wanted: str, program: str = "tcpdump") -> int | None:
    """Returns the number of packets of a file that match a filter. None if tcpdump cannot count them, because
    it is absent or too old, the filter is invalid, or the file is unreadable.
    """
    # tcpdump reads standard input, because it may not open other users' files
    command = [program, "-n", "-r", "-", "--count", "--", wanted]
    try:
        with pcap.open("rb") as file:
            done = subprocess.run(
                command, stdin=file, capture_output=True, text=True, errors="replace", check=False
            )
    except OSError:
        return None
    found = re.search(r"^(\d+) packets?$", done.stdout + done.stderr, re.MULTILINE)
    return int(found[1]) if found is not None and done.returncode == 0 else None


def listening(line: str) -> bool:
    """Returns True if a line of tcpdump's standard error states that the capture has begun."""
    return "listening on" in line


def statistics(stderr: str) -> Statistics:
    """Parses the counters that tcpdump prints when it ends; an interface that counts no drops gives 0.

    ValueError with the last three lines of the text if a counter is missing.
    """
    packets, received = _counter(stderr, "captured"), _counter(stderr, "received by filter")
    kernel = _counter(stderr, "dropped by kernel")
    if packets is None or received is None or kernel is None:
        tail = " | ".join(stderr.strip().splitlines()[-3:]) or "nothing"
        raise ValueError(f"tcpdump ended without its statistics (killed?); its last output: {tail}")
    # tcpdump prints this counter only if the interface has it.
    return Statistics(packets, received, kernel, _counter(stderr, "dropped by interface") or 0)


def _counter(text: str, what: str) -> int | None:
    found = re.findall(rf"^(\d+) packets? {what}\s*$", text, re.MULTILINE)
    return int(found[-1]) if found else None
