"""Holds the cases of the section on Mahimahi's shells."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import mahimahi

from . import Tool, both, imported, network, refused, said

LINE = "mm-delay 20 mm-loss uplink 0.1 mm-link --uplink-queue-args=packets=9 --downlink-queue-args=packets=9 up down -- curl x\n"
ROWS = {
    "`mm-delay MS`, also several": [network("mm-delay 20", "mm-delay 21"), network("mm-delay 20", "mm-delay 20 mm-delay 5", "mm-delay 20 mm-delay 6")],
    "`mm-loss uplink": [network("uplink 0.1", "downlink 0.1"), network("uplink 0.1", "uplink 0.2"), network("mm-loss uplink 0.1", "mm-loss uplink 0.1 mm-loss uplink 0.1")],
    "`mm-link UP DOWN`": [
        network("up down", "down up"), network("--uplink-queue-args=packets=9", "--uplink-queue-args=packets=8"), network("mm-link", "mm-link --once"),
        network("--uplink-queue-args=packets=9", "--uplink-queue-a packets=7"),
        both("--uplink-queue-args=packets=9", ""),
    ],
    "queues other than `droptail`": [
        said("mm-link", "mm-link --uplink-queue=codel", "mm-link --uplink-queue=droptail"), said("mm-link", "mm-link --uplink-queue=codel", "mm-link --uplink-queue=infinite"),
        said("mm-link", "mm-link --uplink-log=x"), said("mm-delay 20", "mm-delay 20 mm-meter"), said("curl x", "curl y"),
    ],
    "shells within the program": [
        refused("curl x", "sh -c 'mm-delay 5 ls'"), refused("mm-delay 20", "mm-delay 20 mm-link up down"), refused("mm-link", "mm-link --fast"),
        *(refused("mm-delay 20", f"mm-delay 20 {word} x") for word in ("mm-onoff", "mm-intermittent", "mm-webreplay", "mm-webrecord")),
    ],
}  # fmt: skip
FILES = {"x.sh": LINE, "up": "1\n2\n", "down": "1\n3\n"}
TOOL = Tool("Mahimahi's shells", FILES, "x.sh", imported(mahimahi.read), ROWS)
