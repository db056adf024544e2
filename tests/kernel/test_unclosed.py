"""Tests that programs that a closed root cannot contain are refused, all at once, each with key, value, rule
and remedy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from debian_tree import Debian

from orchestrator.kernel.virtual.root.closure import close
from orchestrator.kernel.virtual.root.places import Closure
from orchestrator.kernel.virtual.root.unclosed import Unclosed, Unfound
from orchestrator.kernel.virtual.root.wanted import Wanted, commands

KEY = "nodes.server.software.app.command"


@pytest.fixture
def debian(tmp_path: Path) -> Debian:
    made = Debian(tmp_path / "machine")
    made.install("libc6", {"/lib/libc.so.6": "c", "/lib64/ld-linux-x86-64.so.2": "c"})
    made.install("dash", {"/bin/dash": "dash"})
    made.install("coreutils", {"/usr/bin/env": "env"})
    made.install("python3", {"/usr/bin/python3": "python"})
    return made


def closed(debian: Debian, *wanted: Wanted) -> Closure:
    return close(debian.database, wanted, ())


def refused(debian: Debian, *wanted: Wanted) -> tuple[Unfound, ...]:
    with pytest.raises(Unclosed) as error:
        closed(debian, *wanted)
    assert all(one.key == KEY and one.rule and one.remedy for one in error.value.found)
    return error.value.found


def program(name: str) -> Wanted:
    return Wanted(name, "program", KEY, must=True)


def command(name: str) -> Wanted:
    return Wanted(name, "command", KEY, must=True)


def mounted(name: str) -> Wanted:
    return Wanted(name, "path", "nodes.server.mounts.read", must=True)


def dangling(debian: Debian) -> None:
    (debian.root / "usr/local/bin").mkdir(parents=True)
    (debian.root / "usr/local/bin/app").symlink_to("../lib/app")


def circle(debian: Debian) -> None:
    dangling(debian)
    (debian.root / "usr/local/lib").mkdir()
    (debian.root / "usr/local/lib/app").symlink_to("../bin/app")


def removed(debian: Debian) -> None:
    debian.install("app", {"/usr/bin/app": "app"}, Status="deinstall ok config-files")


def lost(debian: Debian) -> None:
    debian.install("app", {"/usr/bin/app": "app"})
    (debian.root / "usr/bin/app").unlink()


def directory(debian: Debian) -> None:
    debian.put("/opt/app/main", "app")


def text(debian: Debian) -> None:
    debian.put("/opt/app", "app", 0o644)


def only_roots(debian: Debian) -> None:
    debian.install("app", {"/usr/bin/app": "app"})
    (debian.root / "usr/bin/app").chmod(0o4711)


def environment(debian: Debian) -> None:
    debian.put("/opt/venv/pyvenv.cfg", "home = /usr/bin\n")
    (debian.root / "opt/venv/bin").mkdir()
    (debian.root / "opt/venv/bin/python").symlink_to("/usr/bin/python3")


@pytest.mark.parametrize(
    ("make", "wanted", "rule", "remedy"),
    [
        (None, command("app"), "is not on this machine", "install the Debian package"),
        (None, program("/opt/app"), "is not on this machine", "correct the path"),
        (dangling, program("/usr/local/bin/app"), "leads to /usr/local/lib/app, which is", "correct"),
        (dangling, command("app"), "is not on this machine", "write its path"),
        (circle, program("/usr/local/bin/app"), "is a link that leads round in a circle", "correct the path"),
        (removed, command("app"), "is /usr/bin/app: no package has it", "name its path, write `mounts"),
        (lost, program("/usr/bin/app"), "is not on this machine", "install the Debian package"),
        (directory, program("/opt/app"), "is a directory", "name the program in it"),
        (text, program("/opt/app"), "is no program: it is not executable", "correct the path"),
        (only_roots, program("/usr/bin/app"), "may not be read by everybody", "correct the path"),
        (only_roots, command("app"), "may not be read by everybody", "correct the path"),
        (environment, program("/opt/venv/bin/python"), "is of the Python environment", "read: [/opt/venv]"),
    ],
)  # fmt: skip
def test_a_program_that_cannot_be_shown(
    debian: Debian, make: Callable[[Debian], None] | None, wanted: Wanted, rule: str, remedy: str
) -> None:
    if make is not None:
        make(debian)
    (one,) = refused(debian, wanted)
    assert rule in one.rule and remedy in one.remedy
    assert one.value == (wanted.name if wanted.kind == "program" or "read by" not in rule else "/usr/bin/app")


ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00"
ARM = ELF + b"\xb7\x00" + bytes(44)
# The file is an x86-64 program that ends at byte 64, where its nine program headers should be.
CUT = ELF + b"\x3e\x00" + bytes(12) + b"\x40" + bytes(15) + b"\x40\x00\x38\x00\x09\x00" + bytes(6)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"#!/bin/dash\r\necho\r\n", "ends its first line with a carriage return"),
        (b"#!\necho\n", "names no interpreter after #!"),
        (b"#!/usr/bin/env\n", "names no command for env to start"),
        (b"#!/usr/bin/env -S A=1\n", "names no command for env to start"),
        (b"#!/srv/app\n", "is a script whose interpreters are scripts, too"),
        (ARM, "is a program for another processor (ELF machine 183)"),
        (ELF, "is cut short"),
        (CUT, "is cut short"),
    ],
)  # fmt: skip
def test_a_file_that_linux_cannot_execute(debian: Debian, content: bytes, rule: str) -> None:
    debian.put("/srv/app", "").write_bytes(content)
    found = refused(debian, program("/srv/app"))
    assert rule in found[0].rule and found[0].value == "/srv/app"


def test_a_program_for_another_processor_may_be_read(debian: Debian) -> None:
    debian.put("/srv/app", "").write_bytes(ARM)
    assert closed(debian, Wanted("/srv/app", "path", KEY)).paths == {"/srv/app": KEY}


def test_an_interpreter_for_another_processor_is_named(debian: Debian) -> None:
    debian.put("/opt/perl/bin/perl", "").write_bytes(ARM)
    debian.put("/srv/app", "#!/opt/perl/bin/perl\n")
    found = refused(debian, mounted("/opt/perl"), program("/srv/app"))
    assert (found[0].value, found[0].key) == ("/opt/perl/bin/perl", KEY)


def test_a_program_that_was_left_by_its_package_is_taken_by_its_path(debian: Debian) -> None:
    removed(debian)
    assert closed(debian, program("/usr/bin/app")).paths == {"/usr/bin/app": KEY}


def test_a_set_uid_program_that_everybody_may_read_is_taken(debian: Debian) -> None:
    debian.install("app", {"/usr/bin/app": "app"})
    (debian.root / "usr/bin/app").chmod(0o4755)
    assert closed(debian, command("app")).packages == {"app"}


def test_what_the_lab_makes_has_not_to_be_there(debian: Debian) -> None:
    assert closed(debian, program("/run/app/start"), program("/tmp/app")) == Closure()


def test_all_are_named_at_once_and_each_once(debian: Debian) -> None:
    environment(debian)
    debian.put("/srv/app.sh", "#!/bin/dash\none\nanother\none\n")
    debian.put("/usr/local/bin/one", "1")
    debian.put("/usr/local/bin/another", "2")
    found = refused(debian, program("/srv/app.sh"), command("nothing"), program("/opt/venv/bin/python"))
    script = debian.root / "srv/app.sh"
    values = [f"{script}: one", f"{script}: another", "nothing", "/opt/venv/bin/python"]
    assert [one.value for one in found] == values


@pytest.mark.parametrize("shown", ["/opt/perl", "/opt/perl/bin/perl"])
def test_what_the_topology_shows_may_be_called(debian: Debian, shown: str) -> None:
    debian.put("/opt/perl/bin/perl", "perl")
    debian.put("/srv/app", "#!/opt/perl/bin/perl\n")
    assert [one.value for one in refused(debian, program("/srv/app"))] == [str(debian.root / "srv/app")]
    # The directory is in the root, whichever program names it first.
    assert "/srv/app" in closed(debian, program("/srv/app"), mounted(shown)).paths


def test_the_interpreter_that_env_finds(debian: Debian) -> None:
    debian.put("/srv/app", "#!/usr/bin/env -S A=1 python3 -u\n")
    assert closed(debian, program("/srv/app")).packages == {"coreutils", "python3"}
    debian.put("/srv/app", "#!/usr/bin/env lua\n")
    (one,) = refused(debian, program("/srv/app"))
    assert one.rule == "its interpreter lua is not on this machine"


def test_a_module_that_pip_installed(debian: Debian) -> None:
    place = "/usr/local/lib/python3.11/dist-packages"
    debian.put(f"{place}/theirs/__init__.py", "")
    debian.put("/srv/app.py", "import json, theirs\nfrom other import x\n")
    (one,) = refused(debian, program("/srv/app.py"))
    assert one.value == f"{debian.root}/srv/app.py: theirs"
    assert one.rule.startswith(f"the module is {place}/theirs: no package has it")
    assert f"{place}/theirs" in one.remedy
    assert closed(debian, program("/srv/app.py"), mounted(f"{place}/theirs")).paths.keys() >= {"/srv/app.py"}


def test_an_environment_has_its_own_modules(debian: Debian) -> None:
    environment(debian)
    debian.put("/opt/venv/lib/python3.11/site-packages/theirs.py", "")
    debian.put("/usr/local/lib/python3.11/dist-packages/theirs.py", "")
    debian.put("/srv/app.py", "import theirs\n")
    found = closed(debian, program("/opt/venv/bin/python"), program("/srv/app.py"), mounted("/opt/venv"))
    assert found.packages == {"python3"}


@pytest.fixture
def linked(debian: Debian) -> Path:
    """Makes a library, and a program in /opt/app that needs the library and states its directory
    (RUNPATH).
    """
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    (debian.root / "opt/app/lib").mkdir(parents=True)
    source = debian.put("/src/own.c", "int own(void) { return 1; }\n")
    main = debian.put("/src/main.c", "int own(void); int main(void) { return own(); }\n")
    library = debian.root / "opt/app/lib/libown.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libown.so.1", "-o", library, source], check=True)
    where = ["-Wl,-rpath,$ORIGIN/lib", str(library)]
    subprocess.run(["cc", "-o", debian.root / "opt/app/main", main, *where], check=True)
    return library


def test_a_library_that_the_program_says_where_to_find(debian: Debian, linked: Path) -> None:
    found = closed(debian, program("/opt/app/main"))
    assert found.paths.keys() == {"/opt/app/main", "/opt/app/lib/libown.so.1"}
    assert found.packages == {"libc6"}


def test_a_library_that_is_nowhere_and_one_that_a_variable_finds(debian: Debian, linked: Path) -> None:
    elsewhere = debian.root / "srv/lib"
    elsewhere.mkdir(parents=True)
    linked.rename(elsewhere / linked.name)
    (one,) = refused(debian, program("/opt/app/main"))
    assert "needs the library libown.so.1, which is in none of" in one.rule
    assert "LD_LIBRARY_PATH" in one.remedy
    found = closed(debian, Wanted("/srv/lib", "libraries", KEY), program("/opt/app/main"))
    assert found.paths.keys() == {"/opt/app/main", "/srv/lib/libown.so.1"}


def test_of_a_directory_only_programs_must_be_complete(debian: Debian, linked: Path) -> None:
    linked.rename(linked.with_name("libother.so"))  # the library is there, but no program names it
    debian.put("/opt/app/example.sh", "#!/opt/none/sh\n", 0o644)
    with pytest.raises(Unclosed) as error:
        closed(debian, mounted("/opt/app"))
    assert [one.value for one in error.value.found] == [str(debian.root / "opt/app/main")]
    (debian.root / "opt/app/main").chmod(0o644)
    assert closed(debian, mounted("/opt/app")).paths == {"/opt/app": "nodes.server.mounts.read"}


@pytest.mark.parametrize(
    ("text", "must"),
    [
        ("app --x | tool", ["app"]),
        ("exec app", ["app"]),
        ("A=1 /opt/app", ["/opt/app"]),
        ("cd /srv && app", []),
        ("if command -v app; then app; fi", []),
        ("app() { :; }; app", []),
        ("timeout 5 app", ["app"]),
        ("env A=1 nohup app", ["app"]),
        ("timeout -s KILL 5 app", []),
    ],
)
def test_the_first_word_of_a_command_has_to_be_there(text: str, must: list[str]) -> None:
    assert [one.name for one in commands(text, KEY, begins=True) if one.must] == must


def test_programs_that_a_shell_is_told_by_their_path(debian: Debian) -> None:
    debian.put("/usr/local/bin/own", "own")
    wanted = list(commands("sleep 1; /usr/local/bin/own /usr/local/none", KEY, begins=True))
    assert closed(debian, *wanted[1:]).paths == {"/usr/local/bin/own": KEY}


def test_what_nobody_may_read_is_named_with_its_key(debian: Debian) -> None:
    from orchestrator.kernel.virtual.root import tree

    if os.geteuid() == 0:
        pytest.skip("root reads all files")
    debian.put("/srv/app", "app", 0o111)
    with pytest.raises(Unclosed, match=f"{KEY}: /srv/app: .* cannot be read"):
        tree.of_paths(debian.database, Closure(paths={"/srv/app": KEY}))
