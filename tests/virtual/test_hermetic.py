"""Tests that a run does not depend on the rest of the machine: 20 packages, settings, secrets, host name,
memory, cores.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_place import PROJECT, SMALL, Place, Ran

HERE = Path(__file__).parent
# The topology has messages, a link, a program that lists all visible files in their order, and programs that
# read installed data of the machine (accounts, alternatives, Python's packages, locales, libraries).
LAB = """\
name: hermetic
seed: 3
segments: {lan: {subnet: 10.51.0.0/24}}
nodes:
  broker: {segment: lan, software: {mosquitto: {broker: mosquitto}}}
  ear: {segment: lan, software: {ear: {mqtt: {broker: broker, subscribe: [{topic: t, qos: 1}]}}}}
  mouth: {segment: lan, software: {mouth: {mqtt: {broker: broker, publish: {topic: t, qos: 1, rate: 20 /s}}}}}
  eye:
    segment: lan
    software:
      files:
        at_end: exited
        command: find /etc /usr /opt /var /srv /home -printf '%p %m %U %G %s %i %n %t\\n'
      users:
        at_end: exited
        command: cat /etc/passwd /etc/group /proc/cpuinfo | grep -v ^flags; uname -n; nproc; df /
      text:
        at_end: exited
        command: ls -l /etc | LC_ALL=de_DE.UTF-8 sort | awk '{print $1, $NF}'; printenv LANG
      python:
        at_end: exited
        command: [python3, -c, "import email.parser, sys, uuid; print(sys.path, sorted(sys.modules))"]
links:
  wan: {between: [mouth, lan], both: {delay: 10 ms, jitter: 2 ms, loss: 2 %}}
captures: {all: {at: node broker}}
run: {connect_interval: 100 ms, hold: 2 s, drain: 2 s}
"""
PACKAGES = 20
STATUS = """
Package: more-{n}
Status: install ok installed
Priority: optional
Section: misc
Architecture: all
Version: {n}.1
Provides: awk, libssl-like
Description: one more
"""


# Runs in a mount namespace of its own: $0 is a directory for an overlay, $1 the directory whose files are
# added, the rest is the command.
OVERLAID = """set -eu
mount --make-rprivate /
mount -t tmpfs none "$0"
mkdir -p "$0/upper/unread" "$0/work"
for n in $(seq 40); do echo "N = $n" >"$0/upper/unread/file$n.py"; done
mount -t overlay -o "lowerdir=$1,upperdir=$0/upper,workdir=$0/work" none "$1"
shift
exec "$@"
"""


def test_twenty_more_packages_change_no_byte(places: Callable[[str], Place], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("overlays of /etc, /usr, /var and /opt need root")
    place = places("hermetic")
    (place.cwd / "small.yaml").write_text(LAB)
    bare = place.run()
    place.env |= {"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "TZ": "Pacific/Apia", "USER": "somebody"}
    core = str(max(os.sched_getaffinity(0)))
    changed = ("unshare", "--mount", "--uts", str(HERE / "lived_in.sh"), str(lived_in(tmp_path)))
    lived = place.run(before=(*changed, "taskset", "-c", core))
    assert logs(lived) == logs(bare)
    assert lived.hashes == bare.hashes
    assert lived.manifest["inputs"] == bare.manifest["inputs"]


def test_files_that_nothing_reads_change_no_byte(places: Callable[[str], Place], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("overlays need root")
    place = places("more-files")
    data = place.cwd / "data"
    data.mkdir()
    seen = f"software: {{eye: {{command: 'ls -d {data}', at_end: exited}}}}, mounts: {{read: [{data}]}}"
    (place.cwd / "seen.yaml").write_text(
        SMALL.replace("groups:", f"  eye: {{segment: left, {seen}}}\ngroups:")
    )
    few = place.run(file="seen.yaml")
    for n in range(40):
        (data / f"file{n}").write_text(f"{n}\n")
    code = str(PROJECT / "orchestrator" / "lab")
    before = ("unshare", "--mount", "sh", "-c", OVERLAID, str(tmp_path), code)
    many = place.run(file="seen.yaml", before=before)
    differ = {
        name for name, value in few.manifest["inputs"].items() if many.manifest["inputs"][name] != value
    }
    assert differ == {"code", f"path {data}"}
    assert many.hashes == few.hashes


def logs(ran: Ran) -> dict[str, str]:
    """Returns the output of the programs of the node `eye` by file name."""
    found = {path.name: path.read_text() for path in sorted(ran.run_dir.glob("raw/logs/eye*.log"))}
    assert len(found) == 4 and all(found.values()), sorted(found)
    return found


def lived_in(tree: Path) -> Path:
    """Adds the files of 20 packages to a root directory, which dpkg knows and no program of the lab needs,
    and files of no package.
    """
    for top in ("etc", "usr", "var", "opt", "over"):
        (tree / top).mkdir()
    for n in range(PACKAGES):
        listed = [
            put(tree, f"usr/share/fonts/truetype/more-{n}/More{n}.ttf", "\0" * 100),
            put(tree, f"usr/lib/python3/dist-packages/more_{n}/__init__.py", "import sys\n"),
            put(tree, f"usr/lib/python3/dist-packages/more_{n}.pth", f"import more_{n}\n"),
            put(tree, f"usr/bin/more-awk-{n}", '#!/bin/sh\nexec mawk "$@"\n', 0o755),
            put(tree, f"usr/lib/locale/more_{n}/LC_CTYPE", "x"),
            put(tree, f"etc/more-{n}/secret.conf", "password", 0o600),
        ]
        put(tree, f"var/lib/dpkg/info/more-{n}.list", "".join(f"/{path}\n" for path in listed))
        put(tree, f"var/lib/more-{n}/state", "x", 0o640)
        for file in range(100):
            put(tree, f"opt/more-{n}/{file}", "x", 0o600 if file % 2 else 0o644)
    put(tree, "etc/ld.so.conf.d/0-more.conf", "/usr/lib/python3\n")
    put(tree, "etc/locale.alias", "german de_DE.UTF-8\n")
    put(tree, "etc/mailcap", "x/y; z\n")
    put(tree, "etc/hosts", "192.0.2.1 broker ear mouth\n")
    put(tree, "etc/machine-id", "0" * 32 + "\n")
    awk = Path("/var/lib/dpkg/alternatives/awk").read_text()
    # links besides awk's own, such as nawk and manual pages
    links = awk.partition("\n\n")[0].count("\n") // 2
    put(tree, "var/lib/dpkg/alternatives/awk", f"{awk[:-1]}/usr/bin/more-awk-1\n90\n" + "\n" * links + "\n")
    passwd = Path("/etc/passwd").read_text() + "more:x:150:150::/nonexistent:/usr/sbin/nologin\n"
    put(tree, "etc/passwd", passwd)
    (tree / "status").write_text("".join(STATUS.format(n=n) for n in range(PACKAGES)))
    meminfo = Path("/proc/meminfo").read_text()
    (tree / "meminfo").write_text(re.sub(r"(MemAvailable: +)\d+", r"\g<1>3000000", meminfo))
    return tree


def put(tree: Path, path: str, text: str, mode: int = 0o644) -> str:
    place = tree / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)
    return path
