"""Lists all conservation checks of tables and of summary.json, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from capture.conservation import (
    applies,
    captured_frames,
    captures,
    cpu,
    datagrams,
    delays,
    drops,
    figures,
    interfaces,
    last,
    links,
    losses,
    machine,
    messages,
    passing,
    payload,
    queues,
    segments,
    sends,
    stacks,
    stated,
    transfers,
)
from capture.conservation.check import Check, Found, Rule, judge
from capture.conservation.evidence import Evidence
from contract import rundir
from contract.manifest import TRUST, Warned

TABLES: dict[Rule, Callable[[Evidence], Found]] = {
    messages.MESSAGE_TOTALS: messages.records_are_counted,
    messages.MESSAGE_ROWS: messages.table_has_records,
    messages.MESSAGE_LOSSES: messages.lost_were_dropped,
    interfaces.NODE_LINKS: interfaces.node_is_links,
    interfaces.NODE_SOME_LINKS: interfaces.node_has_links,
    links.LINK_FRAMES: links.link_is_other_port,
    links.LINK_FRAMES_MOST: links.link_has_from_ports,
    sends.LINK_MESSAGES: sends.links_take_messages,
    sends.LINK_FORWARDED: sends.links_take_forwarded,
    segments.SEGMENT_FRAMES: segments.segments_pass_on,
    payload.NODE_PAYLOAD: payload.node_carries_messages,
    captured_frames.CAPTURE_FRAMES: captured_frames.packets_are_frames,
    captured_frames.CAPTURE_FILTERED: captured_frames.filtered_are_frames,
    captures.CAPTURE_MATCHES: captures.filter_matches,
    captures.CAPTURE_RECEIVED: captures.kernel_has_packets,
    captures.CAPTURE_ROWS: captures.table_has_packets,
    captures.CAPTURE_BYTES: captures.sizes_fill_the_file,
    passing.CAPTURE_TIMES: passing.packets_pass_in_time,
    cpu.NODE_CPU: cpu.nodes_fit,
    cpu.NODE_CPU_PROCESSES: cpu.groups_have_processes,
    datagrams.DATAGRAMS_RECEIVED: datagrams.arrivals_were_handed_over,
    datagrams.DATAGRAMS_SENT: datagrams.sends_left,
    delays.MESSAGE_DELAY: delays.none_is_too_soon,
    last.CPU_SAMPLED: last.cpu_goes_on,
    last.MEMORY_SAMPLED: last.memory_has_a_peak,
    machine.MACHINE_TIME: machine.cores_have_time,
    machine.SAMPLE_TIMES: machine.samples_take_one_time,
    machine.COUNTERS_GROW: machine.counters_only_grow,
    machine.NODE_MEMORY: machine.nodes_fit_memory,
    drops.LINK_DROPS: drops.drops_are_missed,
    losses.LINK_LOSS: losses.links_lose_their_share,
    queues.LINK_BACKLOG: queues.backlog_fits,
    queues.LINK_FULL: queues.full_links_hold,
    stacks.STACK_REPEATS: stacks.repeats_have_reasons,
    stacks.STACK_BYTES: stacks.interfaces_have_packets,
    stacks.LINK_STACK: stacks.links_have_packets,
    transfers.TRANSFER_ENDS: transfers.ends_agree,
    transfers.TRANSFER_NODES: transfers.nodes_sent_them,
    transfers.TRANSFER_TIMES: transfers.records_are_a_second_apart,
    stated.EVENTS_PLANNED: stated.events_are_planned,
    stated.PHASES_PLANNED: stated.phases_are_planned,
    stated.PROOF_PLANNED: stated.proof_is_of_plan,
    stated.PROOF_WORDS: stated.proof_words_are_intervals,
    stated.FLOW_NAMES: stated.names_are_flows,
}
SUMMARY: dict[Rule, Callable[[Evidence, list[figures.Row]], Found]] = {
    figures.SUMMARY_COUNTS: figures.counts_are_rows,
    figures.SUMMARY_GOODPUT: figures.goodput_is_payload,
    figures.LINK_GOODPUT: figures.payload_is_carried,
}
REMEDIES = {rule.name: rule.remedy for rule in (*TABLES, *SUMMARY)}


def of_tables(evidence: Evidence) -> list[Check]:
    """Returns the results of all checks of a run's tables, in the order of TABLES."""
    return [
        judge(rule, applies.of_check(rule.name, evidence.plan, compare(evidence)))
        for rule, compare in TABLES.items()
    ]


def of_summary(evidence: Evidence) -> list[Check]:
    """Returns the results of all checks of the run's summary.json, in the order of SUMMARY."""
    rows = rundir.read_summary(evidence.run_dir)
    return [
        judge(rule, applies.of_check(rule.name, evidence.plan, compare(evidence, rows)))
        for rule, compare in SUMMARY.items()
    ]


def findings(checks: Iterable[Check], prefix: str = TRUST) -> list[Warned]:
    """Returns a finding for each check with the verdict "fails"; its code is `prefix` and the check's name.
    These findings make the run suspect.
    """
    return [
        Warned(f"{prefix}{check.name}", check.text, REMEDIES[check.name], suspect=True)
        for check in checks if check.verdict == "fails"
    ]  # fmt: skip
