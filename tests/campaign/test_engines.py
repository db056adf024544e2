"""Tests campaigns on an engine: the values of `--on`, the admission of workers, lost cells and rejected
cells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from orchestrator.campaign.engines import notes, slurm, worker
from orchestrator.campaign.engines.captures import piece, sizes
from orchestrator.campaign.engines.engine import Engine, EngineError, engine_of
from orchestrator.campaign.engines.flight import Flight, Stragglers
from orchestrator.campaign.engines.notes import BOOT, ENGINE, Note, read_note, settle, write_note
from orchestrator.campaign.engines.task import Facts, Result, Task
from orchestrator.campaign.engines.workers import Workers
from orchestrator.cli.campaign import campaign_command
from orchestrator.lab.state import owned

PROJECT = Path(__file__).resolve().parents[2]
NIC = """\
name: nic
parameters: {hold: {type: duration, default: 1 s}}
segments: {one: {subnet: 10.9.0.0/24}, two: {subnet: 10.9.0.0/24}}
nodes: {a: {segment: one}, b: {segment: two}}
links: {cable: {between: [one, two], nics: no-such-nic0 no-such-nic1}}
run: {hold: "${hold}"}
"""


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("local:2", Engine("local", 2)),
        ("slurm:12", Engine("slurm", 12)),
        ("dask://127.0.0.1:8786", Engine("dask", address="tcp://127.0.0.1:8786")),
        ("dask://localhost:8786", Engine("dask", address="tcp://localhost:8786")),
        ("dask://[::1]:8786", Engine("dask", address="tcp://[::1]:8786")),
        ("tls://lab.example:8786", Engine("tls", address="tls://lab.example:8786")),
    ],
)
def test_an_engine_by_its_text(text: str, engine: Engine) -> None:
    assert engine_of(text) == engine


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dsak://127.0.0.1:1", 'no such engine; did you mean "dask"'),
        ("lokal:2", 'did you mean "local"'),
        ("", "no such engine; engines: dask, local, slurm, tls"),
        ("local", "needs a number of workers, 1 to 256; write local:2"),
        ("local:0", "needs a number of workers"),
        ("slurm:many", "write slurm:2"),
        ("dask://127.0.0.1", "is no address of a scheduler; write dask://HOST:PORT"),
        ("tls://:8786", "is no address"),
        ("tls://h:99999", "is no address"),
        ("dask://user@127.0.0.1:1", "is no address"),
        ("dask://10.0.0.1:8786", "without TLS anybody who reaches that scheduler can run programs"),
        ("dask://lab.example:8786", "use tls://"),
    ],
)
def test_what_is_no_engine_is_refused(text: str, said: str) -> None:
    with pytest.raises(EngineError) as refused:
        engine_of(text)
    assert said in str(refused.value) and str(refused.value).startswith(f'--on "{text}": ')


def ran(cwd: Path, *arguments: str, absent: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the real command line, for which the package `absent` cannot be imported, and returns its
    result.
    """
    code = f"import sys; sys.modules.update(dict.fromkeys({absent.split()!r}))\n"
    code += "from orchestrator.cli.main import main\nsys.exit(main())"
    agent = {} if (PROJECT / "target/release/vnet-agent").exists() else {"VNET_AGENT": "/bin/true"}
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "VNET_STATE_DIR": str(cwd / "s"), **agent}
    argv = [sys.executable, "-c", code, "campaign", "run", "c.yaml", "--kernel", "fake", "--no-page"]
    return subprocess.run(
        [*argv, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pair = PROJECT / "topologies" / "pair.yaml"
    (tmp_path / "c.yaml").write_text(
        f"name: c\ncampaign:\n  topologies: [{pair}]\n  parameters: {{hold: 1 s}}\n  repetitions: 1\n"
    )
    (tmp_path / "nic.yaml").write_text(NIC)
    return tmp_path


def test_without_dask_it_is_said_what_to_install(place: Path) -> None:
    done = ran(place, "--on", "local:2", absent="distributed")
    assert done.returncode == 3
    assert "Dask distributed is not installed" in done.stderr
    assert 'pip install "vnet-testbed[engines]"' in done.stderr and "make setup" in done.stderr


def test_no_scheduler_there(place: Path) -> None:
    done = ran(place, "--on", "dask://127.0.0.1:1")
    assert done.returncode == 3
    assert "--on dask://127.0.0.1:1: no scheduler answers there; `dask scheduler` starts one" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_certificate(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ran(place, "--on", "tls://127.0.0.1:1")
    assert done.returncode == 3 and "no certificate is named; Dask's own configuration" in done.stderr
    for name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY"):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", str(place / "absent.pem"))
    done = ran(place, "--on", "tls://127.0.0.1:1")
    assert done.returncode == 3 and "its certificate cannot be used ([Errno 2]" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_slurm(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    done = ran(place, "--on", "slurm:2")
    assert done.returncode == 3 and "sbatch is not on the PATH; run this on a machine" in done.stderr


def test_why_jobs_wait_is_said_once_and_lost_ones_are_submitted_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now, said, scaled = [0.0], list[str](), list[int]()
    job = SimpleNamespace(log_directory=tmp_path, job_name="w")
    cluster = SimpleNamespace(
        scale=scaled.append,
        scheduler=SimpleNamespace(workers={"tls://a:1": SimpleNamespace(name="c-0")}),
        workers={f"c-{n}": SimpleNamespace(job_id=n + 10, **vars(job)) for n in (0, 1)},
    )
    states = {"11": "PENDING (Priority)"}
    monkeypatch.setattr(slurm, "_states", lambda of: {job: states[job] for job in of if job in states})
    client = SimpleNamespace(cluster=cluster)
    jobs = slurm.Jobs(Engine("slurm", 2), client, lambda e: said.append(e["text"]), lambda: now[0])  # type: ignore[arg-type]
    for now[0] in (1.0, 6.0, 12.0):
        jobs.look()
    assert said == ["job 11 of Slurm waits: PENDING (Priority)"] and scaled == [2, 2]
    (tmp_path / "w-11.err").write_text("one\nno such account\n")
    states.clear()
    now[0] = 18.0
    jobs.look()  # one worker is connected, so the campaign begins without the other
    assert said[1:] == [
        "job 11 of Slurm ended before its worker came; its log ends with\none\nno such account"
    ]
    del cluster.workers["c-0"]
    now[0] = 24.0
    with pytest.raises(EngineError, match=r"--on slurm:2: job 11 .*\n.*\nno such account"):
        jobs.look()


def test_two_ways_to_say_how_many_are_one_too_many(place: Path) -> None:
    done = CliRunner().invoke(
        campaign_command, ["run", str(place / "c.yaml"), "--on", "local:2", "--jobs", "2"]
    )
    assert "both set the number of parallel runs; leave out one" in str(done.exception)


def test_labs_in_real_time_on_one_machine_are_refused(place: Path) -> None:
    done = CliRunner().invoke(campaign_command, ["run", str(place / "c.yaml"), "--on", "local:2"])
    assert "disturb one another's latency; use --time virtual, or leave out --on" in str(done.exception)


def test_a_cell_that_fits_nowhere_is_refused_and_the_rest_runs(place: Path) -> None:
    text = (place / "c.yaml").read_text().replace("topologies: [", "topologies: [nic.yaml, ")
    (place / "c.yaml").write_text(text)
    done = ran(place, "--on", "local:1")
    assert done.returncode == 3, done.stderr
    assert "cell nic.r1: fits no machine of local:1:" in done.stderr and "it has none" in done.stderr
    lines = [json.loads(line) for line in (place / "results/c/cells.jsonl").read_text().splitlines()]
    assert [(line["cell"], line["state"]) for line in lines] == [("pair.r1", "complete")]
    assert [path.name for path in (place / "results/c/runs").iterdir()] == ["pair.r1"]


def test_the_only_worker_lost_and_another_in_its_place(place: Path) -> None:
    agent = {} if (PROJECT / "target/release/vnet-agent").exists() else {"VNET_AGENT": "/bin/true"}
    env = {**os.environ, "VNET_STATE_DIR": str(place / "s"), **agent}
    run = ["campaign", "run", "c.yaml", "--kernel", "fake", "--no-page", "--on", "local:1"]
    argv = [sys.executable, "-m", "orchestrator.cli.main", *run]
    with subprocess.Popen(argv, cwd=place, env=env, stderr=subprocess.PIPE, text=True) as process:
        note = place / "results" / "c" / "engine" / "pair.r1.json"
        until(120, lambda: note.exists() or process.poll() is not None)
        worker_of_cell = Path(f"/proc/{json.loads(note.read_text())['process']['pid']}/stat").read_text()
        os.kill(int(worker_of_cell.rpartition(")")[2].split()[1]), 9)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    lines = (place / "results/c/cells.jsonl").read_text().splitlines()
    assert [json.loads(line)["state"] for line in lines] in (["interrupted", "complete"], ["complete"])


def until(deadline_s: float, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + deadline_s
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.02)


FACTS = Facts("m", "boot", {"code": "1"}, {"agent": "a"}, 2, 8 << 30, ("uml",), ())


class Client:
    """Imitates the part of Dask's client that `Workers` uses."""

    def __init__(self) -> None:
        self.there: dict[str, Any] = {}
        self.admitted: list[str] = []

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.there, 1)

    def run(self, function: Callable[..., Any], workers: list[str], on_error: str) -> dict[str, Any]:
        if function is worker.admit:
            self.admitted += workers
            return {}
        return {address: self.there[address] for address in workers}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr("orchestrator.campaign.engines.workers.versions", lambda: {"code": "1"})
    return Client()


def facts(**other: Any) -> Facts:
    return Facts(**{**{name: getattr(FACTS, name) for name in FACTS.__dataclass_fields__}, **other})


def test_a_worker_with_other_code_is_refused(client: Client) -> None:
    client.there = {"tcp://a:1": FACTS, "tcp://b:1": facts(machine="n", versions={"code": "2"})}
    with pytest.raises(
        EngineError, match=r"worker tcp://b:1 on n: differs from this command in code \(1, there 2\)"
    ):
        Workers(client, print, alone=False, virtual=False).look()  # type: ignore[arg-type]


def test_a_worker_without_vnet_is_refused(client: Client) -> None:
    client.there = {"tcp://a:1": ModuleNotFoundError("No module named 'orchestrator'")}
    with pytest.raises(
        EngineError, match="No module named 'orchestrator'; install there the vNET that runs here"
    ):
        Workers(client, print, alone=False, virtual=False).look()  # type: ignore[arg-type]


def test_workers_come_and_go_and_one_that_differs_later_is_left_out(client: Client) -> None:
    said: list[str] = []
    workers = Workers(client, lambda e: said.append(e["text"]), alone=False, virtual=True)  # type: ignore[arg-type]
    client.there = {"tcp://a:1": FACTS}
    workers.look()
    client.there = {
        "tcp://b:1": facts(machine="n", boot="other", inputs={"agent": "b"}),
        "tcp://a:2": FACTS,
        "tcp://a:3": OSError("it went meanwhile"),
    }
    workers.look()
    workers.look()
    assert list(workers.admitted) == ["tcp://a:2"] and client.admitted == ["tcp://a:1", "tcp://a:2"]
    assert said[0] == "m: 2 cores, 8.6 GB free, kernels: uml"
    assert [text for text in said if "n: differs from m in agent (a, there b)" in text and "left out" in text]
    assert len(said) == 2


def test_that_no_worker_is_left_is_said_once(client: Client) -> None:
    said: list[str] = []
    workers = Workers(client, lambda e: said.append(e["text"]), alone=False, virtual=True)  # type: ignore[arg-type]
    workers.look()
    client.there = {"tcp://a:1": FACTS}
    workers.look()
    client.there = {}
    workers.look()
    workers.look()
    assert said[1:] == ["no worker is left; the cells wait for one to come"]


def test_labs_in_real_time_are_never_two_on_a_machine(client: Client) -> None:
    workers = Workers(client, lambda _: None, alone=True, virtual=False)  # type: ignore[arg-type]
    client.there = {"tcp://a:1": FACTS, "tcp://a:2": FACTS, "tcp://b:1": facts(machine="n", boot="other")}
    workers.look()
    assert list(workers.admitted) == ["tcp://a:1", "tcp://b:1"]
    assert workers.hosts_but(["boot"]) == ["b"]


def result(wall_s: float) -> Result:
    return Result("complete", None, wall_s, "m", "boot")


def test_a_straggler_is_named_once() -> None:
    now = [100.0]
    stragglers = Stragglers(lambda: now[0])
    flight = Flight(1, SimpleNamespace(), SimpleNamespace(), line={"cell": "c"}, machine="slow", began=100.0)  # type: ignore[arg-type]
    for wall_s in (10.0, 12.0):
        stragglers.took(result(wall_s))
    now[0] = 1000.0
    assert stragglers.late(flight) is None  # with two complete cells there are too few for a median
    stragglers.took(result(11.0))
    now[0] = 132.0
    assert stragglers.late(flight) is None
    now[0] = 134.0
    assert stragglers.late(flight) == (
        "straggler: it has run for 34 s on slow, where half of the others took 11 s or less"
    )
    assert stragglers.late(flight) is None


def task(directory: Path) -> Task:
    return Task("cell", 1, "sitting", "c-key", str(directory), "lab-key-1", {}, b"name: x\n", "{}")


def test_a_cell_that_has_ended_in_this_sitting_does_not_run_again_and_its_captures_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[dict[str, Any]] = []

    class Job:
        """A cell whose duration is taken when it is created."""

        owned = owned("cell", os.getpid())

        def __init__(self, told: dict[str, Any], run_dir: Path, _: object) -> None:
            runs.append(told)
            (run_dir / "pcap").mkdir()
            (run_dir / "pcap" / "all.pcap").write_bytes(b"frames")
            (run_dir / "summary.json").write_text("[]")

        def follow(self, *_: Any) -> tuple[str, str | None]:
            return "complete", None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "Job", Job)
    monkeypatch.setattr(worker, "Resident", object)
    monkeypatch.setattr(worker.HERE, "resident", None)
    monkeypatch.setattr(worker, "get_worker", lambda: SimpleNamespace(get_current_task=lambda: "key"))
    first = worker.run_cell(task(tmp_path / "not-seen-from-here"))
    again = worker.run_cell(task(tmp_path / "not-seen-from-here"))
    assert first == again and len(runs) == 1 and first.state == "complete"
    assert first.packed is not None
    (tmp_path / "came.tar").write_bytes(first.packed)
    with tarfile.open(tmp_path / "came.tar") as tar:
        assert sorted(tar.getnames()) == ["summary.json", "topology.yaml"]
    there = tmp_path / "results" / "c-key" / "runs" / first.run_dir
    assert (there / "pcap" / "all.pcap").read_bytes() == b"frames" and first.there == str(there)
    assert sizes(first.there) == {"all.pcap": 6} and piece(first.there, "all.pcap", 2) == b"ames"


def test_a_campaigns_directory_that_the_worker_sees_is_written_to(tmp_path: Path) -> None:
    (tmp_path / ENGINE).mkdir()
    (tmp_path / ENGINE / "sitting").touch()
    assert worker._place(task(tmp_path)) == tmp_path


def test_told_to_stop_a_worker_begins_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker.HERE, "stopped", {"sitting"})
    ended = worker.run_cell(task(tmp_path / "elsewhere"))
    assert (ended.state, ended.run_dir) == ("interrupted", "")


def test_what_a_lost_worker_left_is_taken_down_by_name_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    down: list[str] = []
    monkeypatch.setattr(notes, "take_down", lambda lab, politely: down.append(lab))
    for lab, run_dir in (("ours", tmp_path / "runs" / "cell"), ("theirs", tmp_path / "other")):
        (tmp_path / "s" / lab).mkdir(parents=True)
        (tmp_path / "s" / lab / "lab.json").write_text(json.dumps({"run_dir": str(run_dir)}))
    with subprocess.Popen(["sleep", "100"]) as left, subprocess.Popen(["sleep", "100"]) as other:
        note = Note("sitting", "a", BOOT, "ours", "cell", owned("cell", left.pid))
        (tmp_path / ENGINE).mkdir()
        write_note(tmp_path, "cell", note)
        kept = read_note(tmp_path, "cell")
        assert kept == note and kept is not None
        settle(kept, tmp_path)
        settle(Note("sitting", "a", BOOT, "theirs", "cell"), tmp_path)
        settle(Note("sitting", "a", "of another machine", "ours", "cell", owned("cell", other.pid)), tmp_path)
        assert down == ["ours"] and left.wait(10) == -9 and other.poll() is None
        other.kill()


def test_a_torn_note_is_none(tmp_path: Path) -> None:
    (tmp_path / ENGINE).mkdir()
    (tmp_path / ENGINE / "cell.json").write_text('{"sitting": ')
    assert read_note(tmp_path, "cell") is None
    write_note(tmp_path / "gone", "cell", Note("s", "a", BOOT, "lab", "run"))
