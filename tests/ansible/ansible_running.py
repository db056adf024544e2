"""Runs `vnet` and Ansible's commands as a user would, and reads the summary that a playbook prints at its
end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SITE_LAB = f"site-{os.getpid()}"  # the process number in the name keeps two runs of this suite apart
PROJECT = Path(__file__).resolve().parents[2]
AGENT = PROJECT / "target/release/vnet-agent"
PLAYBOOKS = PROJECT / "playbooks"
PLUGINS = (PLAYBOOKS / "connection_plugins", Path(__file__).with_name("connection_plugins"))
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


@dataclass
class Played:
    """The output of `ansible-playbook` and its exit status."""

    status: int
    text: str

    def recap(self) -> dict[str, tuple[int, int, int]]:
        """Returns the numbers (changed, unreachable, failed) of every host."""
        return {m[1]: (int(m[3]), int(m[4]), int(m[5])) for m in _RECAP.finditer(self.text)}

    def changed(self) -> int:
        """Returns the number of changes over all hosts; asserts that the playbook succeeded."""
        assert self.status == 0, self.text
        return sum(changed for changed, _, _ in self.recap().values())


@dataclass
class Controller:
    """A machine that runs Ansible: a working directory, a directory for the labs' state, and an Ansible that
    reads no configuration.
    """

    cwd: Path
    state: Path

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            "VNET_STATE_DIR": str(self.state),
            "ANSIBLE_CONNECTION_PLUGINS": ":".join(map(str, PLUGINS)),
            "ANSIBLE_HOME": str(self.cwd / "ansible"),
            "ANSIBLE_CONFIG": str(self.cwd / "empty.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_RETRY_FILES_ENABLED": "0",
            "COLUMNS": "160",
        }

    def vnet(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
        done = subprocess.run(
            argv, cwd=self.cwd, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def play(
        self,
        playbook: Path,
        *arguments: str,
        lab: str | None = None,
        inventory: str | None = None,
        within_s: float = 200,
        path: str = os.environ["PATH"],
    ) -> Played:
        """Runs a playbook once, on the running lab `lab` or with an inventory file."""
        source = inventory or str(PROJECT / "inventory" / "lab")
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        done = subprocess.run(
            [program, "-i", source, str(playbook), *arguments],
            cwd=self.cwd,
            env=self.env | {"PATH": path} | ({"VNET_LAB": lab} if lab else {}),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=within_s,
        )
        return Played(done.returncode, done.stdout + done.stderr)

    def labs(self) -> list[str]:
        return [d.name for d in self.state.iterdir()] if self.state.is_dir() else []
