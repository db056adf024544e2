"""Measures cooperative congestion control at 100 substations and 10 overlay routers in virtual time: the
share of late packets.

Each substation is a node with three sensors behind its gateway; each overlay router's link is fully reserved.
At 10 s the high real-time sensors of every other substation double their rate. The peer is the same lab with
gateways that leave congestion control to the broker.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from commands import VNET, timed

from contract import manifest

ROUTERS, SUBSTATIONS, SECONDS = 10, 10, 30
FRAME_BITS = 302 * 8
SERVICES = {"hrt": ("high-real-time", 20), "lrt": ("low-real-time", 10), "be": ("best-effort", 2.5)}
CONTROL = "control: {port: [7100, 7101, 7200], rate: 640 kbit/s, ceil: 640 kbit/s}"


def flows(router: int) -> Iterator[tuple[str, str, int, int]]:
    """Yields (name, service, port, substation) of each flow of an overlay router."""
    for substation in range(SUBSTATIONS):
        for place, service in enumerate(SERVICES):
            name = f"r{router}-s{substation}-{service}"
            yield name, service, 9000 + (router * SUBSTATIONS + substation) * 3 + place, substation


def queue(of: list[tuple[str, str, int, int]], hrt_per_s: float, be_per_s: float) -> str:
    rates = {"hrt": hrt_per_s, "lrt": 20.0, "be": be_per_s}
    classes = [
        f"{name}: {{port: {port}, rate: {(rate := rates[service]) * FRAME_BITS:.0f} bit/s, "
        f"ceil: {rate * FRAME_BITS:.0f} bit/s, limit: 20}}"
        for name, service, port, _ in of
    ]
    return f"{{htb: {{{CONTROL}, {', '.join(classes)}, rest: {{rate: 16 kbit/s}}}}}}"


def gateway(link: str, of: list[tuple[str, str, int, int]], upstream: dict[int, str], more: str) -> str:
    lines = [
        f"{name}: {{service: {SERVICES[service][0]}, group: s{substation}, "
        f"minimum: {SERVICES[service][1] * FRAME_BITS:.0f} bit/s"
        f"{f', upstream: {upstream[substation]}' if substation in upstream and service != 'hrt' else ''}}}"
        for name, service, _, substation in of
    ]
    return f"gateway: {{gateway: {{link: {link}, {more}flows: {{{', '.join(lines)}}}}}}}"


def sensors(of: list[tuple[str, str, int, int]]) -> str:
    found = []
    for place, (name, service, port, substation) in enumerate(of):
        faster = service == "hrt" and substation % 2 == 0
        rate = "[{from: hold + 0 s, rate: 20 /s}, {from: hold + 10 s, rate: 40 /s}]" if faster else "20 /s"
        deadline = ", deadline: 50 ms" if service == "hrt" else ""
        limits = "" if service == "hrt" else f"rate_limits_from: {{listen: {7101 + place}, flow: {name}}}, "
        traffic_class = f"{service}-{'faster' if faster else 'steady'}"
        push = f"push: {{size: 260 B, class: {traffic_class}{deadline}, rate: {rate}}}"
        found.append(f"{service}: {{udp: {{to: center, port: {port}, {limits}{push}}}}}")
    return ", ".join(found)


def topology(cooperate: bool) -> str:
    segments, nodes, links = ["  control: {subnet: 10.200.0.0/16}"], [], []
    more = "" if cooperate else "cooperate: false, "
    for router in range(ROUTERS):
        all_flows = list(flows(router))
        for substation in range(SUBSTATIONS):
            of, name = [flow for flow in all_flows if flow[3] == substation], f"r{router}-s{substation}"
            segments.append(f"  {name}: {{subnet: 10.{router}.{substation}.0/24}}")
            nodes.append(f"  {name}-sensors: {{segment: {name}, software: {{{sensors(of)}}}}}")
            own = gateway(f"{name}-up", of, {substation: f"{name}-sensors"}, more)
            nodes.append(f"  {name}-gateway: {{segment: {name}, forward: true, software: {{{own}}}}}")
            up = f"forward: {{rate: 100 Mbit/s, delay: 2 ms, queue: {queue(of, 60, 30)}}}"
            links.append(
                f"  {name}-up: {{between: [{name}-gateway, r{router}], {up}, reverse: {{delay: 2 ms}}}}"
            )
        upstream = {substation: f"r{router}-s{substation}-gateway" for substation in range(SUBSTATIONS)}
        own = gateway(f"wan{router}", all_flows, upstream, f"{more}broker: center, ")
        nodes.append(f"  r{router}: {{forward: true, software: {{{own}}}}}")
        nodes.append(f"  far{router}: {{segment: control, forward: true}}")
        wan = f"forward: {{rate: 100 Mbit/s, delay: 5 ms, queue: {queue(all_flows, 20, 22.5)}}}"
        links.append(f"  wan{router}: {{between: [r{router}, far{router}], {wan}, reverse: {{delay: 5 ms}}}}")
    listens = [
        f"{name}: {{udp: {{listen: {port}}}}}"
        for router in range(ROUTERS)
        for name, _, port, _ in flows(router)
    ]
    nodes.append(
        f"  center: {{segment: control, software: {{broker: {{reservations: {{}}}}, {', '.join(listens)}}}}}"
    )
    run = f"run: {{connect_interval: 2 ms, hold: {SECONDS} s, drain: 3 s}}"
    return "\n".join(
        ["name: bench-cooperation", "segments:", *segments, "nodes:", *nodes, "links:", *links, run, ""]
    )


def late(cooperate: bool, directory: Path) -> tuple[float, float]:
    """Returns the percentage of the faster sensors' packets that arrived late or never, and the wall-clock
    seconds of the run.
    """
    file, out = directory / f"{cooperate}.yaml", directory / f"out-{cooperate}"
    file.write_text(topology(cooperate))
    took = timed(str(VNET), "run", str(file), "--time", "virtual", "--seed", "1", "--results", str(out))
    run = next(out.glob("bench-cooperation/*"))
    begin, _ = manifest.load(run).phases["hold"]
    messages = pl.read_parquet(run / "messages.parquet").filter(
        (pl.col("class") == "hrt-faster") & (pl.col("scheduled_ns") >= begin + 10_000_000_000)
    )
    missed = messages.filter(pl.col("received_ns").is_null() | (pl.col("latency_ns") > 50_000_000))
    return 100 * missed.height / messages.height, took


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vnet-bench-") as temporary:
        directory = Path(temporary)
        directory.chmod(0o755)
        (value, took), (peer, _) = late(True, directory), late(False, directory)
    rows: list[dict[str, Any]] = [
        {
            "name": f"{ROUTERS * SUBSTATIONS} substations: late or lost",
            "value": value,
            "unit": "% of HRT",
            "peer": f"the broker alone, {peer:.1f} %",
            "ratio": value / peer,
        },
        {
            "name": f"{ROUTERS * SUBSTATIONS} substations: {SECONDS} s",
            "value": took,
            "unit": "s",
            "peer": "the clock",
            "ratio": took / SECONDS,
        },
    ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
