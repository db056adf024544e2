"""Tests the fate of each attribute that a tool's own schema has: the import refuses it, names it, or its value
changes the network; those that do not describe the network are listed here.
"""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page_rows import Case, compose, containerlab, core, gns3, kathara, netlab

from orchestrator.topology import TopologyError

Names = str  # names with a blank between them, each with `=VALUE` if the value matters
LIST, MAP = "[zqx]", "{zqx: zqy}"

# containerlab 0.68, schemas/clab.schema.json: definitions.node-config, the top, link-type-*, link-endpoint, and others
CLAB_NODE = f"""aliases={LIST} auto-remove=true binds={LIST} cap-add={LIST} certificate={MAP} cgroup-parent cgroupns-mode cmd
components=[{{slot: A}}] config={MAP} cpu=3 cpu-set credentials={MAP} devices={LIST} dns={{servers: [1.1.1.1]}}
enforce-startup-config=true entrypoint env={MAP} env-files={LIST} exec={LIST} extras={MAP} group healthcheck={MAP} hostname image
image-pull-policy=Always kind=linux labels={MAP} license link-apply-mode memory=7m mgmt-ipv4=1.1.1.9 mgmt-ipv6=2001:db8::9
network-mode=host pid-mode ports={LIST} privileged=true restart-policy=always runtime=docker security-opts={LIST} shm-size=7m
startup-config startup-delay=7 suppress-startup-config=true sysctls={MAP} tmpfs={LIST} type user volumes={LIST}
stages={{create: {{wait-for: [{{node: a, stage: create}}]}}}} stages={{create-links: {{exec: {{on-enter: [zqx]}}}}}}
stages={{configure: {{exec: {{on-exit: [zqx]}}}}}} stages={{healthy: {{exec: [{{command: zqx, phase: on-enter}}]}}}}
stages={{exit: {{exec: [{{command: zqx, target: host, phase: on-exit}}]}}}} stages={{zqx: zqy}} stages={{create: {{exec: [zqx]}}}}
stages={{create: {{exec: zqx}}}} stages={{create: zqx}} stages=[zqx] zqx"""
CLAB_TOP = f"prefix mgmt={MAP} settings={MAP} debug=true zqx={MAP}"
CLAB_LINK = f"mtu=1300 ipv4=[10.9.0.1/24] ipv6=['2001:db8::1/64'] vars={MAP} labels={MAP} type=dummy zqx"
CLAB_END = f"mac='02:00:00:00:00:09' ipv4=10.9.0.1/24 ipv6='2001:db8::1/64' vars={MAP} zqx"
# compose-spec 2026-08, schema/compose-spec.json: definitions.service, network, and others
SERVICE = f"""annotations={MAP} attach=false blkio_config={{weight: 300}} build=. cap_add={LIST} cap_drop={LIST} cgroup=host cgroup_parent
command configs={LIST} container_name cpu_count=3 cpu_percent=7 cpu_period=7000 cpu_quota=7000 cpu_rt_period=7000 cpu_rt_runtime=7000
cpu_shares=7 cpus=3 cpuset credential_spec={{file: zqx}} depends_on=[web] deploy={{replicas: 2}} deploy={{mode: global}}
deploy={{endpoint_mode: dnsrr}} deploy={{labels: {MAP}}} deploy={{rollback_config: {{parallelism: 2}}}} deploy={{update_config: {{parallelism: 2}}}}
deploy={{resources: {{limits: {{cpus: '2', memory: 7M, pids: 7}}}}}} deploy={{resources: {{reservations: {{cpus: '2'}}}}}}
deploy={{restart_policy: {{condition: any}}}} deploy={{placement: {{constraints: [zqx]}}}} deploy={{zqx: 7}}
deploy={{resources: {{limits: {{devices: [zqx]}}}}}} develop={MAP} device_cgroup_rules={LIST} devices={LIST} dns=1.1.1.1 dns_opt={LIST}
dns_search=zqx domainname=zqx entrypoint=zqx env_file=b.env environment={MAP} expose=['7'] extends=zqx external_links={LIST} extra_hosts={LIST}
gpus=all group_add={LIST} healthcheck={{test: [CMD, zqx]}} hostname init=true ipc=host isolation label_file labels={MAP} links={LIST}
logging={{driver: none}} mac_address='02:00:00:00:00:09' mem_limit=7m mem_reservation=7m mem_swappiness=7 memswap_limit=7m models={LIST}
network_mode=host oom_kill_disable=true oom_score_adj=7 pid=host pids_limit=7 platform=linux/arm64 ports=['7:7']
post_start=[{{command: zqx}}] pre_stop=[{{command: zqx}}] privileged=true profiles={LIST} provider={{type: zqx}} pull_policy=always
pull_refresh_after=7d read_only=true restart=always runtime scale=2 secrets={LIST} security_opt={LIST} shm_size=7m stdin_open=true
stop_grace_period=7s stop_signal=SIGUSR1 storage_opt={{size: 7G}} sysctls={{net.core.somaxconn: 7}} sysctls={{net.ipv4.ip_forward: 1}} tmpfs=/zqx
tty=true ulimits={{nofile: 7}} use_api_socket=true user=zqx userns_mode=host uts=host volumes=['zqx:/zqx'] volumes_from={LIST} working_dir=/zqx zqx"""
SERVICE_NETWORK = f"""aliases={LIST} interface_name=zqx7 ipv4_address=172.20.0.7 ipv6_address='2001:db8::9' link_local_ips={LIST}
mac_address='02:00:00:00:00:09' driver_opts={MAP} priority=7 gw_priority=7 zqx"""
NETWORK = f"""driver=macvlan driver_opts={MAP} enable_ipv4=false enable_ipv6=true external=true labels={MAP}
ipam={{driver: zqx}} ipam={{options: {MAP}}} ipam={{config: [{{subnet: 172.21.0.0/24}}]}} ipam={{config: [{{ip_range: 172.20.5.0/24}}]}}
ipam={{config: [{{gateway: 172.20.0.9}}]}} ipam={{config: [{{aux_addresses: {MAP}}}]}} zqx"""
COMPOSE_TOP = f"configs={MAP} include={LIST} models={MAP} secrets={MAP} volumes={MAP} zqx={MAP}"
HEALTH = "interval=7s retries=7 timeout=7s start_period=7s start_interval=7s disable=true zqx"
# Kathará 3.7, docs/kathara-lab.conf.5.ronn
KATHARA = """image mem=7m cpus=3 port=7:7 bridged=true ipv6=false exec=zqx sysctl=net.ipv4.ip_forward=0 sysctl=net.core.somaxconn=7 env=A=7
shell num_terms=7 ulimit=nofile=7 privileged=true entrypoint args volume=/zqx|/zqx 7=C zqx"""
# netlab 26, netsim/defaults/attributes.yml, modules/ospf.yml, modules/bgp.yml
NETLAB_TOP = f"""addressing={{lan: {{ipv4: 10.77.0.0/16}}}} defaults={{zqx: zqy}} plugin={LIST} prefix={MAP} tools={MAP}
validate={{zqx: {{nodes: [r1], show: zqx}}}} outputs={MAP} providers={MAP} vlans={MAP} vrfs={MAP} zqx={MAP} ospf.area=0.0.0.7 ospf.bfd=true
ospf.passive=true ospf.password=zqx ospf.process=7 ospf.reference_bandwidth=7 ospf.timers={MAP} ospf.af={MAP} bgp.next_hop_self=true
bgp.rr_cluster_id=7 bgp.rr_list=[r1] bgp.rr_mesh=false bgp.ebgp_role=zqx bgp.sessions={MAP} bgp.activate={MAP} bgp.advertise_loopback=false
bgp.advertise_roles={LIST} bgp.community={MAP} bgp.replace_global_as=true bgp.confederation={MAP}"""
NETLAB_NODE = f"""interfaces={LIST} module=[ospf] device=linux box=zqx id=77 config={LIST} skip_config={LIST} role=host
mgmt={{ipv4: 10.77.0.1}} mtu=1300 loopback={{ipv4: 10.77.0.1/32}} provider=clab cpu=7 memory=7 unmanaged=true clab={MAP} tools={MAP} zqx
ospf.area=0.0.0.7 ospf.default=true ospf.digest={MAP} ospf.import={LIST} ospf.passive=true ospf.password=zqx ospf.priority=7 ospf.router_id=7.7.7.7
ospf.reference_bandwidth=7 ospf.timers={MAP} ospf=false bgp.as=7 bgp.rr=true bgp.originate=[10.77.0.0/16] bgp.router_id=7.7.7.7 bgp.local_as=7
bgp.next_hop_self=true bgp.import={LIST} bgp.community={MAP} bgp.advertise_loopback=false bgp=false"""
NETLAB_LINK = f"""bandwidth=7 bridge=zqx disable=true shutdown=true prefix=10.77.0.0/24 prefix={{ipv4: 10.77.0.0/24}} prefix={{allocation: id_based}}
prefix=false ra={{disable: true}} role=zqx pool=zqx tc={{delay: 7}} tc={{jitter: 7}} tc={{loss: 7}} tc={{corrupt: 7}} tc={{duplicate: 7}} tc={{reorder: 7}}
tc={{rate: 7}} tc={{zqx: 7}} type=p2p type=tunnel unnumbered=true mtu=1300 vlan_name=zqx gateway=true dhcp={MAP} zqx ospf.cost=7 ospf.area=0.0.0.7
ospf.bfd=true ospf.passive=true ospf.network_type=broadcast ospf.digest={MAP} ospf.password=zqx ospf.timers={MAP} bgp.advertise=true ospf=false bgp=false"""
NETLAB_INTERFACE = f"""ipv4=10.3.0.77/24 ipv4=77 ipv4=true ipv6='2001:db8::7/64' ifindex=77 ifname=zqx7 mtu=1300 tc={{delay: 7}} shutdown=true unnumbered=true
ospf.cost=7 ospf.area=0.0.0.7 ospf.priority=7 ospf.passive=true ospf=false bgp.local_as=7 bgp=false bandwidth=7 role=zqx gateway={MAP} zqx"""
NETLAB_GROUP = f"""members=[r1] vars={MAP} config={LIST} node_data={{mtu: 1300}} device=linux module=[ospf] mtu=1300 role=host zqx
ospf.area=0.0.0.7 bgp.as=7 cpu=7 memory=7 group=zqx loopback=false provider=clab type=vlan"""
# gns3-server 2.2, gns3server/schemas: docker.py, vpcs.py, node.py, link.py, topology.py
DOCKER = """image="zqx" adapters=9 aux=7 console=7 console_http_path="/zqx" console_http_port=7 console_resolution="800x600" console_type="vnc"
container_id="zqx" environment="A=1" extra_hosts="zqx:1.1.1.1" extra_volumes=["/zqx"] mac_address="02:00:00:00:00:09" start_command="zqx" usage="zqx"
custom_adapters=[{"adapter_number":0}] memory=77 cpus=7 zqx=7"""
GNS3_NODE = """console=7 console_type="vnc" console_auto_start=true compute_id="vm" first_port_name="zqx" port_name_format="zqx{0}" port_segment_size=7
symbol="zqx" template_id="zqx" locked=true label={} width=7 height=7 x=7 y=7 z=7 ports=[] custom_adapters=[{"adapter_number":0}] tags=["zqx"] zqx=7"""
GNS3_LINK = """suspend=true filters={"frequency_drop":[7]} filters={"packet_loss":[7]} filters={"delay":[7,7]} filters={"corrupt":[7]} filters={"bpf":["zqx"]}
filters={"zqx":[7]} link_style={} link_type="serial" capturing=true capture_file_name="zqx" link_id="zqx" zqx=7"""
GNS3_TOP = """auto_close=true auto_open=true auto_start=true computes=[] grid_size=7 drawing_grid_size=7 scene_height=7 scene_width=7
show_grid=true show_interface_labels=true show_layers=true snap_to_grid=true supplier={} variables=[{"name":"A","value":"7"}] zoom=7 project_id="zqx" zqx=7"""
# CORE 9.2, daemon/core/xml/corexml.py and its examples
CORE_DEVICE = (
    'server="zqx" icon="zqx" canvas="7" class="docker" image="zqx" compose="zqx" compose_name="zqx" zqx="7"'
)
CORE_NETWORK = 'server="zqx" icon="zqx" canvas="7" model="zqx" mobility="zqx" grekey="7" zqx="7"'
CORE_IFACE = (
    'mac="02:00:00:00:00:09" ip4="10.0.1.77" ip4_mask="25" ip6="2001:db8::7" ip6_mask="64" zqx="7" nem="7"'
)
CORE_OPTIONS = 'delay="7000" bandwidth="7000" loss="7" dup="7" jitter="7000" mer="7" burst="7" mburst="7" key="7" buffer="7" per="7" zqx="7"'

# Attributes that do not describe the network, with the reason: an importer drops them without a word.
SILENT = {
    "GNS3 node": {
        "console", "console_type", "console_auto_start", "first_port_name", "port_name_format", "port_segment_size", "symbol", "template_id",
        "locked", "label", "width", "height", "x", "y", "z", "ports", "compute_id", "tags",
    },  # drawing, windows, names of ports in the drawing, the server
    "GNS3 docker": {"aux", "console", "console_http_path", "console_http_port", "console_resolution", "console_type", "container_id", "usage", "adapters"},
    "GNS3 link": {"link_style", "capture_file_name", "link_id", "capturing"},
    "GNS3 top": {
        "auto_close", "auto_open", "auto_start", "computes", "grid_size", "drawing_grid_size", "scene_height", "scene_width", "show_grid",
        "show_interface_labels", "show_layers", "snap_to_grid", "supplier", "zoom", "project_id",
    },
    "CORE device": {"icon", "canvas", "class"}, "CORE network": {"icon", "canvas"},
    "netlab link": {"bridge", "type"},  # the name of a bridge; a segment of two nodes is a link
}  # fmt: skip


def yaml_key(name: str, value: str) -> str:
    return f"{name}: {value}"


def json_key(name: str, value: str) -> str:
    return f'"{name}": {value}'


def conf_key(name: str, value: str) -> str:
    return f'pc1[{name}]="{value}"'


def xml_key(name: str, value: str) -> str:
    return f"{name}={value}"


def split(names: Names) -> Iterator[tuple[str, str]]:
    """Yields each name with its value; blanks within brackets, braces and quotes are part of a value."""
    word, depth, quote = "", 0, ""
    for letter in f"{names} ":
        quote = "" if letter == quote else quote or (letter if letter in "'\"" else "")
        depth += (letter in "[{") - (letter in "]}")
        if letter.isspace() and not depth and not quote:
            if word:
                name, _, value = word.partition("=")
                yield name, value or "zqx"
            word = ""
        else:
            word += " " if letter == "\n" else letter


# The base of the cases names labels already; what a node has itself wins over its kind and group.
OF_NODE = CLAB_NODE.replace(f"labels={MAP} ", "")
KINDS = OF_NODE.replace(" kind=linux", "")
C, D, K, N, G, X = (module.TOOL for module in (containerlab, compose, kathara, netlab, gns3, core))
PC, IFACE = '"name": "pc1",', 'ip4="10.0.1.21"'
# Name: the tool, what is replaced, the text in its place with {}, what stands in its place without the attribute
# (None: what is replaced), the way that an attribute is written, and the attributes.
SWEEPS = {
    "containerlab node": (C, "      # b\n", "      {}\n", None, yaml_key, OF_NODE),
    "containerlab bridge": (C, "sw: {kind: bridge}", "sw: {{kind: bridge, {}}}", None, yaml_key, CLAB_NODE.replace(" kind=linux", "")),
    "containerlab kinds": (C, "kinds: {linux: {labels: {}}}", "kinds: {{linux: {{{}}}}}", None, yaml_key, KINDS),
    "containerlab groups": (C, "groups: {plain: {labels: {}}}\n  nodes:\n    a:\n", "groups: {{plain: {{{}}}}}\n  nodes:\n    a:\n      group: plain\n", "groups: {plain: {}}\n  nodes:\n    a:\n      group: plain\n", yaml_key,
                            KINDS.replace("group ", "").replace("cpu=3 ", "")),
    "containerlab top": (C, "name: lab\n", "name: lab\n{}\n", None, yaml_key, CLAB_TOP),
    "containerlab topology": (C, "  links:\n", "  {}\n  links:\n", None, yaml_key, "zqx=7"),
    "containerlab link": (C, "      # link\n", "      {}\n", None, yaml_key, CLAB_LINK),
    "containerlab end": (C, '["r:eth1", "d:eth1"]', '["r:eth1", {{node: d, interface: eth1, {}}}]', None, yaml_key, CLAB_END),
    "Compose service": (D, "    #db\n", "    {}\n", None, yaml_key, SERVICE),
    "Compose service network": (D, "{back: {ipv4_address: 172.20.0.9}}", "{{back: {{{}}}}}", "{back: {}}", yaml_key, SERVICE_NETWORK),
    "Compose network": (D, "front: {driver: bridge}", "front: {{{}}}", None, yaml_key, NETWORK),
    "Compose top": (D, "#file\n", "{}\n", None, yaml_key, COMPOSE_TOP),
    "Compose health": (D, "    #web\n", "    healthcheck: {{test: [CMD, a], {}}}\n", "    healthcheck: {test: [CMD, a]}\n", yaml_key, HEALTH),
    "Kathará": (K, "#conf\n", "{}\n", None, conf_key, KATHARA),
    "netlab top": (N, "#file\n", "{}\n", None, yaml_key, NETLAB_TOP),
    "netlab node": (N, "r3: {id: 3}", "r3: {{id: 3, {}}}", None, yaml_key, NETLAB_NODE),
    "netlab link": (N, "- {r2: {}, r3: {}, prefix: 10.3.0.0/24}", "- {{r2: {{}}, r3: {{}}, {}}}", "- {r2: {}, r3: {}}", yaml_key, NETLAB_LINK),
    "netlab interface": (N, "{r2: {}, r3: {}, prefix", "{{r2: {{{}}}, r3: {{}}, prefix", None, yaml_key, NETLAB_INTERFACE),
    "netlab group": (N, "  #groups\n", "  zone: {{members: [r2], {}}}\n", "  zone: {members: [r2]}\n", yaml_key, NETLAB_GROUP),
    "GNS3 docker": (G, '"image": "",', "{},", '"image": "",', json_key, DOCKER),
    "GNS3 node": (G, PC, PC + "{},", None, json_key, GNS3_NODE),
    "GNS3 link": (G, '"suspend": false', "{}", None, json_key, GNS3_LINK),
    "GNS3 top": (G, '"revision": 9,', '"revision": 9, {},', None, json_key, GNS3_TOP),
    "CORE device": (X, 'name="n5"', 'name="n5" {}', None, xml_key, CORE_DEVICE),
    "CORE network": (X, 'name="hub"', 'name="hub" {}', None, xml_key, CORE_NETWORK),
    "CORE interface": (X, f"{IFACE} ip4_mask=\"24\"", "{}", None, xml_key, CORE_IFACE),
    "CORE options": (X, '<options delay="25000"/>', "<options {}/>", "<options/>", xml_key, CORE_OPTIONS),
}  # fmt: skip


def silent_of(name: str, tmp_path: Path) -> list[str]:
    """Returns the attributes of a sweep that leave no trace: neither in the network, nor in the lines on what is
    left out or changed, nor as an error.
    """
    tool, old, template, before, write, names = SWEEPS[name]
    found = []
    base = tool.told(tmp_path / "base", Case("said", old, "", before))
    for key, value in split(names):
        text = template.format(write(key, value))
        try:
            made = tool.told(tmp_path / "changed", Case("said", old, text), changed=True)
        except TopologyError:
            continue
        if made == base:
            found.append(f"{key}={value}")
    return found


@pytest.mark.parametrize("name", SWEEPS)
def test_no_attribute_of_a_schema_vanishes(name: str, tmp_path: Path) -> None:
    found = [one for one in silent_of(name, tmp_path) if one.partition("=")[0] not in SILENT.get(name, ())]
    assert not found, found


@pytest.mark.parametrize("name", SILENT)
def test_what_is_silent_by_intent_is_so(name: str, tmp_path: Path) -> None:
    if name in SWEEPS:
        found = {one.partition("=")[0] for one in silent_of(name, tmp_path)}
        assert SILENT[name] <= found, SILENT[name] - found


@pytest.mark.parametrize("name", SWEEPS)
def test_reports_are_words_and_not_values_of_python(name: str, tmp_path: Path) -> None:
    tool, old, template, _, write, names = SWEEPS[name]
    for key, _ in split(names):
        for value in (LIST, MAP, "7", "zqx"):
            text = template.format(
                write(
                    key, value.replace("zqx", '"zqx"').replace("zqy", '"zqy"') if write is json_key else value
                )
            )
            if write is xml_key:
                continue
            try:
                lines = tool.told(tmp_path, Case("said", old, text), changed=True)[1]
            except TopologyError as error:
                lines = {str(error): 1}
            assert not [one for one in lines if "{'" in one or "['" in one or "None" in one], (
                key,
                value,
                lines,
            )
