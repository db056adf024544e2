"""Tests the closed root of virtual time (the files that its nodes see): the package of each file, refused
files, and files of the machine that are left out.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from debian_tree import Debian

from orchestrator.kernel.virtual.kernel import with_root
from orchestrator.kernel.virtual.root import closed, generated, tree
from orchestrator.kernel.virtual.root.closure import close
from orchestrator.kernel.virtual.root.dpkg import Database
from orchestrator.kernel.virtual.root.kept import IN_USE_S, MOST, Kept, Known, stamp
from orchestrator.kernel.virtual.root.places import Closure
from orchestrator.kernel.virtual.root.unclosed import Unclosed
from orchestrator.kernel.virtual.root.wanted import Wanted, commands, modules

KEY = "nodes.server.software.app.command"


@pytest.fixture
def debian(tmp_path: Path) -> Debian:
    made = Debian(tmp_path / "machine")
    made.install("libc6", {"/lib/libc.so": "c"}, Priority="required")
    made.install("dash", {"/bin/dash": "dash"}, Depends="libc6 (>= 1)", Pre_Depends="debconf | adduser")
    made.install("mawk", {"/usr/bin/mawk": "mawk"}, Provides="awk", Priority="required", Depends="libc6")
    made.install("debconf", {"/usr/bin/debconf": "x"})
    made.install(
        "server", {"/usr/sbin/serverd": "s", "/etc/server.conf": "port 1"}, Depends="awk, libc6 | musl"
    )
    return made


def packages(debian: Debian, *wanted: Wanted, base: Iterable[str] = ()) -> set[str]:
    return close(debian.database, wanted, base).packages


def command(name: str) -> Wanted:
    return Wanted(name, "command", KEY, must=True)


def program(name: str) -> Wanted:
    return Wanted(name, "program", KEY, must=True)


def path(name: str) -> Wanted:
    return Wanted(name, "path", KEY, must=True)


def test_a_program_brings_its_package_and_what_that_depends_on(debian: Debian) -> None:
    assert packages(debian, command("serverd")) == {"server", "mawk", "libc6"}
    assert packages(debian, path("/sbin/serverd")) == {"server", "mawk", "libc6"}  # the file's other path
    # Metapackages, which only install others, are left out.
    assert packages(debian, base=["dash"]) == {"dash", "libc6"}


def test_what_else_is_installed_changes_nothing(debian: Debian) -> None:
    before = packages(debian, command("serverd"))
    debian.install("gawk", {"/usr/bin/gawk": "gawk"}, Provides="awk", Priority="optional")
    debian.install("aawk", {"/usr/bin/aawk": "aawk"}, Provides="awk", Priority="optional")
    assert packages(debian, command("serverd")) == before


def test_a_name_with_alternatives_is_the_closures_own(debian: Debian) -> None:
    debian.install("gawk", {"/usr/bin/gawk": "gawk"}, Provides="awk")
    choices = "auto\n/usr/bin/awk\n\n/usr/bin/gawk\n10\n/usr/bin/mawk\n5\n\n"
    (debian.root / "var/lib/dpkg/alternatives/awk").write_text(choices)
    (debian.root / "etc/alternatives").mkdir()
    (debian.root / "etc/alternatives/awk").symlink_to("/usr/bin/gawk")
    (debian.root / "usr/bin/awk").symlink_to("/etc/alternatives/awk")
    (debian.root / "usr/bin/gawk").chmod(0o755)
    assert packages(debian, command("serverd"), program("/usr/bin/awk")) == {"server", "mawk", "libc6"}
    assert packages(debian, path("/usr/bin/awk")) == {"gawk"}  # the alternative of highest priority
    there = entries(debian, {"mawk"})
    links = {e.path: e.data.decode() for e in generated.alternatives(debian.database, there)}
    assert links == {"etc/alternatives/awk": "/usr/bin/mawk", "usr/bin/awk": "/etc/alternatives/awk"}


def entries(debian: Debian, names: set[str]) -> dict[str, tree.Entry]:
    sources = tree.of_packages(debian.database, Closure(names))
    return {entry.path: entry for source in sources for entry in source.entries}


def test_a_file_that_another_package_moved_away_is_in_its_own_place(debian: Debian) -> None:
    debian.put("/usr/bin/mawk.real", "mawk")
    debian.install("wrapper", {"/usr/bin/mawk": "wrapper"})
    (debian.root / "var/lib/dpkg/diversions").write_text("/usr/bin/mawk\n/usr/bin/mawk.real\nwrapper\n")
    source = entries(debian, {"mawk"})["usr/bin/mawk"].source
    assert source is not None and source.name == "mawk.real"
    assert "usr/bin/mawk.real" in entries(debian, {"mawk", "wrapper"})


def test_files_that_not_everybody_may_read_are_not_in_it(debian: Debian) -> None:
    (debian.root / "etc/server.conf").chmod(0o640)
    assert "etc/server.conf" not in entries(debian, {"server"})


def test_a_program_of_no_package_is_taken_by_its_path_and_refused_by_its_name(debian: Debian) -> None:
    debian.put("/usr/local/bin/own", "text")
    assert close(debian.database, [path("/usr/local/bin/own")], ()).paths == {"/usr/local/bin/own": KEY}
    with pytest.raises(Unclosed, match=rf"{KEY}: own: is /usr/local/bin/own: no package has it"):
        packages(debian, command("own"))


@pytest.mark.parametrize(
    ("first", "why"),
    [("#!/opt/perl/bin/perl", "no package has it"), ("#!/usr/bin/env lua", "lua is not on this machine")],
)
def test_a_script_whose_interpreter_is_not_in_it_is_refused(debian: Debian, first: str, why: str) -> None:
    debian.install("env", {"/usr/bin/env": "env"})
    debian.put("/opt/perl/bin/perl", "perl")
    debian.put("/srv/app", f"{first}\nprint 1\n")
    with pytest.raises(
        Unclosed, match=rf"{KEY}: .*/srv/app: its interpreter .*{why}.*; .*or use --time real"
    ):
        packages(debian, path("/srv/app"))


def test_an_interpreter_that_the_topology_names_is_taken(debian: Debian) -> None:
    debian.put("/opt/perl/bin/perl", "perl")
    debian.put("/srv/app", "#!/opt/perl/bin/perl\n")
    found = close(debian.database, [path("/opt/perl/bin/perl"), path("/srv/app")], ())
    assert sorted(found.paths) == ["/opt/perl/bin/perl", "/srv/app"]


def test_a_scripts_commands_bring_their_packages(debian: Debian) -> None:
    debian.put(
        "/srv/app.sh", "#!/bin/dash\n# serverd is not called\nwhile exec nice -n 5 mawk 1; do :; done\n"
    )
    assert packages(debian, path("/srv/app.sh")) == {"dash", "mawk", "libc6"}


def test_the_whole_of_a_systems_directory_is_refused(debian: Debian) -> None:
    with pytest.raises(Unclosed, match="/etc: holds files that are no input"):
        packages(debian, path("/etc"))


def test_files_of_the_system_that_only_a_text_names_are_the_roots_own(debian: Debian) -> None:
    debian.put("/etc/passwd", "me:x:1000:1000::/home/me:/bin/sh\n", 0o644)
    debian.put("/srv/data", "1", 0o644)
    said = [Wanted("/etc/passwd", "path", KEY), Wanted("/srv/data", "path", KEY)]
    assert close(debian.database, said, ()).paths == {"/srv/data": KEY}


def test_words_of_a_shell_that_are_commands() -> None:
    said = "foo -e; a=1 b 2 && echo 'c d' | e -x || (f; timeout 5 g) & exec h\nif i; then j; fi # k"
    assert [one.name for one in commands(said, KEY)] == ["foo", "b", "e", "f", "g", "h", "i", "j"]


def test_modules_that_a_script_of_python_imports() -> None:
    said = "import os, sys.path as p\nfrom a.b import c\n  import d\nimported = 1\n"
    assert [one.name for one in modules(said, KEY)] == ["os", "sys", "a", "d"]
    (library,) = modules('ctypes.CDLL("libzmq.so.5")', KEY)
    assert (library.kind, library.name) == ("library", "libzmq.so.5")


def test_accounts_are_those_of_the_packages_with_numbers_of_their_own(debian: Debian) -> None:
    script = "# adduser nobody\nadduser --system \\\n  --gecos 'A server' serverd || true\n"
    script += "addgroup --system $GROUP\n"
    debian.install("more", {}, script=f"GROUP=watchers\n{script}")
    passwd = (
        "root:x:0:0::/root:/bin/sh\nother:x:101:101::/:/bin/sh\nserverd:x:120:121:A server:/var:/bin/false\n"
    )
    debian.put("/etc/passwd", passwd)
    debian.put("/etc/group", "watchers:x:121:serverd,other\nother:x:101:\n")
    found = generated.accounts(debian.database, ["more"])
    assert found.passwd.splitlines()[1:] == ["serverd:x:900:901:A server:/var:/bin/false"]
    assert found.group.splitlines()[1:] == ["watchers:x:901:serverd"]


def test_a_package_brings_what_its_installation_makes(debian: Debian) -> None:
    available, page = "/etc/nginx/sites-available/default", "/usr/share/nginx/html/index.html"
    debian.install("nginx-common", {available: "site", page: "hello"})
    debian.install("redis-tools", {"/usr/bin/redis-cli": "r"})
    there = entries(debian, {"nginx-common", "redis-tools"})

    def made(names: set[str], root: dict[str, tree.Entry]) -> dict[str, tree.Entry]:
        return {entry.path: entry for entry in generated.made_at_installation(root, names)}

    found = made({"nginx-common", "redis-tools"}, there)
    assert found["etc/nginx/sites-enabled/default"].data == available.encode()
    assert found["var/www/html/index.nginx-debian.html"].source == there[page[1:]].source
    assert "var/lib/redis" in found and made({"server"}, there) == {}
    assert made({"nginx-common"}, {}) == {}  # the root lacks the file to which the link would lead


def test_the_loaders_cache_is_what_ldconfig_reads(tmp_path: Path) -> None:
    names = ["libc.so.6", "libz.so.1", "liba-2.so.10", "liba-2.so.9", "libm.so.6"]
    library = b"\x7fELF\x02\x01" + bytes(10) + b"\x03\x00"
    there = {}
    for name in names:
        (tmp_path / name).write_bytes(library)
        there[f"usr/lib/{name}"] = tree.Entry(f"usr/lib/{name}", 0o100644, source=tmp_path / name)
    (tmp_path / "cache").write_bytes(generated.loader_cache(generated.libraries(there, ["/usr/lib"])).data)
    argv = ["/sbin/ldconfig", "-p", "-C", str(tmp_path / "cache")]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0].startswith("5 libs found in cache")
    order = ["libz.so.1", "libm.so.6", "libc.so.6", "liba-2.so.10", "liba-2.so.9"]
    assert said[1:6] == [f"\t{name} (libc6,x86-64) => /usr/lib/{name}" for name in order]


def test_a_changed_file_changes_its_packages_hash_alone(debian: Debian) -> None:
    def described() -> dict[str, str]:
        names = Closure({"server", "mawk", "libc6"})
        return {one.name: one.described for one in tree.of_packages(debian.database, names)}

    before = described()
    debian.put("/etc/server.conf", "port 2")
    after = described()
    assert [name for name in before if before[name] != after[name]] == ["package server"]


def test_a_root_is_made_anew_where_a_file_of_it_is_another(tmp_path: Path) -> None:
    file, kept = tmp_path / "file", Kept(tmp_path / "kept")
    file.write_text("1")
    kept.archive("a.cpio", lambda to: to.write(b"x"))
    kept.know("asked", Known("a.cpio", {"package a": "1"}, {}, {str(file): list(stamp(file) or ())}, {}))
    assert kept.known("asked") is not None
    file.write_text("2 ")
    assert kept.known("asked") is None


def test_the_archives_used_last_are_kept_and_those_in_use(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for number in range(MOST + 3):
        made = kept.archive(f"{number:02}.cpio", lambda to: to.write(b"x"))
        old = time.time() - (2 * IN_USE_S if number != 1 else 0) + number
        os.utime(made, (old, old))
    kept.archive("new.cpio", lambda to: to.write(b"x"))
    left = sorted(path.name for path in tmp_path.glob("*.cpio"))
    assert left[0] == "01.cpio" and "00.cpio" not in left and "new.cpio" in left and len(left) == MOST


def test_a_machine_that_is_no_debian_is_told_so(tmp_path: Path) -> None:
    (missing,) = closed.missing(Database(tmp_path))
    assert "no Debian" in str(missing) and "--time real" in str(missing)


@pytest.mark.parametrize(("lab", "archives"), [(512, 90), (512, 310), (2048, 310), (512, 1500)])
def test_a_lab_has_memory_for_its_root_while_it_is_unpacked(lab: int, archives: int) -> None:
    """Shows that the memory for the unpacked root (half of the memory that the archives and the kernel leave)
    is at least the size of the archives. A slightly larger archive needs no more memory.
    """
    memory = with_root(lab << 20, archives << 20)
    kernel = 32 << 20
    assert (memory - (archives << 20) - kernel) // 2 >= archives << 20
    assert memory >= (lab + archives) << 20
    assert memory == with_root(lab << 20, (archives + 1) << 20)  # a package 1 MiB larger needs no more
