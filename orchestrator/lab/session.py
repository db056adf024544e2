"""Runs a scenario from software start to drain: programs, captures, samples, workload, timeline, traces,
trials, progress and end states; then collects counts and evidence.
"""

from __future__ import annotations

from collections.abc import Callable

from capture.tcpdump import SETTLE_NS
from contract.plan import Impairment
from orchestrator.lab import (
    admission,
    announcements,
    at_events,
    disks,
    evidence,
    heartbeat,
    kernel_counts,
    netem_seeds,
    network_watch,
    operations,
    power,
    processes,
    queue_watch,
    sampling,
    workload,
)
from orchestrator.lab.capture_pipe import file_name
from orchestrator.lab.captures import end_at_limit
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.driver import Bounded
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.expected import requested_loss, short_queue
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab, Running
from orchestrator.lab.probes import BOTH, directions
from orchestrator.lab.replay import Replay
from orchestrator.lab.timeline import Timeline
from orchestrator.lab.trials.run import Trials, streams

ROLES = ("router", "broker", "server", "utility", "client")
LEAD_NS = 200 * MILLISECOND  # time from `go` to t0, in which the request reaches every node
COUNTS = operations.Counts()
GRID_NS = 10 * SECOND
DRAIN_EVERY_NS = 100 * MILLISECOND
# Messages without acknowledgement count as settled when they are sent, and may still be on the links.
QUIET_NS = 500 * MILLISECOND
# assumed number of link directions on a path; a larger number only makes the drain longer
LINKS_ON_A_PATH = 4
# The launcher's names of a program's states, in words for the user.
ENDS = {
    "starting": "it was still starting", "ready": "it was still running", "exited": "it had ended",
    "failed": "it had failed", "absent": "it was not there",
}  # fmt: skip


class Session:
    """One scenario of one lab. `run` may end early by an exception; `collect` then saves the measurements."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._most_connected = 0
        self._t0_ns = 0
        self._stacks: kernel_counts.Counted = {}
        self._queues = at_events.ReadBacks(lab)
        self._announced: announcements.Places = {}
        self._network: announcements.Places = {}
        self._seeds = netem_seeds.NetemSeeds(lab)
        self._hold_ns = lab.plan.hold_ns
        self._trials = bool(streams(lab))  # trials print their own progress
        self._workload = workload.items(lab.plan)
        self._expected = workload.connecting(self._workload) - len(admission.unwelcome(lab.plan))
        self._wall = evidence.WallClock(lab.loop.clock.offset_ns)
        self._ticks = lab.loop.every(SECOND, self._tick)
        self._heartbeat = heartbeat.beside(lab)

    def run(self) -> None:
        """Runs the scenario on the finished network, from software to drain; raises LabError if a
        step fails.
        """
        lab = self._lab
        start_software(lab)
        self._stacks = kernel_counts.read_stacks(lab.driver)
        lab.before_change = self._queues.look
        self._seeds.sow(lab.links.values())
        lab.after_change = self._seeds.changed
        self._announced = queue_watch.begin(lab)
        self._network = announcements.open_in(lab)
        self._await_fixed_start()
        self._measure()
        self._go()
        plan = lab.plan
        self._start_at("ramp")
        self._timeline.run_until(self._t0_ns + plan.ramp_ns)
        lab.events.phase_name = "hold"
        self._start_at("hold")
        self._carry_out_trials()
        self._timeline.run_until(self._t0_ns + plan.ramp_ns + self._hold_ns)
        self._check_end_states()
        self._drain()

    @property
    def _ever_connected(self) -> int:
        """The largest number of clients that were connected at once."""
        return max(self._most_connected, self._lab.connected[0])

    @property
    def all_connected(self) -> bool:
        """Whether all sessions that are expected to connect were connected at once."""
        return self._ever_connected >= self._expected

    def collect(self) -> None:
        """Stops the load and the captures, and collects counts and evidence. Most steps that fail give a
        warning, and the others continue. If the load has not begun, its steps are left out.
        """
        lab = self._lab
        self._ticks.cancelled = True
        lab.events.phase("collect", 0, 2, "sessions and captures")
        ended = lab.loop.clock.now_ns()
        if self._t0_ns and self._heartbeat is not None:
            self._heartbeat.stop()
        if self._t0_ns:
            lab.manifest.set_phases(lab.plan, self._t0_ns, ended, self._hold_ns)
            lab.manifest.deadlines_missed = self._timeline.missed
            self._replay.end()
            self._attempt("message records", self._finish)
            self._attempt("counters of nodes' stacks", self._write_stacks)
        if lab.captures:
            lab.loop.sleep_until(lab.loop.clock.now_ns() + SETTLE_NS)
        for name in list(lab.captures):
            self._attempt(f"capture {name}", lambda n=name: self._stop_capture(n))  # type: ignore[misc]
        self._attempt("bounds", self._tell_bounds)
        self._attempt("queues watched", lambda: queue_watch.end(self._lab, self._announced))
        self._attempt("network watched", lambda: network_watch.end(self._lab, self._network))
        self._attempt("queues read back", self._queues.end)
        if self._t0_ns:
            self._attempt("CPU of processes", lambda: processes.write(lab))
            self._attempt("peaks of memory", lambda: kernel_counts.write_peaks(lab))
            self._attempt("disk I/O", lambda: disks.write(lab))
        # The last check finds a step of the clock after the last periodic check.
        self._look_at_the_clock()
        self._judge()
        lab.events.phase("collect", 2, 2, "sessions and captures")

    def _finish(self) -> None:
        """Ends the load and records the roles' scheduled and received messages in the manifest."""
        totals = self._lab.driver.call(operations.Finish())["totals"]
        self._lab.manifest.totals = {
            "scheduled": totals["scheduled"], "received": totals["received"],
        }  # fmt: skip

    def _look_at_the_clock(self) -> None:
        """Records steps of the machine's time of day; does nothing in virtual time."""
        if self._lab.time == "real":
            self._wall.look()

    def _tell_bounds(self) -> None:
        """Warns of nodes that reached a limit of memory or processes, for drivers with limits."""
        driver = self._lab.driver
        for node in self._lab.nodes.values() if isinstance(driver, Bounded) else ():
            for reached in driver.reached(node) if isinstance(driver, Bounded) else ():
                remedy = "correct the program, or see `memory_limit`, `process_limit` and docs/security.md"
                self._lab.events.warn(Warning("bound", f"nodes.{node.name}: {reached}", remedy))

    def _await_fixed_start(self) -> None:
        """Waits in virtual time for the next multiple of 10 s, so that the set-up cannot shift the scenario;
        does nothing in real time.
        """
        lab = self._lab
        if lab.time == "virtual":
            ready = lab.loop.clock.now_ns() + LEAD_NS
            lab.loop.sleep_until((ready // GRID_NS + 1) * GRID_NS)

    def _measure(self) -> None:
        """Starts the plan's captures, the sampling, and the message records."""
        lab = self._lab
        points = lab.plan.captures
        for done, point in enumerate(points):
            lab.events.phase("software", done, len(points), f"capture {point.name}")
            file = lab.run_dir / "pcap" / file_name(point)
            lab.captures[point.name] = Running(point, lab.driver.capture(point, file), file)
            if point.limit_bytes:
                end_at_limit(lab, point, self._stop_capture)
        sampling.start(lab)
        lab.driver.call(operations.Messages(str(lab.run_dir / "raw" / "messages.csv")))

    def _go(self) -> None:
        """Arms and starts the roles with t0 in 200 ms, and traces, heartbeat and watches; waits until t0."""
        lab = self._lab
        lab.driver.call(operations.Workload(self._workload))
        t0_ns = lab.loop.clock.now_ns() + LEAD_NS
        self._timeline = Timeline(lab, t0_ns)
        lab.manifest.set_phases(lab.plan, t0_ns)
        lab.manifest.write(lab.events)
        self._replay = Replay(lab, t0_ns)
        self._t0_ns = t0_ns  # from here on, `collect` waits for the sessions of the scenario to end
        if self._heartbeat is not None:
            self._heartbeat.start()
        lab.driver.call(operations.Go(self._t0_ns))
        network_watch.listen(lab, self._network)
        lab.events.phase("ramp", 0, lab.plan.ramp_ns / SECOND, "sessions begin")
        lab.loop.sleep_until(self._t0_ns)

    def _start_at(self, moment: str) -> None:
        """Starts the programs of this moment; failures follow the topology's policy."""
        items = [
            (n, s) for n, s in self._lab.processes(self._lab.nodes) if s.process and s.process.start == moment
        ]
        power.settle(self._lab, power.start(self._lab, items))

    def _carry_out_trials(self) -> None:
        """Carries out all trials of the plan, if any; the hold lasts at least until their end."""
        lab = self._lab
        if not self._trials:
            return
        try:
            Trials(lab).run()
        finally:
            now = lab.loop.clock.now_ns()
            self._hold_ns = max(self._hold_ns, now - self._t0_ns - lab.plan.ramp_ns)
            lab.manifest.set_phases(lab.plan, self._t0_ns, hold_ns=self._hold_ns)

    def _drain(self) -> None:
        """Carries out the remaining events, then waits until nothing is pending and no message has arrived
        for a while. Waits at most for the plan's drain time.
        """
        lab = self._lab
        begin = lab.loop.clock.now_ns()
        last = begin + lab.plan.drain_ns
        lab.events.phase("drain", 0, lab.plan.drain_ns / SECOND, "messages in flight")
        self._timeline.run_until(min(last, max(begin, self._timeline.last_ns + 1)))
        quiet_since, seen, again = begin, -1, self._timeline.sent_again_ns
        while (now := lab.loop.clock.now_ns()) < last:
            open_ones = lab.driver.call(operations.Pending())
            received = open_ones["totals"]["received"]
            lab.manifest.foreign = open_ones["totals"]["foreign"]
            if open_ones["pending"] or received != seen or now < again:
                quiet_since, seen = now, received
            elif now - quiet_since >= QUIET_NS + self._longest_delay_ns():
                break
            lab.loop.sleep_until(min(last, now + DRAIN_EVERY_NS))

    def _longest_delay_ns(self) -> int:
        """Returns the sum (ns) of the four longest delays of directions, with jitter, slots and slow
        transmission. A message that is in flight for longer waits in a queue, and every queue sends a frame
        within that time.
        """
        delays = sorted(
            i.delay_ns + 4 * i.jitter_ns + (i.slot.max_ns if i.slot is not None else 0) + _frame_ns(i)
            for i in self._lab.impairments.values()
        )
        return sum(delays[-LINKS_ON_A_PATH:])

    def _tick(self) -> None:
        lab = self._lab
        self._most_connected = max(self._most_connected, lab.connected[0])
        evidence_of_room(lab)
        self._look_at_the_clock()
        if not self._trials and self._t0_ns and lab.events.phase_name in ("ramp", "hold", "drain"):
            lab.driver.submit(COUNTS, self._progress)

    def _progress(self, message: Message) -> None:
        lab = self._lab
        if not message.get("ok"):
            return  # the launcher's end is reported elsewhere
        answer = COUNTS.read(message)
        connected, total = answer["connected"], self._expected
        self._most_connected = max(self._most_connected, connected)
        messages = answer["totals"]
        bounds = lab.manifest.phases.get(lab.events.phase_name)
        if bounds is None:
            return
        passed = (lab.loop.clock.now_ns() - bounds[0]) / SECOND
        length = (bounds[1] - bounds[0]) / SECOND
        text = (
            f"{connected} of {total} sessions, {messages['settled']} settled, {messages['received']} received"
        )
        lab.events.phase(
            lab.events.phase_name, round(min(passed, length), 1), length, text,
            sessions={"connected": connected, "total": total}, messages=messages,
        )  # fmt: skip

    def _check_end_states(self) -> None:
        """Warns of programs whose state at the end of the hold differs from the topology's `at_end`. Leaves
        out programs whose exit is expected, and programs of nodes that failed or do not answer.
        """
        lab = self._lab
        states = lab.driver.call(operations.Software())["nodes"]
        for node, software in lab.processes(lab.nodes):
            if software.process is None or (node, software.name) in lab.meant:
                continue
            known = states.get(node, {}).get(software.name)
            gone = known is None or known["state"] == "unknown"
            if gone and lab.node_states.get(node, "").startswith(("failed", "silent", "paused")):
                continue  # another warning reports a node that does not exist or does not answer
            state, status = (known["state"], known["status"]) if known else ("absent", None)
            fine = ("starting", "ready") if software.process.expect == "running" else ("exited",)
            if state not in fine:
                lab.node_states[node] = f"{software.name} {state}"
                lab.events.warn(Warning(
                    "end-state",
                    f"nodes.{node}.{software.name}: {end_state(software.process.expect, state, status)}",
                    f"see raw/logs/{node}.{software.name}.log",
                ))  # fmt: skip

    def _write_stacks(self) -> None:
        after = kernel_counts.read_stacks(self._lab.driver)
        kernel_counts.write_stacks(self._lab.run_dir / "raw" / "stacks.csv", self._stacks, after)

    def _stop_capture(self, name: str) -> None:
        """Stops a capture and records its counts in the manifest; those of a live capture are not
        recorded.
        """
        running = self._lab.captures.pop(name)
        counts = running.process.stop()
        if not running.live:
            self._lab.manifest.captures[name] = dict(counts)

    def _judge(self) -> None:
        """Warns of overload and disturbances that only the running lab detects: lateness, clock steps, drops
        in queues although no loss is expected, missing sessions.
        """
        lab = self._lab
        raw = lab.run_dir / "raw"
        lossy = {
            (name, way) for name, side, d in directions(list(lab.links.values())) for way in (side, BOTH)
            if requested_loss(d.impairment) or name in lab.down or short_queue(d.impairment)
        }  # fmt: skip
        lossy |= {
            (n, w) for n, side, d in directions(list(lab.links.values())) if d.trace for w in (side, BOTH)
        }
        lossy |= {(t, s) for e in lab.plan.events for t in e.targets for s in ("forward", "reverse", BOTH)}
        found = []
        if lab.time == "real":  # the modelled core of virtual time is busy only with system calls
            found += evidence.lateness(self._ticks.late_ns)
            found += [] if lab.loop.clock.jumps else self._wall.warnings()
        found += evidence.queue_drops(raw / "links.csv", lossy)
        if self._trials:  # trials use all capacity and overflow queues; each trial records its own outcome
            found = [w for w in found if w.code != "queue-drops"]
        if self._t0_ns and lab.loop.interrupted is None:
            found += evidence.sessions(self._ever_connected, self._expected)
        for warning in found:
            lab.events.warn(warning)

    def _attempt(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except (LabError, OSError) as error:
            self._lab.events.warn(Warning("collect", f"{what}: {error}", "what was written before is kept"))


def _frame_ns(i: Impairment) -> int:
    """Returns the longest frame's transmission time (ns); 0 if it is below the drain's interval, 100 ms."""
    frame_ns = 8 * SECOND * i.frame_bytes // i.rate_bps if i.rate_bps else 0
    return frame_ns if frame_ns >= DRAIN_EVERY_NS else 0


def end_state(expected: str, state: str, status: int | None) -> str:
    """Returns a text with expectation and state, such as `still running expected at the end of the hold; it
    had failed (status 3)`.
    """
    wanted = "still running" if expected == "running" else "ended"
    code = "" if status is None else f" (status {status})"
    ended = "exited" if state == "failed" and status == 0 else state
    return f"{wanted} expected at the end of the hold; {ENDS.get(ended, f'it was {ended}')}{code}"


def start_software(lab: Lab) -> None:
    """Starts the programs of the set-up, role by role, so that a broker is ready before a client starts;
    failures follow the topology's policy. Then reports those VM nodes as ready that did not fail.
    """
    items = [(n, s) for n, s in lab.processes(lab.nodes) if s.process and s.process.start == "setup"]
    done = 0
    for role in ROLES:
        of_role = [i for i in items if i[1].role == role]
        if of_role:
            lab.events.phase("software", done, len(items), f"{len(of_role)} x {role}")
            power.settle(lab, power.start(lab, of_role))
            done += len(of_role)
    lab.events.phase("software", done, len(items), "all ready")
    for name in dict.fromkeys(node for node, _ in items if lab.nodes[node].vm is not None):
        if not lab.node_states[name].startswith("failed"):
            now = lab.loop.clock.now_ns()
            lab.events.emit("node-state", node=name, state="software ready", t_ns=now)


def evidence_of_room(lab: Lab) -> None:
    """Interrupts the lab if the disk of the run directory has too little free space."""
    try:
        evidence.room(lab.run_dir)
    except LabError as error:
        lab.loop.interrupt(error)
