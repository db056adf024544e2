"""Runs workers as Slurm jobs: submits the jobs, reports why they wait, and submits lost jobs again."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.campaign.engines.engine import Engine, EngineError

if TYPE_CHECKING:
    from distributed import Client, Security

Observe = Callable[[dict[str, Any]], None]
MEMORY = "2 GB"  # memory of a job, unless jobqueue.yaml sets it
LOST_AFTER = "5s"  # a worker that is disconnected for this time has lost its job
LOOK_S = 5.0  # interval of queries to Slurm
ANSWER_S = 30  # longest wait for a command of Slurm
CLOSE_S = 5
TOLD_LINES = 5
ROLES = ("scheduler", "worker", "client")


@contextmanager
def jobs(engine: Engine, absent: str) -> Iterator[Client]:
    """Starts a scheduler on this machine and submits one Slurm job for each worker; yields a client.

    Scheduler and workers use TLS with new keys. Dask's jobqueue.yaml sets partition, memory and times of the
    jobs. `absent` is the sentence on missing packages. Raises EngineError if Slurm is absent or would refuse
    such a job.
    """
    try:
        from dask_jobqueue.slurm import SLURMCluster
    except ImportError:
        raise EngineError(f"--on {engine}: dask-jobqueue is not installed; {absent}") from None
    import dask
    from distributed import Client

    if shutil.which("sbatch") is None:
        raise EngineError(
            f"--on {engine}: sbatch is not on the PATH; run this on a machine that may submit to Slurm, "
            "or start workers yourself and use --on tls://HOST:PORT"
        )
    said: Mapping[str, Any] = dask.config.get("jobqueue.slurm", {})
    with _shared(said) as shared, dask.config.set({"distributed.deploy.lost-worker-timeout": LOST_AFTER}):
        cluster: Any = SLURMCluster(
            n_workers=0,
            cores=1,
            processes=1,
            memory=said.get("memory") or MEMORY,
            protocol="tls://",
            security=_keys(shared),
            log_directory=said.get("log-directory") or str(shared),
            scheduler_options={"dashboard_address": "127.0.0.1:0", **said.get("scheduler-options", {})},
            worker_extra_args=["--dashboard-address", "127.0.0.1:0", *said.get("worker-extra-args", [])],
        )
        try:
            _try(engine, cluster.job_script())
            cluster.scale(engine.workers)
            client = Client(cluster, set_as_default=False)
            try:
                yield client
            finally:
                with suppress(OSError, TimeoutError):
                    client.close(timeout=CLOSE_S)
        finally:
            with suppress(OSError, TimeoutError):
                cluster.close()


@contextmanager
def _shared(said: Mapping[str, Any]) -> Iterator[Path]:
    """Makes a temporary directory for the jobs' keys and logs, on a file system that all nodes of the cluster
    see.

    It lies below jobqueue.yaml's shared-temp-directory, by default the home directory.
    """
    base = Path(said.get("shared-temp-directory") or "~").expanduser()
    with tempfile.TemporaryDirectory(prefix=".vnet-slurm-", dir=base, ignore_cleanup_errors=True) as place:
        yield Path(place)


def _keys(place: Path) -> Security:
    """Makes new TLS keys in files of `place`, which the jobs read; returns Dask's settings for them."""
    from distributed import Security

    made, files = Security.temporary().get_tls_config_for_role("worker"), {}
    for name, content in made.items():
        if name in ("ca_file", "cert", "key"):
            file = place / f"{name}.pem"
            file.touch(0o600)
            file.write_text(content)
            files[name] = str(file)
    both = {f"tls_{role}_{name}": files[name] for role in ROLES for name in ("cert", "key")}
    return Security(require_encryption=True, tls_ca_file=files["ca_file"], **both)


def _try(engine: Engine, script: str) -> None:
    """Raises EngineError if Slurm would refuse the job script (`sbatch --test-only`); submits nothing."""
    argv = ["sbatch", "--test-only"]
    try:
        done = subprocess.run(
            argv, input=script, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"--on {engine}: Slurm has not answered sbatch within {ANSWER_S} s") from None
    if done.returncode != 0:
        raise EngineError(
            f"--on {engine}: Slurm does not take such a job: {done.stderr.strip()}; partition, memory and "
            "times are set in Dask's jobqueue.yaml (~/.config/dask/, docs/many-machines.md)"
        )


class Jobs:
    """The Slurm jobs behind a client's cluster; call `look` repeatedly to keep them running."""

    def __init__(
        self, engine: Engine, client: Client, observe: Observe, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine, self._observe, self._clock = engine, observe, clock
        self._cluster: Any = client.cluster
        self._next = clock() + LOOK_S
        self._came: set[str] = set()  # ids of jobs whose worker has connected
        self._told: dict[str, str] = {}  # job id -> the last sentence that was printed about it
        # id of a job that ended before its worker connected -> a sentence with its log
        self._ended: dict[str, str] = {}

    def look(self) -> None:
        """Every LOOK_S, submits lost jobs again and reports why jobs wait.

        Raises EngineError if all jobs ended before their worker connected, since further jobs would end, too.
        """
        known = self._greet()
        if self._clock() < self._next:
            return
        self._next = self._clock() + LOOK_S
        self._cluster.scale(self._engine.workers)  # keeps the workers that have connected
        waiting = known - self._came - self._ended.keys()
        if waiting and (states := _states(waiting)) is not None:
            for job in sorted(waiting):
                self._judge(job, states.get(job))
        if self._ended and self._ended.keys() == known:
            raise EngineError(f"--on {self._engine}: " + "\n".join(self._ended.values()))

    def _greet(self) -> set[str]:
        """Records the jobs whose worker has connected, before the worker can be lost again; returns the ids
        of all jobs. Reads the scheduler, which runs in this process, since the cluster object lists workers
        later.
        """
        present = {worker.name for worker in list(self._cluster.scheduler.workers.values())}
        known = {name: str(job.job_id) for name, job in self._cluster.workers.items() if job.job_id}
        self._came |= {job for name, job in known.items() if name in present}
        return set(known.values())

    def _judge(self, job: str, state: str | None) -> None:
        if state is None:
            self._ended[job] = f"job {job} of Slurm ended before its worker came; {self._log(job)}"
            self._say(job, self._ended[job])
        elif state.startswith("PENDING"):
            self._say(job, f"job {job} of Slurm waits: {state}")

    def _say(self, job: str, text: str) -> None:
        if self._told.get(job) != text:
            self._told[job] = text
            self._observe({"event": "worker", "text": text})

    def _log(self, job: str) -> str:
        """Returns a sentence with the last TOLD_LINES lines of the job's log, or with the reason why there
        are none.
        """
        about = next(one for one in self._cluster.workers.values() if str(one.job_id) == job)
        path = Path(about.log_directory) / f"{about.job_name}-{job}.err"
        try:
            lines = path.read_text(errors="replace").strip().splitlines()[-TOLD_LINES:]
        except OSError as error:
            return f"its log cannot be read ({error})"
        return "its log ends with\n" + "\n".join(lines) if lines else f"it wrote nothing to {path}"


def _states(of: set[str]) -> dict[str, str] | None:
    """Returns job id -> `STATE (reason)` of the jobs in Slurm's queue; None if Slurm does not answer."""
    argv = ["squeue", "--noheader", "--format", "%i|%T (%r)", "--jobs", ",".join(sorted(of))]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:  # for a single unknown job, squeue reports an invalid id
        return {} if "Invalid job id" in done.stderr else None
    rows = (line.strip().partition("|") for line in done.stdout.splitlines())
    return {job: state for job, _, state in rows}
