"""Implements `vnet inspect`, which shows the nodes, programs and links of a running lab; the values of links
are read back from the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from orchestrator.cli import completing
from orchestrator.cli.control import payload
from orchestrator.cli.output import console, json_option, print_json, table
from orchestrator.cli.running import asked, choose, connect

SIDES = ("forward", "reverse")


@click.command("inspect")
@click.argument("lab", shell_complete=completing.labs)
@click.argument("nodes", required=False, shell_complete=completing.nodes)
@json_option
def inspect_command(lab: str, nodes: str | None, as_json: bool) -> None:
    """Show a running lab: nodes with state, addresses, limits, programs; links as the kernel has them.

    \b
    Example:  vnet inspect pair
    """
    with connect(lab, looks=True) as control:
        status = payload(asked(control, "status"))
        found = payload(asked(control, "inspect"))
    if nodes:
        chosen = choose(nodes, {name: node["group"] for name, node in found["nodes"].items()})
        found["nodes"] = {name: found["nodes"][name] for name in chosen}
        found["links"] = {
            n: link for n, link in found["links"].items() if {link["a"], link["b"]} & set(chosen)
        }
    if as_json:
        print_json({**status, **found})
        return
    out = console()
    out.print(f"lab {lab}, kernel {status['kernel'].get('kind')}, {status['run_dir']}", soft_wrap=True)
    out.print(table(("node", "state", "address", "MTU", "limits", "software"), list(_nodes(found["nodes"]))))
    if found["links"]:
        out.print(
            table(("link", "direction", "requested", "read back", "queue"), list(_links(found["links"])))
        )


def _addresses(card: dict[str, Any]) -> Iterator[str]:
    yield f"{card['address']}/{card['prefix']} ({card['segment']})"
    if card.get("second"):
        yield f"{card['second']}/{card['second_prefix']} ({card['segment']})"


def _nodes(nodes: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, node in nodes.items():
        cards = node["interfaces"]
        yield (
            name,
            str(node["state"]),
            "\n".join(line for card in cards for line in _addresses(card)),
            "\n".join(str(card["mtu"]) for card in cards),
            _limits(node["limits"]),
            "\n".join(f"{key}: {value.get('state')}" for key, value in node["software"].items()) or "-",
        )


def _limits(limits: dict[str, Any]) -> str:
    """Returns the enforced limits of a node, one a line: `CPU 0.5 cores (1298 MHz)`, `memory 64 MB`; `-` if
    there are none.
    """
    words = []
    if limits.get("cpu_cores"):
        clock = f" ({limits['cpu_mhz']:.0f} MHz)" if limits.get("cpu_mhz") else ""
        words.append(f"CPU {limits['cpu_cores']:.3g} cores{clock}")
    if limits.get("memory_bytes"):
        words.append(f"memory {limits['memory_bytes'] / 1e6:.0f} MB")
    told = ("cpu_cores", "cpu_mhz", "memory_bytes", "quota_us", "period_us", "clock_mhz")
    words += [
        f"{name.replace('_', ' ')} {value}" for name, value in limits.items() if name not in told and value
    ]
    return "\n".join(words) or "-"


def _links(links: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, link in links.items():
        for side, (a, b) in zip(SIDES, ((link["a"], link["b"]), (link["b"], link["a"])), strict=True):
            requested, read = link[side]["requested"], link[side]["read"]
            words, real = _words(requested), _words(read) if read else "plain wire"
            queue = f"{requested['limit_packets']} packets" if requested["limit_packets"] else "-"
            yield (
                name if side == "forward" else "",
                f"{a} -> {b}",
                words,
                "down" if link["down"] else real,
                queue,
            )


def _words(impairment: dict[str, Any]) -> str:
    from contract.codec import build
    from contract.plan import Impairment
    from orchestrator.plan.summary import impairment_words

    return ", ".join(impairment_words(build(Impairment, impairment))) or "plain wire"
