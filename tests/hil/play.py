"""Runs playbooks/host.yml on the nested machine over ssh, twice; the second time nothing may change.

`play.py DIR`: DIR is the directory given to images/hil/run.sh. Exit status 0 if everything holds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# This machine counts as a running server, though its init process is the tests' own. images/hil/build.sh
# installed the packages, because the machine has no mirror.
SETTINGS = {
    "lab_host_running": True,
    "lab_host_package_sets": ["vm"],
    "lab_host_more_packages": ["openssh-server"],
    "lab_host_users": ["games"],
}
RECAP = re.compile(r"^nested\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


def main(directory: Path) -> int:
    """Prints the changes of both plays; returns 1 if the second changed something, or one failed."""
    inventory = directory / "lab-hosts.json"
    ssh = {"ansible_host": "nested", "ansible_ssh_args": f"-F {directory / 'machine' / 'ssh_config'}"}
    host = ssh | {"ansible_python_interpreter": "/usr/bin/python3", "ansible_pipelining": True}
    inventory.write_text(json.dumps({"lab_hosts": {"hosts": {"nested": host}}}))
    first, again = (play(directory, inventory, name) for name in ("first", "again"))
    print(f"host.yml: changed {first} the first time, {again} the second")
    return 0 if first and again == 0 else 1


def play(directory: Path, inventory: Path, name: str) -> int | None:
    """Returns the number of changes; None, after printing the output, if the play failed."""
    (directory / "ansible.cfg").touch()
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
        "ANSIBLE_HOME": str(directory / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
    }
    program = Path(sys.executable).with_name("ansible-playbook")
    playbook = str(PROJECT / "playbooks/host.yml")
    command = [str(program), "-i", str(inventory), playbook, "-e", json.dumps(SETTINGS)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=400
    )
    (directory / f"host.yml-{name}.log").write_text(done.stdout + done.stderr)
    recap = RECAP.search(done.stdout)
    if done.returncode != 0 or recap is None:
        print(done.stdout, done.stderr, sep="\n")
        return None
    return int(recap[2])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
