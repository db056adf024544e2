"""Carries out the timeline's events at their planned times and records each in raw/events.jsonl."""

from __future__ import annotations

import base64
import signal
from typing import Any

from contract.events import Applied
from contract.plan import Event, Plan
from orchestrator.lab import at_events, change, links, power
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.operations import Exec

LATE_NS = 100 * MILLISECOND
# queues are read back this long before an event, so that reading does not delay it
AHEAD_NS = 300 * MILLISECOND
KILLED = 128 + signal.SIGKILL  # exit status of a command that was killed because its node or the lab ended
BY = 80  # largest number of characters kept of a client's name


def planned_ns(plan: Plan, event: Event, t0_ns: int) -> int:
    """Returns the time at which an event is due, in Unix ns on the lab's clock."""
    begin = {"ramp": 0, "hold": plan.ramp_ns, "drain": plan.ramp_ns + plan.hold_ns}[event.phase]
    return t0_ns + begin + event.at_ns


class Timeline:
    """The events that are still to be carried out, in order. missed: label and lateness (ns) of the events
    that were more than 100 ms late.
    """

    def __init__(self, lab: Lab, t0_ns: int) -> None:
        self._lab = lab
        self._events = sorted(lab.plan.events, key=lambda e: planned_ns(lab.plan, e, t0_ns))
        self._t0_ns = t0_ns
        self.missed: list[dict[str, Any]] = []

    def run_until(self, end_ns: int) -> None:
        """Carries out the events that are due before `end_ns`, then waits until that time. Before an event
        that changes queues, reads the queues back, 300 ms earlier. Raises LabError if an event fails.
        """
        while self._events and (due := planned_ns(self._lab.plan, self._events[0], self._t0_ns)) < end_ns:
            event = self._events.pop(0)
            if at_events.touches(event.action):
                self._lab.loop.sleep_until(due - AHEAD_NS)
                self._lab.before_change(event.action, event.targets, event.label or event.action)
            self._lab.loop.sleep_until(due)
            self._apply(event, due)
        self._lab.loop.sleep_until(end_ns)

    @property
    def last_ns(self) -> int:
        """The time at which the last event is due, in Unix ns; 0 if no event is left."""
        return planned_ns(self._lab.plan, self._events[-1], self._t0_ns) if self._events else 0

    @property
    def sent_again_ns(self) -> int:
        """The latest time (Unix ns) at which TCP still retransmits after a planned link outage; 0 without an
        outage.

        TCP doubles each wait (RFC 6298), so the last wait ends at most the length of the outage plus one
        second after the outage.
        """
        found, down = 0, dict[str, int]()
        for event in sorted(self._lab.plan.events, key=lambda e: planned_ns(self._lab.plan, e, self._t0_ns)):
            at_ns = planned_ns(self._lab.plan, event, self._t0_ns)
            for link in event.targets if event.action in ("link-down", "link-up") else ():
                if event.action == "link-down":
                    down.setdefault(link, at_ns)
                elif link in down:
                    found = max(found, 2 * at_ns - down.pop(link) + SECOND)
        return found

    def _apply(self, event: Event, due_ns: int) -> None:
        """Carries out an event and records it in raw/events.jsonl, even if it fails; raises LabError if it
        failed.
        """
        began = self._lab.loop.clock.now_ns()
        error: str | None = None
        try:
            perform(self._lab, event)
        except LabError as failure:
            error = str(failure)
        applied = Applied(
            began, due_ns, event.phase, event.action, list(event.targets), event.args, error is None, error,
            event.label,
        )  # fmt: skip
        self._lab.events.emit("event", **applied.write(self._lab.run_dir))
        if began - due_ns > LATE_NS:
            self.missed.append({"event": event.label or event.action, "late_ns": began - due_ns})
        if error is not None:
            raise LabError(f"timeline: {event.label or event.action}: {error}")


def perform(lab: Lab, event: Event) -> None:
    """Carries out one event on its targets; raises LabError if it cannot be applied."""
    if event.action == "impair":
        for target in event.targets:
            links.impair_from(lab, target, event.args)
    elif event.action in ("link-down", "link-up"):
        links.set_up(lab, event.targets, event.action == "link-up")
    elif event.action == "limit":
        change.settings(lab, event.targets, event.args)
    elif event.action in ("freeze", "thaw"):
        power.freeze(lab, event.targets, event.args.get("software"), event.action == "freeze")
    elif event.action in ("disk-full", "disk-free"):
        power.disk(lab, event.targets, event.action == "disk-full")
    elif event.action == "schedule":
        for target in event.targets:
            power.schedule(lab, target, event.args["seed"], event.args["most_ns"])
    elif event.action == "clock":
        for target in event.targets:
            power.clock(lab, target, event.args["offset_ns"])
    elif event.action == "run":
        for target in event.targets:
            _run(lab, target, event)
    else:
        power.act(lab, event.action, event.targets, event.args.get("software"))


def _run(lab: Lab, node: str, event: Event) -> None:
    """Starts a command without waiting; its end is reported as a separate event `ran`, with a warning if it
    failed for any reason other than SIGKILL. Raises LabError if the node is unknown.
    """
    argv: list[str] = event.args["argv"]
    errors: list[bytes] = []

    def said(message: dict[str, Any]) -> None:
        if message.get("stream") == "stderr":
            errors.append(base64.b64decode(message["data"]))

    def ended(answer: dict[str, Any]) -> None:
        status, error = answer.get("status"), answer.get("error")
        ok = bool(answer.get("ok")) and status == 0
        lab.events.emit("ran", node=node, argv=argv, ok=ok, status=status, error=error)
        if not ok and status != KILLED:
            last = b"".join(errors).decode(errors="replace").strip().rpartition("\n")[2]
            _warn_of_failure(lab, node, event.label, str(error or f"status {status}"), last)

    lab.entered.add(lab.node(node).name)
    lab.driver.submit(Exec(node, argv, {}, None), ended, said)


def _warn_of_failure(lab: Lab, node: str, label: str, end: str, last: str) -> None:
    """Warns of a failed command, only once per event, since the command may run on thousands of nodes."""
    begin = f"timeline: {label}: failed"
    if not any(warning.text.startswith(begin) for warning in lab.events.warnings):
        text = f"{begin} on {node}, if not on more: {end}{f' ({last})' if last else ''}"
        remedy = "correct the command; where it may fail, end it with `|| true`"
        lab.events.warn(Warning("command-failed", text, remedy))


def record_live(lab: Lab, action: str, targets: list[str], args: dict[str, Any], by: Any = None) -> None:
    """Records a client's change among the planned events, with a warning if a scenario has begun. by: the
    client's name, of which 80 characters are kept.
    """
    now = lab.loop.clock.now_ns()
    said = f" (by {str(by)[:BY]})" if by else ""
    label = f"live: {action} {', '.join(targets)}{said}"
    applied = Applied(now, now, lab.events.phase_name, action, targets, args, label=label)
    lab.events.emit("event", **applied.write(lab.run_dir))
    if lab.manifest.t0_ns is not None:
        text = f"{label}: changed by hand while the scenario ran"
        remedy = "put it into the timeline of the file: then it repeats"
        lab.events.warn(Warning("by-hand", text, remedy, suspect=False))
