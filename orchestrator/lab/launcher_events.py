"""Handles the launcher's events that belong to no request: ended programs, sessions, node states, malformed
records.
"""

from __future__ import annotations

from orchestrator.lab.driver import Bounded
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab

SHOWN_LINES = 5
RECORDS_REMEDY = "correct the program (docs/accounting.md); such lines are left out, the others count"


class LauncherEvents:
    """Takes the launcher's events for `lab`, an attribute that is set before the launcher starts."""

    lab: Lab

    def take(self, message: Message) -> None:
        event = message.get("event")
        if event == "clients":
            self.lab.connected = (int(message["connected"]), int(message["total"]))
        elif event == "error":
            self.lab.loop.interrupt(LabError(str(message.get("text"))))
        elif event == "exited":
            self._exited(message)
        elif event == "warning":
            self._warned(message)
        elif event == "records":
            self._records(message)
        elif event == "node-state":
            self.lab.node_states[str(message["node"])] = str(message["state"])
            told = {key: message[key] for key in ("node", "state", "t_ns")}
            self.lab.events.emit("node-state", **told)
            if message.get("pid"):
                self.lab.pids[str(message["node"])] = int(message["pid"])
        elif event == "stopped":
            self.lab.stopped.stopped(_child(message))
        elif event == "continued":
            self.lab.stopped.continued(_child(message))
        elif event == "clocks":
            self.lab.manifest.clocks = message["clocks"]
        elif event == "hosts":
            self.lab.manifest.hosts = message["hosts"]
        elif event == "underlay":
            self.lab.manifest.underlay = message["underlay"]
        elif event == "starts":
            self.lab.manifest.starts = message["starts"]
        elif event == "restarted":
            self.lab.events.emit("restarted", node=message.get("node"), software=message.get("software"))

    def _warned(self, message: Message) -> None:
        known = {k: v for k, v in message.items() if k not in ("event", "node")}
        if "node" in message:
            known["text"] = f"nodes.{message['node']}: {known['text']}"
        self.lab.events.warn(Warning(**known))

    def _records(self, message: Message) -> None:
        """Warns of a program whose message records are malformed, in a single line or in the whole file."""
        place = f"nodes.{message['node']}.{message['software']}: {message['file']}"
        line = message.get("line")
        text = (
            f"{place}, line {line}: {message['text']!r}: {message['rule']}"
            if line
            else f"{place}: {message['rule']}"
        )
        self.lab.events.warn(Warning("records", text, RECORDS_REMEDY))

    def _exited(self, message: Message) -> None:
        node, name = str(message["node"]), str(message["software"])
        self.lab.events.emit("exited", **{k: v for k, v in message.items() if k != "event"})
        if name == "agent":
            self.lab.stopped.continued(_child(message))
        if name != "agent" and (node, name) not in self.lab.started:
            return  # the program never became ready; the answer to its start already reports this
        if message.get("expected") or (node, name) in self.lab.meant:
            return
        if message.get("status") == 0 and self._has_done_its_work(node, name):
            return
        log = " / ".join(str(line) for line in message.get("log", [])[-SHOWN_LINES:])
        status = "" if message.get("status") is None else f" with status {message['status']}"
        text = f"nodes.{node}.{name}: ended unexpectedly{status}{self._why(node)}: {log or 'no output'}"
        if self._fatal(node, name, message.get("status")):
            self.lab.loop.interrupt(LabError(text))
            return
        machine = node in self.lab.nodes and self.lab.node(node).vm is not None
        file = "console" if name == "agent" and machine else name
        self.lab.events.warn(Warning("exited", text, f"see raw/logs/{node}.{file}.log"))

    def _has_done_its_work(self, node: str, name: str) -> bool:
        """Returns whether a program's exit with status 0 is expected. That is so in the phases drain and
        collect, for a program with the role client or utility.
        """
        software = self.lab.started.get((node, name))
        sends = software is not None and software.role in ("client", "utility")
        return sends and self.lab.events.phase_name in ("drain", "collect")

    def _why(self, node: str) -> str:
        """Returns the limits that the node has reached, in brackets, as the likely reason; "" if it has
        reached none.
        """
        driver = self.lab.driver
        known = isinstance(driver, Bounded) and node in self.lab.nodes
        reached = driver.reached(self.lab.node(node)) if known and isinstance(driver, Bounded) else []
        return f" ({'; '.join(reached)})" if reached else ""

    def _fatal(self, node: str, name: str, status: int | None) -> bool:
        """Returns whether the end of a program ends the run; if the program is an agent, also marks its node
        as failed.

        If the topology has the policy `abort`, the run ends with an agent. It also ends with a program
        without restart that is a broker, or that crashed during the scenario. A program that ended with
        status 0 has finished; if it ended too early, the check at the end of the hold reports that.
        """
        abort = self.lab.plan.on_node_failure == "abort"
        if name == "agent":
            if not self.lab.node_states.get(node, "").startswith("failed"):
                self.lab.node_states[node] = f"failed: its agent ended{self._why(node)}"
            return abort
        software = self.lab.started.get((node, name))
        if software is None or software.process is None or software.process.restart != "never":
            return False
        return abort and (software.role == "broker" or (self.lab.in_scenario and status != 0))


def _child(message: Message) -> str:
    """Returns a name for the launcher's child that an event is about: a node's agent, or a helper process."""
    node = message["node"]
    return f"agent of node {node}" if node is not None else f"launcher's helper ({message['pid']})"
