"""A lab over many hosts, planned on paper: 1,000, 3,000 and 10,000 nodes on as many hosts as they need.

Sites of 100 nodes: a broker and its meters on a segment of their own, joined by a slow link to the trunk,
where the utility listens to all brokers. `vnet plan` is a process each time, its memory the most that it had.
"""

from __future__ import annotations

import sys

SITE = 100
PER_HOST = 334
SIZES = (1_000, 3_000, 10_000)
TURNS = 3


def topology(nodes: int, hosts: int) -> str:
    sites = nodes // SITE
    lines = [f"name: paper-{nodes}", "hosts:"]
    lines += [
        f"  h{n}: {{machine: ssh://root@h{n}, address: 10.200.0.{n}, cores: 32, memory: 64 GB}}"
        for n in range(1, hosts + 1)
    ]
    lines += ["underlay: {mtu: 1500, delay: 100 us}", "segments:", "  trunk: {subnet: 10.0.0.0/14}"]
    lines += [f"  site{n}: {{}}" for n in range(1, sites + 1)]
    lines += ["nodes:"]
    listen = ", ".join(
        f"from{n}: {{mqtt: {{broker: broker{n}, subscribe: [{{topic: '#', qos: 1}}]}}}}"
        for n in range(1, sites + 1)
    )
    lines += [f"  utility: {{segment: trunk, software: {{{listen}}}}}"]
    lines += [
        f"  broker{n}: {{segment: site{n}, software: {{m: {{broker: mosquitto}}}}}}"
        for n in range(1, sites + 1)
    ]
    lines += ["groups:"]
    meters = "{broker: broker%d, publish: {topic: 'm/{index}', qos: 1, rate: 1 /s, rate_of: client}}"
    lines += [
        f"  s{n}m: {{count: {SITE - 1}, segment: site{n}, memory_limit: 64 MiB, "
        f"software: {{meter: {{mqtt: {meters % n}}}}}}}"
        for n in range(1, sites + 1)
    ]
    lines += ["links:"]
    lines += [
        f"  wan{n}: {{between: [site{n}, trunk], both: {{delay: 20 ms, rate: 10 Mbit/s}}}}"
        for n in range(1, sites + 1)
    ]
    lines += ["run: {ramp: 60 s, hold: 60 s, drain: 5 s}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    n = int(sys.argv[1])
    print(topology(n, -(-n // PER_HOST)))
