"""Names the topology keys that stand for words of other tools (netem wrappers, containerlab, Compose, k6)."""

from __future__ import annotations

from collections.abc import Collection

# A word of other tools: topology keys with the same meaning, the first that the place has.
SAME = {
    "bandwidth": ("rate",),
    "bw": ("rate",),
    "capacity": ("rate",),
    "speed": ("rate", "line_rate"),
    "throughput": ("rate",),
    "latency": ("delay",),
    "rtt": ("delay",),
    "packet_loss": ("loss",),
    "loss_rate": ("loss",),
    "drop": ("loss",),
    "duplication": ("duplicate",),
    "corruption": ("corrupt",),
    "reordering": ("reorder",),
    "queue_size": ("limit",),
    "buffer": ("limit",),
    "duration": ("hold", "for"),
    "length": ("hold", "for"),
    "warmup": ("ramp",),
    "cool_down": ("drain",),
    "cmd": ("command",),
    "entrypoint": ("command",),
    "environment": ("env",),
    "volumes": ("files", "mounts"),
    "binds": ("mounts",),
    "replicas": ("count",),
    "scale": ("count",),
    "services": ("nodes",),
    "networks": ("segments",),
    "network": ("segment", "segments"),
    "endpoints": ("between",),
    "cpus": ("cpu_limit", "vcpus"),
    "mem_limit": ("memory_limit", "memory"),
    "frequency": ("rate",),
    "assertions": ("expect",),
    "thresholds": ("expect",),
}
# A word that needs no key, and the reason.
NEEDLESS = {"ports": "no key publishes ports: nodes of a lab reach all ports of each other"}


def of_other_tools(word: str, keys: Collection[str]) -> str | None:
    """Returns the remedy for a word of another tool at a place with these keys; None for another word."""
    if word in NEEDLESS:
        return NEEDLESS[word]
    same = next((key for key in SAME.get(word.lower().replace("-", "_"), ()) if key in keys), None)
    return f'write "{same}"' if same else None
