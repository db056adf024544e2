"""Starts, stops, kills and restarts programs and whole nodes; sets wrong clocks of nodes and perturbs the
order in which their programs run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from contract.codec import plain
from contract.plan import Software
from orchestrator.lab import operations
from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab
from orchestrator.lab.links import all_ends, put_back, set_devices

STOP_NS = 10 * SECOND
MARGIN_NS = 30 * SECOND
# The file takes one line for each node; only a kernel with images/kernel/node-faults.patch has it.
CONTROL = Path("/proc/sys/kernel/lab_node")
Item = tuple[str, Software]
Failure = tuple[str, Software, str]  # node, program, error text
States = Mapping[str, Mapping[str, operations.SoftwareState]]


def start(lab: Lab, items: Sequence[Item]) -> list[Failure]:
    """Starts programs in parallel and waits until each is ready or has failed; returns the failed ones.
    Raises TimedOut 30 s after the longest ready deadline.

    A program counts as started from its own answer on, because it may end while others still start.
    """
    requests = []

    def started(number: int, answer: Message) -> None:
        if answer.get("ok"):
            node, software = items[number]
            lab.started[node, software.name] = software

    for node, software in items:
        lab.meant.discard((node, software.name))
        log = str(log_file(lab, node, software))
        requests.append(operations.Start(node, plain(software), log))
    longest = max((s.process.ready.deadline_ns for _, s in items if s.process), default=0)
    failed: list[Failure] = []
    answers = together(lab, "software to start", requests, longest, started)
    for (node, software), answer in zip(items, answers, strict=True):
        if not answer.get("ok"):
            failed.append((node, software, str(answer.get("error", "refused without a reason"))))
    return failed


def together(
    lab: Lab,
    subject: str,
    requests: Sequence[operations.Operation[Any]],
    longest_ns: int,
    each: Callable[[int, Message], None] = lambda _number, _answer: None,
) -> list[Message]:
    """Sends all requests at once, waits for the answers and returns them, including refusals, in the order of
    the requests. Raises TimedOut (`subject`) after `longest_ns` plus 30 s.

    each: function that is called with the index of a request and its answer, when the answer arrives.
    """
    answers: dict[int, Message] = {}

    def take(number: int, answer: Message) -> None:
        answers[number] = answer
        each(number, answer)

    for number, request in enumerate(requests):
        lab.driver.submit(request, partial(take, number))
    deadline = lab.loop.clock.now_ns() + longest_ns + MARGIN_NS
    lab.loop.until(deadline, subject, lambda: len(answers) == len(requests))
    return [answers[number] for number in range(len(requests))]


def insist(failed: Sequence[Failure]) -> None:
    """Raises LabError with every failed program and its error; does nothing if none failed."""
    if failed:
        raise LabError("; ".join(f"nodes.{node}.{s.name}: {error}" for node, s, error in failed))


def settle(lab: Lab, failed: Sequence[Failure]) -> None:
    """Applies the topology's policy to programs that did not start. Raises LabError with the policy `abort`;
    otherwise marks their nodes as failed and warns.
    """
    if lab.plan.on_node_failure == "abort":
        insist(failed)
    for node, software, error in failed:
        lab.node_states[node] = f"failed: {software.name}"
        lab.meant.add((node, software.name))
        lab.events.warn(Warning(
            "node-failed",
            f"nodes.{node}.{software.name}: {error}",
            "the run continued without it, as the file requests"
        ))  # fmt: skip


def stop(lab: Lab, items: Sequence[Item], signal: str | None = None) -> None:
    """Stops programs by `signal`, else by their own stop signal, and marks their exits as expected; SIGKILL
    follows after 10 s. Raises LabError for a role inside the agent, or if a program cannot be stopped.
    """
    requests = []
    for node, software in items:
        if software.process is None:
            raise LabError(
                f"nodes.{node}.{software.name}: {software.kind} lives in the node's agent and cannot be "
                "stopped alone; take its link down instead"
            )
        lab.meant.add((node, software.name))
        word = signal or software.process.stop_signal
        requests.append(operations.Stop(node, software.name, word, STOP_NS))
    answers = zip(items, together(lab, "software to stop", requests, STOP_NS), strict=True)
    failed = [(node, s, str(a.get("error"))) for (node, s), a in answers if not a.get("ok")]
    insist(failed)


def stop_all(lab: Lab) -> None:
    """At the end of a lab, stops the programs that still run or start, so that they write their logs and exit
    in order.
    """
    items = [(node, software) for (node, _), software in lab.started.items() if node in lab.nodes]
    states = lab.driver.call(operations.Software())["nodes"] if items else {}
    stop(lab, [i for i in items if _runs(states, i)])


def _runs(states: States, item: Item) -> bool:
    node, software = item
    known = states.get(node, {}).get(software.name)
    return known is not None and known["state"] in ("starting", "ready")


def chosen(lab: Lab, nodes: Iterable[str], name: str | None) -> list[Item]:
    """Returns node and software for each of `nodes`: the software called `name`, or all programs of the node
    if that is None.
    """
    if name is None:
        return lab.processes(nodes)
    return [(node, lab.software(node, name)) for node in nodes]


def act(lab: Lab, action: str, nodes: Sequence[str], name: str | None) -> None:
    """Starts, stops, kills or restarts the software `name` on nodes; if `name` is None, whole nodes with
    their links. Other actions have no effect.
    """
    if action in ("stop", "kill", "restart"):
        end(lab, nodes, name, kill=action == "kill")
    if action in ("start", "restart"):
        begin(lab, nodes, name)


def end(lab: Lab, nodes: Sequence[str], name: str | None, kill: bool = False) -> None:
    """Stops (or kills) the running programs that `name` selects. Without a name also sets the nodes' links
    down, powers off VM nodes, and marks the nodes as stopped.
    """
    states = lab.driver.call(operations.Software())["nodes"]
    items = chosen(lab, nodes, name)
    running = [i for i in items if i[1].process is None or _runs(states, i)]
    stop(lab, running, "SIGKILL" if kill else None)
    if name is None:
        set_devices(lab, [end for n in nodes for end in all_ends(lab, lab.node(n))], up=False)
        lab.driver.power([lab.node(n) for n in nodes], on=False)
        for node in nodes:
            lab.node_states[node] = "stopped"


def freeze(lab: Lab, nodes: Sequence[str], name: str | None, frozen: bool) -> None:
    """Stops (SIGSTOP) or continues (SIGCONT) the processes of the program `name` on nodes, or of all programs
    of the nodes if it is None. Does nothing to programs that do not run; raises LabError if a node refuses.
    """
    _each(lab, nodes, "programs to freeze", [operations.Freeze(node, frozen, name) for node in nodes])


def disk(lab: Lab, nodes: Sequence[str], full: bool) -> None:
    """Fills the writable file systems of nodes, or frees their space again; raises LabError if a node
    refuses.
    """
    _each(lab, nodes, "disks to change", [operations.Disk(node, full) for node in nodes])


def _each(
    lab: Lab, nodes: Sequence[str], subject: str, requests: Sequence[operations.Operation[Any]]
) -> None:
    answers = zip(nodes, together(lab, subject, requests, STOP_NS), strict=True)
    if wrong := [f"nodes.{node}: {a.get('error')}" for node, a in answers if not a.get("ok")]:
        raise LabError("; ".join(wrong))


def begin(lab: Lab, nodes: Sequence[str], name: str | None) -> None:
    """Starts the programs that `name` selects. Without a name first restores the nodes' links, powers on VM
    nodes, and marks the nodes as running. Raises LabError if a program does not start.
    """
    if name is None:
        put_back(lab, [lab.node(n) for n in nodes])
        lab.driver.power([lab.node(n) for n in nodes], on=True)
        for node in nodes:
            lab.node_states[node] = "running"
    insist(start(lab, chosen(lab, nodes, name)))


def log_file(lab: Lab, node: str, software: Software) -> Path:
    """Returns the path of a program's log in the run directory."""
    return lab.run_dir / "raw" / "logs" / f"{node}.{software.name}.log"


def schedule(lab: Lab, node: str, seed: int, most_ns: int) -> None:
    """Perturbs the order in which a node's programs run, by draws from `seed`; it delays a thread by at most
    `most_ns`. Seed and time 0 end this. Raises LabError if the kernel refuses.
    """
    _tell_kernel(lab, node, "schedule", f"{seed} {most_ns}")


def clock(lab: Lab, node: str, offset_ns: int) -> None:
    """Sets how far the clock of a node's programs is ahead of the lab's; raises LabError if the kernel
    refuses.
    """
    _tell_kernel(lab, node, "clock", str(offset_ns))


def _tell_kernel(lab: Lab, node: str, what: str, values: str) -> None:
    """Writes a line about a node to the kernel's file. The line names the node's agent, which the fault
    spares because it measures.
    """
    pid = lab.pids.get(node)
    if pid is None:
        raise LabError(f"nodes.{node}: {what}: the node is not there")
    try:
        CONTROL.write_text(f"{pid} {what} {values}", encoding="ascii")
    except FileNotFoundError:
        rule = "this kernel has no wrong clocks and perturbed schedules"
        raise LabError(
            f"nodes.{node}: {what}: {rule}; build it: `vnet images build lab-kernel-faults`"
        ) from None
    except OSError as error:
        raise LabError(f"nodes.{node}: {what}: {CONTROL}: {error.strerror}") from error
