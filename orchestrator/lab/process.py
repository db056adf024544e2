"""The lab process: claims the name, builds the lab, runs the scenario or serves, and always tears down."""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import signal
import stat
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from contract.codec import from_json, to_json
from contract.plan import PLAN_FORMAT, Plan
from orchestrator.lab import admission, apply, cgroup, cleanup, evidence, namespaces, nics, power
from orchestrator.lab.clock import MILLISECOND, SECOND, JumpingClock, MonotonicClock
from orchestrator.lab.driver import DriverContext
from orchestrator.lab.drivers import DRIVERS
from orchestrator.lab.errors import Interrupted, LabError
from orchestrator.lab.events import Events, Warning
from orchestrator.lab.jsonlines import Message, encode
from orchestrator.lab.lab import Lab
from orchestrator.lab.launcher_events import LauncherEvents
from orchestrator.lab.limits import this_clock_mhz
from orchestrator.lab.loop import Loop
from orchestrator.lab.manifest import VERSION_COMMANDS, Manifest, host_facts, kernel_facts, versions
from orchestrator.lab.replay import Replay
from orchestrator.lab.serve import Server
from orchestrator.lab.session import Session, start_software
from orchestrator.lab.state import State, replace

# time by which the lab process has loaded its modules: CLOCK_MONOTONIC then shows about 1 ms
BEGIN_NS = 100 * MILLISECOND
TIMER_ABSTIME = 1  # include/uapi/linux/time.h
RNDRESEEDCRNG = 0x5207  # include/uapi/linux/random.h
STATUS = {"complete": 0, "failed": 1, "interrupted": 130}


def main(argv: list[str] | None = None) -> int:
    """Runs the lab process; returns its exit status: 0 if the lab is complete, 1 if it failed, 130 if it was
    interrupted.
    """
    options = arguments().parse_args(argv)
    if kernel_facts().get("time") == "virtual":
        begin_anew()
    events = Events()
    events.listen(print_line)
    try:
        lab = prepare(options, events)
    except (LabError, OSError) as error:
        events.emit("error", text=str(error))
        events.emit("end", status=1)
        return 1
    status = STATUS[run(lab, options)]
    events.emit("end", status=status)
    return status


def begin_anew() -> None:
    """Waits until CLOCK_MONOTONIC shows a multiple of BEGIN_NS, then reseeds the kernel's random generator.

    In virtual time a run then depends neither on how often Python read the clock nor on how many random
    bytes it drew while it loaded the lab's modules. Raises OSError.
    """
    due_ns = (time.monotonic_ns() // BEGIN_NS + 1) * BEGIN_NS
    due = (ctypes.c_long * 2)(due_ns // SECOND, due_ns % SECOND)  # struct timespec
    if error := ctypes.CDLL(None).clock_nanosleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, due, None):
        raise OSError(error, os.strerror(error), "clock_nanosleep")
    with Path("/dev/urandom").open("wb") as generator:
        fcntl.ioctl(generator, RNDRESEEDCRNG)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.lab", description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument(
        "--state-dir", type=Path, required=True, help="the lab's own, with its name at the end"
    )
    parser.add_argument("--agent", type=Path, required=True)
    parser.add_argument("--scenario", action="store_true", help="run the scenario, then tear down")
    parser.add_argument("--keep", action="store_true", help="with --scenario: serve afterwards")
    parser.add_argument("--driver", choices=sorted(DRIVERS), default="light")
    parser.add_argument("--snapshots", type=Path, help="directory of booted machines, for campaigns")
    parser.add_argument("--control", default="unix", help="unix, or fd:N for an inherited descriptor")
    return parser


def prepare(options: argparse.Namespace, events: Events) -> Lab:
    """Claims the lab's name, writes plan and manifest and opens the driver's object; creates no node or
    network yet. Releases the name and raises if that fails, or if a crash left parts of a lab of this name.
    """
    plan = read_plan(options.plan)
    kernel = kernel_facts()
    run_dir = options.run_dir.absolute()
    state = State(options.state_dir.absolute(), plan.lab, str(kernel.get("kind")), run_dir)
    try:
        return _prepare(options, events, plan, state)
    except BaseException:
        state.release()
        raise


def _prepare(options: argparse.Namespace, events: Events, plan: Plan, state: State) -> Lab:
    """Prepares run directory, manifest, loop and driver of a lab whose name is claimed; returns the lab."""
    run_dir = options.run_dir.absolute()
    if left := left_behind(plan.lab, options.driver):
        raise LabError(
            f"lab {plan.lab}: a crash left {left[0]} and {len(left) - 1} more; run `vnet down {plan.lab}`"
        )
    for directory in ("raw/logs", "pcap"):
        (run_dir / directory).mkdir(parents=True, exist_ok=True)
    (run_dir / "raw" / "events.jsonl").touch()  # an empty file states that no event was applied
    if options.plan.absolute() != run_dir / "plan.json":
        replace(run_dir / "plan.json", to_json(plan, indent=1))
    host = host_facts(Path("/proc/cpuinfo").read_text(), Path("/proc/meminfo").read_text())
    kernel = kernel_facts()
    manifest = Manifest(plan, run_dir, kernel, host, options.driver)
    manifest.write(events)
    loop = Loop(JumpingClock() if options.driver == "fake" else MonotonicClock())
    launcher_events = LauncherEvents()
    time = kernel.get("time", "real")
    context = DriverContext(
        plan, loop, state, run_dir, options.agent, host.get("mhz") or this_clock_mhz(), launcher_events.take,
        lambda why: loop.interrupt(LabError(why)), options.snapshots,
        virtual=time == "virtual",
    )  # fmt: skip
    driver = DRIVERS[options.driver](context)
    lab = Lab(plan, run_dir, loop, events, state, manifest, driver, time)
    launcher_events.lab = lab
    return lab


def run(lab: Lab, options: argparse.Namespace) -> str:
    """Runs the lab from build to teardown; returns its end state: complete, failed or interrupted. SIGINT and
    SIGTERM interrupt it.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: lab.loop.interrupt(Interrupted(signal.Signals(n).name)))
    watch_lifeline(lab)
    server = Server(lab)
    outcome, error = guarded(lab, lambda: live(lab, server, options))
    lab.loop.shield()
    lab.manifest.nodes = dict(lab.node_states)
    write_end(lab, outcome, error)
    lab.events.phase("teardown", 0, len(lab.nodes), "taking the lab away")
    server.close()
    tear_down(lab)
    lab.events.phase("teardown", len(lab.nodes), len(lab.nodes), "gone")
    write_end(lab, outcome, error)
    return outcome


def watch_lifeline(lab: Lab) -> None:
    """Interrupts the lab when the command that started it closes its end of standard input; does nothing if
    standard input is not a pipe.
    """
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return

    def readable() -> None:
        if not os.read(0, 512):
            lab.loop.unwatch(0)
            lab.loop.interrupt(Interrupted("the command that started it has ended"))

    lab.loop.watch(0, readable)


def said(error: LabError | OSError, run_dir: Path) -> str:
    """Returns the text of an error, with the run directory if it is an error of a write that names no
    file.
    """
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        return f"{run_dir}: {error.strerror}"
    return str(error)


def guarded(lab: Lab, work: Callable[[], str]) -> tuple[str, str | None]:
    """Runs `work` and returns (end state, error text or None). Catches and reports every Exception, so that
    the lab is torn down and the manifest gets the error.
    """
    try:
        return work(), None
    except Interrupted as why:
        return "interrupted", f"interrupted ({why})"
    except (LabError, OSError) as error:
        text = said(error, lab.run_dir)
    except Exception as error:  # a defect of vNET: the traceback is printed, and the lab is still torn down
        traceback.print_exc()
        text = f"internal error: {type(error).__name__}: {error}; raw/lab.log has the traceback"
    lab.events.emit("error", text=text)
    return "failed", text


def live(lab: Lab, server: Server, options: argparse.Namespace) -> str:
    """Opens the driver, builds the lab, then runs the scenario, serves requests, or both; returns the end
    state `complete`. Raises every failure, and Interrupted if the interruption comes before the lab serves.
    """
    if options.control.startswith("fd:"):
        server.serve_descriptor(int(options.control[3:]))
    else:
        server.listen(lab.state.directory / "control.sock")
    evidence.room(lab.run_dir)
    about = lab.driver.open()
    if lab.driver.name != "fake":
        lab.loop.clock.offset_ns = int(about["clock_offset_ns"])
    needed = {program.name: list(program.version) for program in lab.plan.programs}
    programs = VERSION_COMMANDS | needed if lab.driver.name != "fake" else {}
    lab.manifest.versions = versions(about.get("version"), programs)
    for note in lab.plan.notes:
        lab.events.warn(Warning("plan", f"{note.place}: {note.text}", note.remedy, suspect=False))
    apply.build(lab)
    if any(node.outside for node in lab.plan.nodes):
        from orchestrator.lab import outside  # imported here, because every import makes the start slower

        outside.begin(lab)
    lab.ready = True
    lab.events.emit("ready", lab=lab.plan.lab, nodes=len(lab.nodes), run_dir=str(lab.run_dir))
    if options.scenario:
        run_session(lab)
        if not options.keep:
            return "complete"
        write_end(lab, "complete", None)
    else:
        start_software(lab)
        Replay(lab, lab.loop.clock.now_ns())
    lab.serving = True
    lab.events.phase("hold", 0, 0, "serving until `vnet down`", serving=True)
    try:
        lab.loop.serve()
    except Interrupted:
        return "complete"
    raise AssertionError("unreachable: serve ends by an exception")


def run_session(lab: Lab) -> None:
    """Runs the scenario and collects the measurements in any case; if it did not fail, judges which clients
    were admitted.
    """
    session = Session(lab)
    lab.in_scenario = True
    try:
        session.run()
    finally:
        lab.in_scenario = False
        lab.loop.suspend_interruption(session.collect)
    admission.insist(lab, session.all_connected)


def tear_down(lab: Lab) -> None:
    """Ends captures and programs and removes the lab through the driver, then by name everything that the
    driver left; releases the state directory. An error becomes a warning.
    """
    actions: list[Callable[[], None]] = [
        *lab.on_end,
        lambda: end_captures(lab),
        lambda: power.stop_all(lab),
        lambda: nics.give_back(lab, "namespace"),
        lambda: lab.driver.destroy(None),
        lab.driver.close,
        lambda: nics.give_back(lab, "vm"),
    ]
    for action in actions:
        try:
            action()
        except (LabError, OSError) as error:
            lab.events.warn(Warning("teardown", str(error), "what it left is removed by name", suspect=False))
    if left_behind(lab.plan.lab, lab.driver.name):
        removed = cleanup.destroy(lab.plan.lab, lab.state.directory.parent, keep_state=True)
        for text in removed.errors:
            lab.events.warn(Warning("teardown", text, f"run `vnet down {lab.plan.lab}`", suspect=False))
    try:
        lab.state.release()
    except OSError as error:
        text = f"{error.filename}: stays, since it cannot be removed ({error.strerror})"
        lab.events.warn(Warning("teardown", text, f"run `vnet down {lab.plan.lab}`", suspect=False))


def end_captures(lab: Lab) -> None:
    """Ends and removes the captures that the lab still has, including those that clients started. Raises
    LabError with the errors of all that did not end properly.
    """
    errors = []
    for running in [*lab.captures.values()]:
        try:
            running.process.stop()
        except (LabError, OSError) as error:
            errors.append(str(error))
    lab.captures.clear()
    if errors:
        raise LabError("; ".join(errors))


def left_behind(lab: str, driver: str) -> list[str]:
    """Returns the namespaces and control groups with this lab's name that exist, and for the driver `vm` also
    the taps lent to libvirt. Empty for the drivers `fake` and `hosts`, which make none on this machine.
    """
    if driver in ("fake", "hosts"):
        return []
    groups = cgroup.lab_groups(cgroup.this_machine(), lab)
    return [*map(str, [*namespaces.of(lab), *groups]), *(_lent_taps(lab) if driver == "vm" else ())]


def _lent_taps(lab: str) -> list[str]:
    """Returns the lab's taps that libvirt has."""
    from orchestrator.lab.vm import handover  # imported here, because labs of light nodes only do not need it

    return [f"tap {entry['ifname']}" for entry in handover.marked(lab)]


def write_end(lab: Lab, state: str, error: str | None) -> None:
    """Writes the end state to the manifest; reports an OSError and continues."""
    try:
        lab.manifest.finish(lab.events, state, error)
    except OSError as failure:
        lab.events.emit("error", text=f"manifest.json: {failure}; the run is kept without its last state")


def read_plan(path: Path) -> Plan:
    """Reads a plan; raises LabError if the file is not a plan, or if its format is not the one of this
    program.
    """
    try:
        plan = from_json(Plan, path.read_text())
    except (TypeError, KeyError, ValueError) as error:
        raise LabError(
            f"{path}: not a plan of format {PLAN_FORMAT}: {error}; write it with `vnet plan`"
        ) from error
    if plan.format != PLAN_FORMAT:
        raise LabError(f"{path}: plan format {plan.format}: this program reads {PLAN_FORMAT}; plan it again")
    return plan


def print_line(message: Message) -> None:
    """Prints one JSON line on standard output; does nothing if the reader has closed it."""
    try:
        sys.stdout.buffer.write(encode(message))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        return
    except OSError as error:  # the error of a write does not name the file
        error.filename = error.filename or "raw/progress.jsonl (the lab's standard output)"
        raise
