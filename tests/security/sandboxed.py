"""Runs a lab from the command line with bait outside it, and collects the results of escape
attempts inside.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
ESCAPES = tuple(HERE / f"escapes_by_{way}.py" for way in ("files", "kernel", "calls"))
NEEDS = HERE / "needs.py"
SETTINGS = (
    "kernel/core_pattern",
    "kernel/modprobe",
    "vm/overcommit_memory",
    "fs/file-max",
    "kernel/hostname",
)
ROOTS_HOME = pwd.getpwuid(0).pw_dir
TOUCHED = ("/etc", ROOTS_HOME, "/home", "/usr/bin", "/var/lib", "/etc/cron.d", "/boot", "/", "/opt", "/dev")


def _file(path: Path) -> str:
    lines = "\n".join(f"            {line}" for line in path.read_text().splitlines())
    return f"          {path.name}: |\n{lines}"


def topology(name: str, more: str = "") -> str:
    scripts = "\n".join(_file(path) for path in (HERE / "inside.py", *ESCAPES, NEEDS))
    return f"""\
name: {name}
segments: {{lan: {{subnet: 10.77.0.0/24}}}}
nodes:
  a:
    segment: lan
    software:
      wait:
        command: sleep 100000
        files:
{scripts}
  b: {{segment: lan}}
{more}"""


@dataclass
class Outside:
    """Objects of the machine that no node may reach; `close` removes them."""

    def __init__(self) -> None:
        self.marker = f"vnet-decoy-{os.getpid()}"
        self.directory = Path(tempfile.mkdtemp(prefix="decoy-", dir=ROOT / "target"))
        self.secret = self.directory / "secret"
        self.secret.write_text("secret")
        self.secret.chmod(0o600)
        self.in_tmp = Path(tempfile.mkdtemp(prefix="vnet-decoy-", dir="/tmp"))
        code = f"import time; time.sleep(1000)  # {self.marker}"
        self.process = subprocess.Popen([sys.executable, "-c", code])
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.marker)
        self.abstract.listen()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.shm = Path("/dev/shm") / self.marker
        self.shm.write_text("x")
        self.key = 0x56000000 + os.getpid()
        self.segment = ctypes.CDLL(None).shmget(self.key, 4096, 0o1666)
        self.before = self.state()
        self.clock = time.time() - time.monotonic()

    def state(self) -> dict[str, Any]:
        """Returns the state of the machine that an escape would change."""
        settings = {
            name: Path("/proc/sys", name).read_text() for name in SETTINGS if Path("/proc/sys", name).exists()
        }
        planted = [str(path) for top in TOUCHED for path in Path(top).glob("vnet-was-here")]
        passwd = Path("/etc/passwd").read_bytes()
        return {**settings, "planted": planted, "passwd": passwd, "mode": Path("/usr/bin/env").stat().st_mode}

    def unharmed(self) -> bool:
        moved = abs(time.time() - time.monotonic() - self.clock)
        return (
            self.state() == self.before
            and self.process.poll() is None
            and self.secret.exists()
            and moved < 60
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.abstract.close()
        self.server.close()
        self.shm.unlink()
        ctypes.CDLL(None).shmctl(self.segment, 0, None)  # IPC_RMID
        shutil.rmtree(self.directory)
        shutil.rmtree(self.in_tmp)


def vnet(base: Path, *arguments: str, patience_s: float = 120) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VNET_STATE_DIR": str(base / "s")}
    argv = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
    return subprocess.run(
        argv, cwd=base, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=patience_s, check=False,
    )  # fmt: skip


def attempts(base: Path, outside: Outside, lab: str, kernel: str) -> dict[str, dict[str, Any]]:
    """Starts a lab, runs all attempts in it, and returns the result of each by name."""
    (base / "sandboxed.yaml").write_text(topology(lab))
    up = vnet(base, "up", "sandboxed.yaml", "--kernel", kernel, "--results", "out")
    try:
        assert up.returncode == 0, up.stderr
        state = Path("/run/vnet") if kernel == "uml" else base / "s"
        told = {
            "secret": str(outside.secret), "in_tmp": str(outside.in_tmp), "marker": outside.marker,
            "pid": outside.process.pid, "abstract": outside.marker, "port": outside.server.getsockname()[1],
            "shm_key": outside.key, "state_root": str(state), "control": str(state / lab / "control.sock"),
            "lab": lab, "run_dir": str(next((base / "out" / lab).iterdir())),
            "users": Path("/proc/self/ns/user").exists(),
        }  # fmt: skip
        script = f"cd $HOME && TOLD={shlex.quote(json.dumps(told))} python3 -c 'import escapes_by_files, escapes_by_kernel, escapes_by_calls, needs, inside; inside.main()'"
        done = vnet(base, "exec", lab, "a", "--", "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        found: dict[str, dict[str, Any]] = json.loads(done.stdout)
        places = [f"{place}/message" for place in (ROOTS_HOME, "/home", "/dev", "/boot")]
        seen = vnet(base, "exec", lab, "b", "--", "sh", "-c", f"cat {' '.join(map(shlex.quote, places))}")
        found["left_for_another_node"] = {"got": bool(seen.stdout), "said": seen.stdout}
        return found
    finally:
        down = vnet(base, "down", lab)
        assert down.returncode == 0, down.stderr
