"""Lists the programs that tests run in virtual time: how to build them, what they do there, and their limits.

docs/virtual-time.md has a table of them, which docs/program_table.py makes from this list.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "programs"
GO = "/usr/local/go/bin/go"
Built = Callable[[Path], None]


@dataclass(frozen=True)
class Program:
    """A program in the matrix. what: words for the table. needs: programs of this machine. server, client:
    commands; PLACE stands for the directory in which `build` makes them, ADDRESS for the server's. proof: a
    line of the client's log. limits: words for the table. refused: the words of the refusal, for one that
    cannot run.
    """

    name: str
    what: str
    needs: tuple[str, ...]
    client: str
    proof: str = ""
    server: str = ""
    ready: str = "{log: listening}"
    build: Built = lambda _: None
    limits: str = ""
    refused: str = ""
    more: str = ""  # further keys of the server's software

    def missing(self) -> str | None:
        """Returns the reason why the program cannot be tested here; None if it can."""
        absent = [one for one in self.needs if shutil.which(one) is None]
        return f"{absent[0]} is not installed" if absent else None


class BuildError(Exception):
    """Raised if a program cannot be built here, such as a crate that is not on this machine."""


def _run(place: Path, *argv: str, **env: str) -> None:
    done = subprocess.run(argv, cwd=place, env=os.environ | env, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(f"{argv[0]}: {(done.stderr or done.stdout).strip()[-300:]}")


def _copied(name: str, *argv: str, **env: str) -> Built:
    """Returns a function that copies a source to a directory and runs a compiler there."""

    def build(place: Path) -> None:
        shutil.copy(SOURCES / name, place)
        if argv:
            _run(place, *argv, **env)

    return build


def _go(place: Path) -> None:
    shutil.copy(SOURCES / "http.go", place)
    quiet = {"GOFLAGS": "-buildvcs=false", "GO111MODULE": "off", "CGO_ENABLED": "0"}
    _run(place, GO, "build", "-o", "program", "http.go", **quiet, GOCACHE=str(place / "cache"))
    shutil.rmtree(place / "cache")


def _tokio(place: Path) -> None:
    shutil.copytree(SOURCES / "tokio", place / "crate")
    _run(place / "crate", "cargo", "build", "--release", "--offline", CARGO_TARGET_DIR=str(place / "target"))
    shutil.move(place / "target" / "release" / "streams", place / "program")
    shutil.rmtree(place / "target")


POSTGRES = (
    "chown postgres . && exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -c "
    "'bin=/usr/lib/postgresql/15/bin; $bin/initdb -D data -A trust >initdb.log 2>&1 && "
    "echo host all all samenet trust >>data/pg_hba.conf && "
    'exec $bin/postgres -D data -k /tmp -c "listen_addresses=*" -c dynamic_shared_memory_type=mmap\''
)
PROGRAMS = (
    Program(
        "Go", "static binary; net/http, four goroutines", (GO,), "PLACE/program ADDRESS", "right 100",
        "PLACE/program", build=_go,
    ),
    Program(
        "Rust", "tokio, two threads, four tasks", ("cargo",), "PLACE/program ADDRESS", "right 100",
        "PLACE/program", build=_tokio,
    ),
    Program(
        "Node.js", "http and fetch, four tasks", ("node",), "node PLACE/http.mjs ADDRESS", "right 100",
        "node PLACE/http.mjs", build=_copied("http.mjs"),
    ),
    Program(
        "Java", "JVM: HttpServer and HttpClient, four threads", ("java", "javac"),
        "java -cp PLACE Http ADDRESS", "right 100", "java -cp PLACE Http",
        build=_copied("Http.java", "javac", "Http.java"),
    ),
    Program(
        "CPython", "asyncio streams, four tasks", ("python3",), "/usr/bin/python3 PLACE/streams.py ADDRESS",
        "right 100", "/usr/bin/python3 PLACE/streams.py", build=_copied("streams.py"),
    ),
    Program(
        "static C", "glibc, no shared library", ("gcc",), "PLACE/program ADDRESS", "right 100",
        "PLACE/program", build=_copied("static.c", "gcc", "-static", "-O1", "-o", "program", "static.c"),
    ),
    Program(
        "static musl", "musl, no shared library", ("musl-gcc",), "PLACE/program ADDRESS", "right 100",
        "PLACE/program", build=_copied("static.c", "musl-gcc", "-static", "-O1", "-o", "program", "static.c"),
    ),
    Program(
        "nginx", "workers behind wrk, four connections", ("nginx", "wrk"),
        "wrk -t1 -c4 -d2s http://ADDRESS/", "requests in 2.0", '[nginx, -g, "daemon off;"]', "{tcp: 80}",
        more="mounts: {copy: [/etc, /var]}",
    ),
    Program(
        "Redis", "redis-benchmark, four connections", ("redis-server", "redis-benchmark"),
        "redis-benchmark -h ADDRESS -c 4 -n 200 -t set,get -q", "GET:",
        '[redis-server, --bind, "*", --protected-mode, "no", --save, ""]', "{tcp: 6379}",
    ),
    Program(
        "PostgreSQL", "initdb, server with its processes, pgbench",
        ("/usr/lib/postgresql/15/bin/postgres", "/usr/lib/postgresql/15/bin/pgbench"),
        "b=/usr/lib/postgresql/15/bin/pgbench; export PGHOST=ADDRESS PGUSER=postgres PGDATABASE=postgres; "
        "$b -i -q && $b -c 2 -t 20",
        "number of failed transactions: 0", POSTGRES, "{tcp: 5432, within: 60 s}",
        limits="`dynamic_shared_memory_type=mmap`",
    ),
    Program(
        "etcd", "one server and etcdctl", ("etcd", "etcdctl"),
        "etcdctl --endpoints=http://ADDRESS:2379 put a right && "
        "etcdctl --endpoints=http://ADDRESS:2379 get a",
        "right",
        "etcd --data-dir data --listen-client-urls http://0.0.0.0:2379 "
        "--advertise-client-urls http://ADDRESS:2379",
        "{tcp: 2379}",
    ),
    Program(
        "io_uring", "asks for it and does without", ("gcc",), "PLACE/program",
        "io_uring_setup: Function not implemented",
        build=_copied("ring.c", "gcc", "-O1", "-o", "program", "ring.c"),
        limits="no io_uring: `ENOSYS`; a program that needs it ends by its own error",
    ),
    Program(
        "32-bit", "the smallest 32-bit program", ("gcc",), "PLACE/program",
        build=_copied("small32.c", "gcc", "-m32", "-nostdlib", "-static", "-o", "program", "small32.c"),
        refused="is a program for another processor",
        limits="refused before the lab starts; build it for x86-64",
    ),
)  # fmt: skip


def topology(program: Program, place: Path) -> str:
    """Returns the text of a lab in which a client uses the program's server, or runs alone if it has none."""
    server = SERVER.format(command=program.server, ready=program.ready) if program.server else ""
    text = HEAD + (
        server.replace("  server:\n", f"  server:\n    {program.more}\n") if program.more else server
    )
    text += CLIENT.format(command=program.client.replace('"', '\\"'))
    return text.replace("PLACE", str(place)).replace("ADDRESS", "10.50.0.2")


HEAD = """\
name: program
seed: 1
segments: {left: {subnet: 10.50.0.0/24}, right: {subnet: 10.50.0.0/24}}
links: {way: {between: [left, right], both: {delay: 10 ms, jitter: 1 ms, loss: 1 %}}}
captures: {all: {at: node client}}
run: {connect_interval: 100 ms, hold: 12 s, drain: 3 s}
nodes:
"""
SERVER = """\
  server:
    segment: right
    address: 10.50.0.2
    software:
      server:
        command: {command}
        role: server
        ready: {ready}
"""
CLIENT = """\
  client:
    segment: left
    address: 10.50.0.1
    software:
      client: {{command: "{command}", role: client, start: hold, at_end: exited}}
"""
