"""Tests the metrics of labs for Prometheus: their values, their access control, and that Prometheus' own
parsers accept them.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.request
from typing import Any

import pytest
from command_line import PROJECT, CommandLine
from page_lab import HOSTILE, StandIn, wait_for
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain
from starlette.testclient import TestClient

from orchestrator.cli.page.flows import Flows, Known
from orchestrator.cli.page.metrics import Facts, exposition
from orchestrator.cli.page.rates import Links, Nodes

OPEN = {"Accept": "application/openmetrics-text; version=1.0.0"}


def facts(lab: str = "shown") -> Facts:
    """Returns a lab with all facts known, and with names that are hard for parsers."""
    nodes, links, flows = Nodes(), Links(), Flows({"0": Known("flow", HOSTILE)})
    nodes.feed([f"1000000000,{lab}-node,1500000000,1,2,3,4,5"])
    links.feed(["1000000000,wan,forward,1250,10,2,0,42,1"])
    flows.feed(["S,0,1,10,1000,1001,1600,1,settled", "R,0,1,sub,0,2001000,0"])
    way = {"delay_ns": 20_000_000, "loss": 0.01, "rate_bps": 10**6}
    network = {"links": {"wan": {"down": True, "forward": way, "reverse": way}}}
    status = {"kernel": {"kind": 'a"b\\c\n'}, "phase": "hold"}
    return Facts(lab, True, status, network, 3, nodes, links, flows)


def values(text: str, parse: Any) -> dict[str, float]:
    return {
        sample.name + "".join(f" {sample.labels[k]}" for k in ("node", "link", "le") if k in sample.labels)
        : sample.value
        for family in parse(text) for sample in family.samples
        if sample.labels.get("direction", "forward") == "forward"
    }  # fmt: skip


@pytest.mark.parametrize("parse", [openmetrics, plain])
def test_every_figure_has_its_name_and_its_unit(parse: Any) -> None:
    found = values(exposition([facts()], openmetrics=parse is openmetrics), parse)
    expected = {
        "vnet_lab_up": 1, "vnet_lab_warnings": 3, "vnet_node_cpu_seconds_total shown-node": 1.5,
        "vnet_node_receive_bytes_total shown-node": 1, "vnet_node_memory_bytes shown-node": 5,
        "vnet_link_transmit_bytes_total wan": 1250, "vnet_link_dropped_packets_total wan": 2,
        "vnet_link_backlog_bytes wan": 42, "vnet_link_up wan": 0, "vnet_link_delay_seconds wan": 0.02,
        "vnet_link_loss_ratio wan": 0.01, "vnet_link_rate_bytes_per_second wan": 125_000,
        "vnet_flow_sent_messages_total": 1, "vnet_flow_received_messages_total": 1,
        "vnet_flow_lost_messages_total": 0,
        "vnet_flow_latency_seconds_bucket 0.001": 0, "vnet_flow_latency_seconds_bucket 0.003": 1,
        "vnet_flow_latency_seconds_bucket +Inf": 1, "vnet_flow_latency_seconds_sum": 0.002,
    }  # fmt: skip
    assert {name: found.get(name) for name in expected} == expected


def test_names_of_any_kind_stay_values_of_labels() -> None:
    (info,) = [f for f in openmetrics(exposition([facts()], openmetrics=True)) if f.name == "vnet_lab"]
    assert info.samples[0].labels == {"lab": "shown", "kernel": 'a"b\\c\n', "phase": "hold"}


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (apt-get install prometheus)")
def test_promtool_finds_nothing_to_mend() -> None:
    text = exposition([facts(), facts("second")], openmetrics=False)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


SCRAPE = """global: {{scrape_interval: 200ms}}
scrape_configs:
  - job_name: vnet
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus (apt-get install prometheus)")
def test_a_real_prometheus_scrapes_a_lab(vnet: CommandLine, address: str) -> None:
    vnet("up", str(PROJECT / "topologies" / "pair.yaml"), "--kernel", "fake")
    target, _, token = address.removeprefix("http://").partition("/?token=")
    (vnet.cwd / "prometheus.yaml").write_text(SCRAPE.format(target=target, token=token))
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = f"127.0.0.1:{free.getsockname()[1]}"
    options = ("--config.file=prometheus.yaml", "--storage.tsdb.path=tsdb", f"--web.listen-address={own}")
    server = subprocess.Popen(["prometheus", *options], cwd=vnet.cwd, stderr=subprocess.DEVNULL)

    def asked(query: str) -> list[Any]:
        try:
            with urllib.request.urlopen(f"http://{own}/api/v1/query?query={query}", timeout=60) as answer:
                found: list[Any] = json.load(answer)["data"]["result"]
                return found
        except OSError:
            return []  # it is still starting

    try:
        wait_for(lambda: asked("vnet_link_delay_seconds"))
        assert {one["metric"]["link"] for one in asked("vnet_link_delay_seconds")} == {"left-access"}
        assert [one["value"][1] for one in asked("vnet_lab_up")] == ["1"]
        assert [one["value"][1] for one in asked("up")] == ["1"], "all that was scraped was understood"
    finally:
        server.terminate()
        server.wait(60)


def test_a_scraper_shows_the_token_and_sees_the_labs(lab: StandIn, client: TestClient) -> None:
    (lab.run_dir / "raw" / "nodes.csv").write_text("1000000000,broker,5000000000,0,0,0,0,5\n")
    client.cookies.clear()
    for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic secret"}):
        assert client.get("/metrics", headers=headers).status_code == 403
    token = {"Authorization": "Bearer secret"}
    assert client.get("/api/overview", headers=token).status_code == 403, "for /metrics only"
    with client:
        answer = client.get("/metrics", headers=token | OPEN)
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        found = values(answer.text, openmetrics)
        assert found["vnet_lab_up"] == 1 and found["vnet_node_cpu_seconds_total broker"] == 5
        assert "vnet_link_up wan" in found
        assert client.get("/metrics", headers=token).headers["content-type"].startswith("text/plain")
        assert lab.open == 1, "one connection for all scrapes"
        lab.dies = True
        wait_for(lambda: values(client.get("/metrics", headers=token).text, plain)["vnet_lab_up"] == 0)


def test_no_lab_is_no_trouble(client: TestClient, lab: StandIn) -> None:
    (lab.run_dir.parents[2] / "s" / "shown" / "lab.json").unlink()
    with client:
        assert values(client.get("/metrics", headers=OPEN).text, openmetrics)["vnet_lab_up"] == 0
