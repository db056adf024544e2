"""Runs escape attempts and needs inside a node, as its root, and prints their results as JSON.

It uses only the standard library, because the node gets it as a file beside the attempts and needs.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import signal
import subprocess
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
TOLD = json.loads(os.environ["TOLD"])  # names of objects outside the node: see sandboxed.py
ROOTS_HOME = pwd.getpwuid(0).pw_dir
ESCAPES: dict[str, Callable[[], object]] = {}
NEEDS: dict[str, Callable[[], object]] = {}
SYS = {"mount": 165, "umount2": 166, "setns": 308, "unshare": 272, "init_module": 175, "bpf": 321, "reboot": 169,
       "perf_event_open": 298, "io_uring_setup": 425, "open_by_handle_at": 304, "add_key": 248, "kexec_load": 246,
       "syslog": 103, "clock_settime": 227, "settimeofday": 164, "userfaultfd": 323, "fsopen": 430, "swapon": 167,
       "pivot_root": 155, "move_mount": 429, "clone3": 435, "sethostname": 170, "acct": 163, "iopl": 172,
       "quotactl": 179, "process_vm_readv": 310}  # fmt: skip


def escape(function: Callable[[], object]) -> Callable[[], object]:
    ESCAPES[function.__name__] = function
    return function


def need(function: Callable[[], object]) -> Callable[[], object]:
    NEEDS[function.__name__] = function
    return function


def call(name: str, *args: object) -> bool:
    """Makes a system call by number; returns True, or raises OSError if the kernel refuses it."""
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    if libc.syscall(ctypes.c_long(SYS[name]), *plain) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=8, check=False)
    if done.returncode:
        raise OSError(done.returncode, done.stderr[-200:])
    return done.stdout or "done"


def text(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read()


def write(path: str, content: str = "x") -> str:
    with open(path, "w") as file:
        file.write(content)
    return path


def outcome(function: Callable[[], object]) -> dict[str, object]:
    """Runs the function in a process of its own, which may end in any way, and returns its result."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        signal.alarm(10)
        try:
            got = function()
            said = {"got": bool(got), "said": repr(got)[:200]}
        except OSError as error:
            said = {"got": False, "said": str(error)[:200], "refused": True}
        except Exception as error:
            said = {"got": None, "said": f"{type(error).__name__}: {error}"[:200]}
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else {"got": False, "said": "ended", "refused": True}


def main() -> None:
    found = {name: outcome(function) for name, function in {**NEEDS, **ESCAPES}.items()}
    print(json.dumps(found), flush=True)
