"""Runs pytest, in the project's own environment, in a place where hosts can be made. With `--own`, in
namespaces of the machine, it first mounts file systems of its own; a lab kernel has them already.
"""

import os
import subprocess
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def own_file_systems() -> None:
    """Mounts new file systems for /run, /tmp and control groups, as a lab kernel has them."""
    trees = [line.split() for line in Path("/proc/self/cgroup").read_text().replace(":", " ").splitlines()]
    first = [words[1] for words in trees if len(words) > 2 and (CGROUP / words[1]).is_dir()]
    kept = [name for name in first if name in ("cpu", "cpuacct", "memory", "pids")]
    calls = [["mount", "--make-rprivate", "/"], ["umount", "-R", "-l", str(CGROUP)]]
    calls += [["mount", "-t", "sysfs", "none", "/sys"]]
    calls += [["mount", "-t", "tmpfs", "none", place] for place in ("/run", "/tmp")]
    if kept:
        calls.append(["mount", "-t", "tmpfs", "none", str(CGROUP)])
    for name in kept:
        calls += [["mkdir", str(CGROUP / name)]]
        calls += [["mount", "-t", "cgroup", "-o", name, "none", str(CGROUP / name)]]
    if not kept:
        calls.append(["mount", "-t", "cgroup2", "none", str(CGROUP)])
    calls.append(["ip", "link", "set", "lo", "up"])
    for call in calls:
        subprocess.run(call, check=True)
    Path("/run/netns").mkdir()


os.environ |= {"HOME": "/root", "PYTHONDONTWRITEBYTECODE": "1"}
os.environ.pop("PYTHONPATH", None)
arguments = sys.argv[1:]
if arguments[0] == "--own":
    own_file_systems()
    arguments = arguments[1:]
project, *arguments = arguments
os.chdir(project)
python = f"{project}/.venv/bin/python"
done = subprocess.run([python, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
sys.exit(done.returncode)
