"""Compares the times of Redis and PostgreSQL from captures with those that redis-benchmark and pgbench
measure themselves, and with the packets that tshark dissects.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from virtual_place import Place

POSTGRES = Path("/usr/lib/postgresql/15/bin")
# A client also counts its system calls before its packet and after the answer, of 5 us each; a connection
# that is ready waits for the calls of the others.
CALLS_MS = 0.1
NETWORK = """\
links: {way: {between: [field, centre], both: {delay: 10 ms, jitter: 3 ms, loss: 1 %}}}
captures: {client: {at: node client}}
run: {hold: 30 s, drain: 3 s}
"""
HEAD = """\
segments: {field: {subnet: 10.50.0.0/24}, centre: {subnet: 10.50.0.0/24}}
nodes:
  server:
    segment: centre
    software:
"""
REDIS = f"""\
name: redis
{HEAD}\
      redis:
        command: [redis-server, --bind, "*", --protected-mode, "no", --save, ""]
        role: server
        ready: {{tcp: 6379}}
  client:
    segment: field
    software:
      load:
        command: redis-benchmark -h {{{{ addresses.server }}}} -c 4 -n 1000 -t get --precision 3
        start: hold
        at_end: exited
{NETWORK}"""
POSTGRESQL = f"""\
name: postgresql
{HEAD}\
      postgresql:
        command: chown postgres . && exec setpriv --reuid=postgres --regid=postgres --clear-groups sh start.sh
        role: server
        ready: {{tcp: 5432, within: 60 s}}
        files:
          start.sh: |
            {POSTGRES}/initdb -D data -A trust >initdb.log 2>&1 || {{ cat initdb.log; exit 1; }}
            echo "host all all samenet trust" >>data/pg_hba.conf
            exec {POSTGRES}/postgres -D data -k /tmp -c listen_addresses='*' \\
              -c dynamic_shared_memory_type=mmap
  client:
    segment: field
    software:
      load:
        command: "{POSTGRES}/pgbench -n -M simple -f ask.sql -c 2 -t 200 -l --log-prefix=times && cat times.*"
        env: {{PGHOST: "{{{{ addresses.server }}}}", PGUSER: postgres, PGDATABASE: postgres}}
        files: {{ask.sql: "SELECT 1;\\n"}}
        start: hold
        at_end: exited
{NETWORK}"""


def made(place: Place, text: str, protocol: str) -> tuple[dict[str, float], str, Path]:
    """Runs the file; returns the figures of the requests in its capture, the client's log and the capture."""
    (place.cwd / "asked.yaml").write_text(text)
    done = place.vnet("run", "asked.yaml", "--time", "virtual", "--seed", "1", "--out", "out")
    assert done.returncode == 0, done.stderr
    rows = json.loads((place.cwd / "out/summary.json").read_text())
    found = {row["name"]: row["value"] for row in rows if row.get("protocol") == protocol}
    log = (place.cwd / "out/raw/logs/client.load.log").read_text().replace("\r", "\n")
    return found, log, place.cwd / "out/pcap/client.pcap"


def shown(pcap: Path, fields: str) -> list[str]:
    """Returns the times of the packets that tshark's filter `fields` selects, in seconds, as text."""
    argv = ["tshark", "-n", "-r", str(pcap), "-o", "tcp.reassemble_out_of_order:TRUE"]
    argv += ["-Y", fields, "-T", "fields", "-e", "frame.time_epoch"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def test_redis_has_the_times_of_redis_benchmark(place: Place) -> None:
    if shutil.which("redis-benchmark") is None:
        pytest.skip("redis-benchmark is not installed; images/packages.sh services")
    found, log, pcap = made(place, REDIS, "redis")
    printed = re.search(r"latency summary.*\n.*\n\s+([\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+)", log)
    assert printed is not None, log[-500:]
    mean, least, p50, _, p99, most = map(float, printed[1].split())
    assert found["app_requests"] == 1002, "1000 GETs, and two CONFIG GETs before them"
    assert least > 10, "jitter takes at most the delay"
    for name, theirs in (("mean", mean), ("p50", p50), ("p99", p99), ("max", most)):
        assert 0 <= theirs - found[f"app_latency_{name}"] + CALLS_MS < 3 * CALLS_MS, (name, theirs, found)
    if shutil.which("tshark"):
        # the two CONFIG GETs leave in one packet, and so do their answers
        sent = shown(pcap, "resp && tcp.dstport == 6379 && !tcp.analysis.retransmission")
        assert len(sent) <= 1001 <= len(shown(pcap, "resp && tcp.srcport == 6379"))


def test_postgresql_has_the_times_of_pgbench(place: Place) -> None:
    if not (POSTGRES / "pgbench").exists():
        pytest.skip("postgresql is not installed; images/packages.sh services")
    found, log, pcap = made(place, POSTGRESQL, "postgresql")
    # client, number, microseconds, script, time: one line a transaction, here of one query
    theirs = sorted(int(us) / 1e3 for us in re.findall(r"^\d+ \d+ (\d+) 0 \d+ \d+$", log, re.MULTILINE))
    assert len(theirs) == found["app_requests"] == 400
    p50, p99 = theirs[199], theirs[395]
    for name, value in (("mean", sum(theirs) / 400), ("p50", p50), ("p99", p99), ("max", theirs[-1])):
        assert 0 <= value - found[f"app_latency_{name}"] < CALLS_MS, (name, value, found)
    if shutil.which("tshark"):
        assert len(shown(pcap, 'pgsql.type == "Simple query" && !tcp.analysis.retransmission')) >= 390
        assert len(shown(pcap, 'pgsql.type == "Command completion"')) >= 400
