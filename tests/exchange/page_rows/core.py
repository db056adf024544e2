"""Holds the cases of the section on CORE's scenarios."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import core

from . import Tool, both, imported, network, refused, said, silent

SCENARIO = """\
<scenario name="two">
  <networks>
    <network id="4" name="hub" type="HUB"></network>
    <!--nets-->
  </networks>
  <devices>
    <device id="1" name="n1" type="PC"><services><service name="IPForward"/><!--n1--></services></device>
    <device id="2" name="n2" type="PC"><services><service name="IPForward"/><!--n2--></services></device>
    <device id="3" name="n3" type="PC" class="docker"><!--n3--></device>
    <device id="5" name="n5" type="plain"></device>
  </devices>
  <links>
    <link node1="1" node2="2">
      <iface1 id="0" name="eth0" ip4="10.0.0.1" ip4_mask="24"/>
      <iface2 id="0" name="eth0" ip4="10.0.0.2" ip4_mask="24"/>
      <options delay="25000"/>
    </link>
    <link node1="4" node2="2"><iface2 id="1" name="eth1" ip4="10.0.1.1" ip4_mask="24"/></link>
    <link node1="4" node2="3"><iface2 id="0" name="eth0" ip4="10.0.1.20" ip4_mask="24"/></link>
    <link node1="4" node2="5"><iface2 id="0" name="eth0" ip4="10.0.1.21" ip4_mask="24"/></link>
    <!--links-->
  </links>
  <!--more-->
</scenario>
"""
OPTIONS, MORE = '<options delay="25000"/>', "<!--more-->"


def options(before: str, new: str) -> tuple[str, str, str]:
    return OPTIONS, f"<options {new}/>", f"<options {before}/>"


ROWS = {
    "device of any type": [
        network('name="n5"', 'name="n6"'), network('<service name="IPForward"/><!--n1-->', ""), network('name="n3" type="PC" class="docker"', 'name="n9" type="PC" class="docker"'),
        network('ip4="10.0.1.21" ip4_mask="24"', 'ip4="10.0.1.21" ip4_mask="24" ip6="2001::1" ip6_mask="64"'),
        network('ip4="10.0.1.21"', 'ip4="10.0.1.22"'), network('"10.0.0.1" ip4_mask="24"', '"10.0.0.1" ip4_mask="25"'),
        network('<service name="IPForward"/><!--n1-->', '<service name="BGP"/>', ""),
    ],
    "device without services": [
        *(both('name="n5" type="plain"', f'name="n5" type="{kind}"') for kind in ("router", "mdr")),
        *(both('name="n5" type="plain"', f'name="n5" type="{kind}"') for kind in ("PC", "host")),
    ],
    "network `SWITCH`, `HUB`": [
        network('node1="4" node2="5"><iface2 id="0" name="eth0" ip4="10.0.1.21"', 'node1="1" node2="5"><iface2 id="0" name="eth0" ip4="10.7.1.21"'),
        *(network("<!--nets-->", f'<network id="9" name="{kind.lower()}9" type="{kind}"/>') for kind in ("SWITCH", "HUB")),
    ],
    "`WIRELESS_LAN`, `WIRELESS`": [said('type="HUB"', 'type="WIRELESS_LAN"'), said('type="HUB"', 'type="WIRELESS"')],
    "link's `delay`, `jitter`": [
        network('"25000"', '"26000"'),
        *(network(*options(f'delay="9000" {key}="3"', f'delay="9000" {key}="4"')) for key in ("jitter", "bandwidth", "loss", "per", "dup", "buffer")),
        network(OPTIONS, '<options delay="25000" unidirectional="1"/>'),
    ],
    "link's `mer`, `burst`": [said(OPTIONS, f'<options delay="25000" {key}="3"/>') for key in ("mer", "burst", "mburst")],
    "`DefaultRoute`": [
        network('name="n5" type="plain"></device>', 'name="n5" type="plain"><services><service name="DefaultRoute"/></services></device>'),
    ],
    "no routing service on any device": [both("<!--n1-->", '<service name="RIP"/>')],
    "`OSPFv3`, `BGP`": [both("<!--n1-->", f'<service name="{name}"/>') for name in ("OSPFv3", "BGP", "RIP", "OLSR")],
    "`OSPFv2`, `FRROSPFv2` on every router": [
        both("<!--n1-->", '<service name="FRROSPFv2"/>'),
        both("<!--n1-->", '<service name="OSPFv2"/>'),
        network('<service name="IPForward"/><!--n1--></services></device>\n    <device id="2" name="n2" type="PC"><services><service name="IPForward"/><!--n2-->',
                '<service name="IPForward"/><service name="OSPFv2"/></services></device>\n    <device id="2" name="n2" type="PC"><services><service name="IPForward"/><service name="OSPFv2"/>'),
    ],
    "`wireless` options, `server`": [
        said('type="HUB"></network>', 'type="HUB"><wireless><configuration name="bandwidth" value="5"/></wireless></network>'),
        *(said('name="n5" type', f'name="n5" {key}="x" type') for key in ("server", "compose")), said('name="hub" type', 'name="hub" server="x" type'),
        *(said('name="hub" type', f'name="hub" {key}="x" type') for key in ("model", "mobility", "grekey")), said('ip4="10.0.1.21"', 'nem="3" ip4="10.0.1.21"'),
        said('<link node1="4" node2="5">', '<link x="4" node1="4" node2="5">'), said('name="n5" type', 'name="n5" x="y" type'),
    ],
    "other services, hooks, images": [
        said("<!--n1-->", '<service name="DHCP"/>'), said("<!--n1-->", '<service name="SSH"/>'), said(MORE, '<session_hooks><hook name="a.sh" state="4">x</hook></session_hooks>'),
        said('class="docker"', 'class="docker" image="alpine"'), said('ip4="10.0.1.21"', 'mac="00:00:00:00:00:01" ip4="10.0.1.21"'),
        said("<!--nets-->", '<network id="9" name="card" type="RJ45"/>'),
        said("<!--nets-->", '<network id="9" name="card" type="RJ45"/>') ,
    ],
    "`mobility_configurations`": [
        said(MORE, '<mobility_configurations><mobility_configuration node="4" model="ns2script"/></mobility_configurations>'),
        said(MORE, '<emane_configurations><emane_configuration node="4" model="rfpipe"/></emane_configurations>'),
        said(MORE, '<session_options><configuration name="controlnet" value="172.16.0.0/24"/></session_options>'),
        said(MORE, '<strange_section><one name="x"/></strange_section>'),
        silent(MORE, '<session_metadata><configuration name="canvas" value="x"/></session_metadata>'), silent(MORE, '<session_origin lat="5"/>'),
        silent(MORE, '<default_services><node type="mdr"/></default_services>'),
    ],
    "`EMANE`, `TUNNEL`": [refused("<!--nets-->", f'<network id="9" name="x" type="{kind}"/>') for kind in ("EMANE", "TUNNEL")],
}  # fmt: skip
TOOL = Tool("CORE's scenarios", {"x.xml": SCENARIO}, "x.xml", imported(core.read), ROWS)
