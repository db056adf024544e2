"""Makes the page's section on CPU, memory and traffic by group of nodes and role."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

MEASURES = {
    "nodes": "nodes",
    "cpu": "CPU, % of a core",
    "memory": "memory, MB",
    "received": "receives, kB/s",
    "sent": "sends, kB/s",
}

STACK = {
    "stack_buffer_full": "dropped, receive buffer full",
    "stack_send_full": "dropped, send buffer full",
    "stack_fragments_lost": "reassembly failed",
    "stack_nobody": "datagrams to closed ports",
    "stack_unroutable": "no route",
    "stack_sent_again": "TCP retransmissions",
    "stack_timeouts": "TCP timeouts",
    "stack_gave_up": "TCP connections aborted on timeout",
    "stack_not_accepted": "TCP connections not accepted",
}

DISK = {
    "disk_read": "read from disks, MB",
    "disk_written": "written to disks, MB",
    "disk_memory": "nodes whose own files are in memory",
}


def section(page: Page) -> Part | None:
    """Returns the section of the page; None without samples of nodes in a hold."""
    table = by_subject(page.study, {"group": "group", "role": "role"}, MEASURES)
    if table is None:
        return None
    stacks = by_subject(page.study, {"group": "group", "role": "role"}, STACK)
    disks = by_subject(page.study, {"group": "group", "role": "role"}, DISK)
    figures = page.figures(registry.NODES)
    ticked = any(cell.run.ticked for cell in page.study.cells)
    return page.part(
        "nodes", "Nodes", entries(figures),
        table=table.cut(), stacks=stacks and stacks.cut(), disks=disks and disks.cut(),
        figures=figures, ticked=ticked,
    )  # fmt: skip
