"""Malformed topologies: each case changes one thing of a right file and names the rule that it breaks."""

from __future__ import annotations

from dataclasses import dataclass

BASE = """\
name: small
parameters:
  clients: {type: int, default: 3, min: 1, max: 9}
  hold: {type: duration, default: 20 s}
segments:
  field: {subnet: 10.1.0.0/24}
  office: {}
nodes:
  broker:
    segment: office
    software:
      mosquitto: {broker: mosquitto}
  reader:
    segment: office
    software:
      sub:
        mqtt: {broker: broker, subscribe: [{topic: m/#, qos: 1}]}
groups:
  client:
    count: ${clients}
    segment: field
    software:
      pub:
        mqtt:
          broker: broker
          publish: {topic: "m/{index}", qos: 1, rate: 10 /s}
links:
  wan:
    between: [field, office]
    both: {delay: 10 ms, jitter: 1 ms}
captures:
  main: {at: node broker}
timeline:
  - {at: hold + 5 s, link-down: wan, for: 2 s}
run: {connect_interval: 100 ms, hold: "${hold}", drain: 5 s}
"""


@dataclass(frozen=True)
class Case:
    """`old` of BASE becomes `new`; `place: rule` must then be among the problems, at the line given."""

    name: str
    old: str
    new: str
    place: str
    rule: str
    line: int | None = None  # None: the line where `old` begins in BASE


_NET = "field: {subnet: 10.1.0.0/24}"
_WAN = "both: {delay: 10 ms, jitter: 1 ms}"
_BROKER = "mosquitto: {broker: mosquitto}"
_SUB = "mqtt: {broker: broker, subscribe: [{topic: m/#, qos: 1}]}"
_PUB = 'publish: {topic: "m/{index}", qos: 1, rate: 10 /s}'
_EVENT = "{at: hold + 5 s, link-down: wan, for: 2 s}"
_RUN = 'run: {connect_interval: 100 ms, hold: "${hold}", drain: 5 s}'
_BETWEEN = "between: [field, office]"
_CLIENTS = "clients: {type: int, default: 3, min: 1, max: 9}"
_HOLD = "hold: {type: duration, default: 20 s}"
_EDGE = "links.wan.both"
_MQTT = "nodes.reader.software.sub.mqtt"
_PUBLISH = "groups.client.software.pub.mqtt.publish"


def _impaired(new: str) -> str:
    return f"both: {{{new}}}"


CASES = [
    # --- YAML itself
    Case("tab", "  office: {}", "\toffice: {}", "", "is not YAML"),
    Case("open bracket", _BETWEEN, "between: [field, office", "", "is not YAML", 30),
    Case(
        "duplicate key",
        "  office: {}",
        "  office: {}\n  office: {mtu: 900}",
        "segments.office",
        "stands twice",
        8,
    ),
    Case("duplicate section", "captures:", "run: {}\ncaptures:", "run", "stands twice, first in line 31", 36),
    Case("tag", "name: small", "name: !!python/object small", "", "YAML tags are not read"),
    Case("unknown alias", "name: small", "name: *small", "", "this alias has no anchor before it"),
    Case("list as key", "  office: {}", "  ? [a]\n  : {}", "segments", "a key must be plain text"),
    Case("two documents", "groups:", "---\ngroups:", "", "holds a second document"),
    Case("colon in text", "name: small", "name: a: b", "", "is not YAML"),
    Case("control character", "name: small", "name: \x01", "", "is not YAML", 1),
    # --- shape and keys
    Case(
        "unknown section", "captures:", "capture:", "capture", 'is not a key here; did you mean "captures"?'
    ),
    Case(
        "unknown key",
        _NET,
        "field: {subnet: 10.1.0.0/24, mut: 9000}",
        "segments.field.mut",
        'did you mean "mtu"?',
    ),
    Case(
        "unknown impairment key", _WAN, _impaired("dealy: 10 ms"), f"{_EDGE}.dealy", 'did you mean "delay"?'
    ),
    Case("camel case", _RUN, "run: {holdTime: 1 s}", "run.holdTime", "is not a key here"),
    Case("no name", "name: small\n", "seed: 1\n", "name", "is missing", 1),
    Case("upper case name", "name: small", "name: Small", "name", "does not match"),
    Case("long name", "name: small", "name: " + "a" * 41, "name", "is longer than 40 characters"),
    Case("node with underscore", "  reader:", "  re_ader:", "nodes.re_ader", "does not match"),
    Case("node ends in hyphen", "  reader:", "  reader-:", "nodes.reader-", "does not match"),
    Case("node with dot", "  reader:", "  a.b:", "nodes.a.b", "does not match"),
    Case("segments a list", "segments:\n", "segments: [a]\nx:\n", "segments", "must be a mapping"),
    Case("segment a number", "office: {}", "office: 7", "segments.office", "must be a mapping"),
    Case(
        "node a text",
        "  reader:\n    segment: office\n",
        "  reader: office\n  other:\n    segment: office\n",
        "nodes.reader",
        "must be a mapping",
    ),
    Case("timeline a mapping", f"  - {_EVENT}", "  a: 1", "timeline", "must be a list", 33),
    Case("between a text", _BETWEEN, "between: field-office", "links.wan.between", "must be a list"),
    Case("between of one", _BETWEEN, "between: [field]", "links.wan.between", "must have at least 2 items"),
    Case(
        "between of three",
        _BETWEEN,
        "between: [field, office, x]",
        "links.wan.between",
        "must have at most 2 items",
    ),
    Case("null section value", "  office: {}", "  office:", "segments.office", "must be a mapping"),
    Case("seed text", "name: small", "name: small\nseed: one", "seed", "must be a whole number", 2),
    Case("seed negative", "name: small", "name: small\nseed: -1", "seed", "must be at least 0", 2),
    Case("seed with fraction", "name: small", "name: small\nseed: 1.5", "seed", "must be a whole number", 2),
    Case(
        "seed of 30 digits",
        "name: small",
        "name: small\nseed: " + "9" * 30,
        "seed",
        "must be a whole number",
        2,
    ),
    Case(
        "reference a text",
        "name: small",
        "name: small\nreference: vnet_2014",
        "reference",
        "must be a mapping",
        2,
    ),
    Case(
        "reference without scenario",
        "name: small",
        "name: small\nreference: {name: vnet_2014}",
        "reference.scenario",
        "is missing",
        2,
    ),
    Case(
        "kind jail",
        "    segment: field",
        "    segment: field\n    kind: jail",
        "groups.client.kind",
        "is not one of the values",
        22,
    ),
    Case(
        "image on a light node",
        "    segment: field",
        "    segment: field\n    image: builtin",
        "groups.client.image",
        "is only for kind vm",
        22,
    ),
    Case(
        "memory limit of a machine",
        "    segment: field",
        "    segment: field\n    kind: vm\n    memory_limit: 64 MiB",
        "groups.client.memory_limit",
        "is only for kind light",
        23,
    ),
    Case(
        "too little memory",
        "    segment: field",
        "    segment: field\n    kind: vm\n    memory: 16 MiB",
        "groups.client.memory",
        "is less than 32 MiB",
        23,
    ),
    Case(
        "cloud-init in a built-in image",
        "    segment: field",
        "    segment: field\n    kind: vm\n    cloud_init: {packages: [chrony]}",
        "groups.client.cloud_init",
        "needs an image with cloud-init",
        23,
    ),
    Case(
        "cloud-init in the built-in image with drivers",
        "    segment: field",
        "    segment: field\n    kind: vm\n    image: builtin-nic\n    cloud_init: {packages: [chrony]}",
        "groups.client.cloud_init",
        "needs an image with cloud-init",
        24,
    ),
    Case(
        "no time to boot",
        "    segment: field",
        "    segment: field\n    kind: vm\n    boot_within: 0 s",
        "groups.client.boot_within",
        "is no time at all",
        23,
    ),
    Case(
        "more CPUs than the tiny kernel has",
        "    segment: field",
        "    segment: field\n    kind: vm\n    image: builtin-tiny\n    vcpus: 2",
        "groups.client.vcpus",
        "is more than builtin-tiny can use",
        24,
    ),
    Case(
        "the embedded driver's files elsewhere",
        "name: small",
        "name: small\nlibvirt: qemu:///embed?root=/tmp/x",
        "libvirt",
        "they are the lab's own",
        2,
    ),
    Case(
        "the embedded driver by a socket",
        "name: small",
        "name: small\nlibvirt: qemu+unix:///embed",
        "libvirt",
        "they are the lab's own",
        2,
    ),
    # --- units
    Case("delay without unit", _WAN, _impaired("delay: 10"), f"{_EDGE}.delay", "has no unit"),
    Case("delay in unknown unit", _WAN, _impaired("delay: 10 sec"), f"{_EDGE}.delay", '"sec" is not a unit'),
    Case("delay negative", _WAN, _impaired("delay: -10 ms"), f"{_EDGE}.delay", "cannot be negative"),
    Case("delay a list", _WAN, _impaired("delay: [10 ms]"), f"{_EDGE}.delay", "is not a duration"),
    Case("delay null", _WAN, _impaired("delay: "), f"{_EDGE}.delay", "is not a duration"),
    Case(
        "loss over 100 %", _WAN, _impaired("loss: 101 %"), f"{_EDGE}.loss", "is more than the largest share"
    ),
    Case("loss negative", _WAN, _impaired("loss: -1 %"), f"{_EDGE}.loss", "cannot be negative"),
    Case("loss as fraction", _WAN, _impaired("loss: 0.01"), f"{_EDGE}.loss", "has no unit"),
    Case("rate in bytes", _WAN, _impaired("rate: 10 MB/s"), f"{_EDGE}.rate", "counts bytes"),
    Case("rate in Mbps", _WAN, _impaired("rate: 10 Mbps"), f"{_EDGE}.rate", '"Mbps" is not a unit of rate'),
    Case("hold a number", _RUN, 'run: {hold: 60, drain: "${hold}"}', "run.hold", "has no unit"),
    Case(
        "memory without unit",
        "    segment: field",
        "    segment: field\n    memory_limit: 256",
        "groups.client.memory_limit",
        "has no unit",
        22,
    ),
    Case(
        "cpu in percent",
        "    segment: field",
        "    segment: field\n    cpu_limit: 50 %",
        "groups.client.cpu_limit",
        "is not a unit of CPU",
        22,
    ),
    Case(
        "cpu of zero",
        "    segment: field",
        "    segment: field\n    cpu_limit: 0 MHz",
        "groups.client.cpu_limit",
        "must be more than zero",
        22,
    ),
    Case(
        "publish rate in Hz",
        _PUB,
        _PUB.replace("10 /s", "10 Hz"),
        f"{_PUBLISH}.rate",
        "is not a unit of frequency",
    ),
    Case(
        "publish rate zero", _PUB, _PUB.replace("10 /s", "0 /s"), f"{_PUBLISH}.rate", "must be more than zero"
    ),
    Case(
        "seed over 63 bits",
        "name: small",
        "name: small\nseed: 9223372036854775808",
        "seed",
        "must be at most 9223372036854775807",
        2,
    ),
    Case(
        "limit over 32 bits",
        _WAN,
        _impaired("delay: 1 ms, limit: 4294967296"),
        f"{_EDGE}.limit",
        "must be at most 4294967295",
    ),
    Case(
        "too little memory for anything",
        "    segment: field",
        "    segment: field\n    memory_limit: 1 B",
        "groups.client.memory_limit",
        "is less than 1 MiB",
        22,
    ),
    Case(
        "cpu of a billionth",
        "    segment: field",
        "    segment: field\n    cpu_limit: 0.000000001 cores",
        "groups.client.cpu_limit",
        "is less than 0.001 cores",
        22,
    ),
    Case(
        "reserves more than it may use",
        "    segment: field",
        "    segment: field\n    cpu_limit: 200 MHz\n    cpu_reserve: 300 MHz",
        "groups.client.cpu_reserve",
        "is more than its cpu_limit",
        23,
    ),
    # --- parameters
    Case(
        "unknown parameter",
        "count: ${clients}",
        "count: ${client}",
        "groups.client.count",
        'no parameter is called "client"; did you mean "clients"?',
    ),
    Case(
        "unknown parameter in text",
        '"m/{index}"',
        '"m/${x}"',
        f"{_PUBLISH}.topic",
        'no parameter is called "x"',
        26,
    ),
    Case("unused parameter", _RUN, "run: {hold: 20 s}", "parameters.hold", "is used nowhere", 4),
    Case("parameter without type", _HOLD, "hold: {default: 20 s}", "parameters.hold.type", "is missing"),
    Case(
        "parameter of unknown type",
        _HOLD,
        "hold: {type: time, default: 20 s}",
        "parameters.hold.type",
        "is not one of the values",
    ),
    Case(
        "parameter of wrong type",
        _CLIENTS,
        "clients: {type: int, default: three}",
        "parameters.clients.default",
        "is not a whole number",
    ),
    Case(
        "parameter below min",
        _CLIENTS,
        _CLIENTS.replace("default: 3", "default: 0"),
        "parameters.clients.default",
        "must be at least 1",
    ),
    Case(
        "parameter above max",
        _CLIENTS,
        _CLIENTS.replace("default: 3", "default: 10"),
        "parameters.clients.default",
        "must be at most 9",
    ),
    Case(
        "parameter no choice",
        _CLIENTS,
        "clients: {type: int, default: 3, choices: [1, 2]}",
        "parameters.clients.default",
        "is not one of the choices",
    ),
    Case("parameter without value", _CLIENTS, "clients: {type: int}", "parameters.clients", "has no default"),
    Case(
        "parameter without unit",
        _HOLD,
        "hold: {type: duration, default: 20}",
        "parameters.hold.default",
        "has no unit",
    ),
    Case(
        "parameter bounds of text",
        _HOLD,
        "hold: {type: text, default: 20 s, min: 1}",
        "parameters.hold.default",
        "min and max mean nothing",
    ),
    Case(
        "parameter name",
        _HOLD,
        "hold-time: {type: duration, default: 20 s}",
        "parameters.hold-time",
        "a parameter's name is",
    ),
    Case(
        "parameters a list", "parameters:\n", "parameters: []\nsegment:\n", "parameters", "must be a mapping"
    ),
    Case(
        "parameter where another type is due",
        "count: ${clients}",
        'count: "${hold}"',
        "groups.client.count",
        "must be a whole number",
    ),
    # --- segments and addresses
    Case(
        "host bits in subnet",
        _NET,
        "field: {subnet: 10.1.0.1/24}",
        "segments.field.subnet",
        "has host bits set",
    ),
    Case(
        "subnet no address", _NET, "field: {subnet: here}", "segments.field.subnet", "is not an IPv4 subnet"
    ),
    Case("subnet a number", _NET, "field: {subnet: 10.1}", "segments.field.subnet", "is not an IPv4 subnet"),
    Case(
        "subnet octet",
        _NET,
        "field: {subnet: 10.1.256.0/24}",
        "segments.field.subnet",
        "is not an IPv4 subnet",
    ),
    Case(
        "subnet IPv6", _NET, 'field: {subnet: "fd00::/64"}', "segments.field.subnet", "is not an IPv4 subnet"
    ),
    Case(
        "subnet /31",
        _NET,
        "field: {subnet: 10.1.0.0/31}",
        "segments.field.subnet",
        "needs a prefix from /8 to /30",
    ),
    Case(
        "subnet loopback",
        _NET,
        "field: {subnet: 127.0.0.0/8}",
        "segments.field.subnet",
        "have another meaning",
    ),
    Case(
        "subnet multicast",
        _NET,
        "field: {subnet: 224.0.0.0/24}",
        "segments.field.subnet",
        "have another meaning",
    ),
    Case("no subnet at all", _NET, "field: {}", "segments.field", "has no subnet"),
    Case(
        "joined, other subnet",
        "office: {}",
        "office: {subnet: 10.2.0.0/24}",
        "segments.office.subnet",
        "joined segments are one subnet",
    ),
    Case(
        "joined, other MTU",
        "office: {}",
        "office: {mtu: 1400}",
        "segments.office.mtu",
        "bridges do not fragment",
    ),
    Case(
        "overlap",
        "office: {}",
        "office: {}\n  far: {subnet: 10.0.0.0/8}",
        "segments.far.subnet",
        "overlaps 10.1.0.0/24 of segment field",
        8,
    ),
    Case("MTU too small", "office: {}", "office: {mtu: 100}", "segments.office.mtu", "must be at least 576"),
    Case("MTU text", "office: {}", "office: {mtu: 1500 B}", "segments.office.mtu", "must be a whole number"),
    Case("ipv6 text", "office: {}", "office: {ipv6: on}", "segments.office.ipv6", "must be true or false"),
    Case(
        "subnet too small",
        _NET,
        "field: {subnet: 10.1.0.0/30}",
        "segments.field.subnet",
        "has 2 addresses for 5 interfaces",
    ),
    Case(
        "too many ports",
        "count: ${clients}",
        "count: 1100\n    cpu_limit: ${clients} MHz",
        "segments.field",
        "a Linux bridge has at most 1023",
        6,
    ),
    Case(
        "address outside",
        "  reader:\n",
        "  reader:\n    address: 10.2.0.1\n",
        "nodes.reader.address",
        "is not a host's address in 10.1.0.0/24",
        14,
    ),
    Case(
        "address of the network",
        "  reader:\n",
        "  reader:\n    address: 10.1.0.0\n",
        "nodes.reader.address",
        "is not a host's address",
        14,
    ),
    Case(
        "address of broadcast",
        "  reader:\n",
        "  reader:\n    address: 10.1.0.255\n",
        "nodes.reader.address",
        "is not a host's address",
        14,
    ),
    Case(
        "address no address",
        "  reader:\n",
        "  reader:\n    address: first\n",
        "nodes.reader.address",
        "is not an IPv4 address",
        14,
    ),
    # --- nodes and names
    Case(
        "unknown segment",
        "segment: field",
        "segment: feild",
        "groups.client.segment",
        'no segment is called that; did you mean "field"?',
    ),
    Case(
        "segment twice",
        "segment: field",
        "segment: [field, field]",
        "groups.client.segment",
        "names a segment twice",
    ),
    Case("no segment", "    segment: field\n", "", "groups.client.segment", "is missing", 19),
    Case(
        "segment list empty",
        "segment: field",
        "segment: []",
        "groups.client.segment",
        "must have at least 1 items",
    ),
    Case(
        "name of node and segment", "  reader:", "  office:", "nodes.office", "is already that of a segment"
    ),
    Case(
        "name of node and member", "  reader:", "  client2:", "groups.client", "is already that of a node", 19
    ),
    Case(
        "count zero",
        "count: ${clients}",
        'count: 0\n    cpu_limit: "${clients} MHz"',
        "groups.client.count",
        "must be at least 1",
    ),
    Case(
        "count text",
        "count: ${clients}",
        'count: many\n    cpu_limit: "${clients} MHz"',
        "groups.client.count",
        "must be a whole number",
    ),
    Case(
        "count true",
        "count: ${clients}",
        'count: true\n    cpu_limit: "${clients} MHz"',
        "groups.client.count",
        "must be a whole number",
    ),
    # --- links
    Case(
        "link to nowhere",
        _BETWEEN,
        "between: [field, ofice]",
        "links.wan.between[1]",
        'did you mean "office"?',
    ),
    Case(
        "link from nowhere",
        _BETWEEN,
        "between: [feld, office]",
        "links.wan.between[0]",
        'did you mean "field"?',
    ),
    Case(
        "link of two nodes",
        _BETWEEN,
        "between: [reader, broker]",
        "links.wan.between[1]",
        "the second end of a link is a segment",
    ),
    Case(
        "link turned", _BETWEEN, "between: [office, reader]", "links.wan.between[1]", "write [reader, office]"
    ),
    Case(
        "link to itself",
        _BETWEEN,
        "between: [field, field]",
        "links.wan.between",
        "joins a segment to itself",
    ),
    Case(
        "link to another segment",
        _BETWEEN,
        "between: [reader, field]",
        "links.wan.between[1]",
        "reader is not on this segment",
    ),
    Case(
        "parallel links",
        "captures:",
        "  wan2: {between: [office, field]}\ncaptures:",
        "links.wan2.between",
        "already joins field and office",
        31,
    ),
    Case(
        "both and forward",
        _WAN,
        _WAN + "\n    forward: {delay: 1 ms}",
        "links.wan.both",
        "stands beside forward or reverse",
    ),
    Case(
        "same link name by expansion",
        "captures:",
        "  a: {between: [client, field]}\n  a-client1: {between: [reader, office]}\ncaptures:",
        "links.a-client1",
        "would have the same name",
        32,
    ),
    # --- impairments
    Case(
        "jitter over delay",
        _WAN,
        _impaired("delay: 1 ms, jitter: 2 ms"),
        f"{_EDGE}.jitter",
        "is more than the delay",
    ),
    Case(
        "jitter without delay", _WAN, _impaired("jitter: 2 ms"), f"{_EDGE}.jitter", "is more than the delay"
    ),
    Case(
        "reorder without delay", _WAN, _impaired("reorder: 5 %"), f"{_EDGE}.reorder", "reorder without delay"
    ),
    Case(
        "distribution without jitter",
        _WAN,
        _impaired("delay: 9 ms, distribution: normal"),
        f"{_EDGE}.distribution",
        "shapes a jitter",
    ),
    Case(
        "unknown distribution",
        _WAN,
        _impaired("delay: 9 ms, jitter: 1 ms, distribution: gauss"),
        f"{_EDGE}.distribution",
        "is not one of the values",
    ),
    Case(
        "delay correlation alone",
        _WAN,
        _impaired("delay: 9 ms, delay_correlation: 5 %"),
        f"{_EDGE}.delay_correlation",
        "correlates jitter",
    ),
    Case(
        "loss correlation alone",
        _WAN,
        _impaired("loss_correlation: 5 %"),
        f"{_EDGE}.loss_correlation",
        "correlates loss",
    ),
    Case(
        "two loss models",
        _WAN,
        _impaired("loss: 1 %, gilbert_elliott: {good_to_bad: 1 %, bad_to_good: 9 %}"),
        f"{_EDGE}.gilbert_elliott",
        "netem has one loss model",
    ),
    Case(
        "half a loss model",
        _WAN,
        _impaired("gilbert_elliott: {good_to_bad: 1 %}"),
        f"{_EDGE}.gilbert_elliott.bad_to_good",
        "is missing",
    ),
    Case("delay too fine", _WAN, _impaired("delay: 1.5 us"), f"{_EDGE}.delay", "is finer than 1 us"),
    Case(
        "correlation of 100 %",
        _WAN,
        _impaired("loss: 1 %, loss_correlation: 100 %"),
        f"{_EDGE}.loss_correlation",
        "would repeat its first draw for ever",
    ),
    Case("delay too long", _WAN, _impaired("delay: 5 min"), f"{_EDGE}.delay", "is more than 274 s"),
    Case("rate zero", _WAN, _impaired("rate: 0 kbit/s"), f"{_EDGE}.rate", "would never send a packet"),
    Case("limit zero", _WAN, _impaired("delay: 1 ms, limit: 0"), f"{_EDGE}.limit", "must be at least 1"),
    Case(
        "limit with unit",
        _WAN,
        _impaired("delay: 1 ms, limit: 1000 packets"),
        f"{_EDGE}.limit",
        "must be a whole number",
    ),
    # --- software
    Case(
        "software of no kind",
        _BROKER,
        "mosquitto: {port: 1883}",
        "nodes.broker.software.mosquitto",
        "exactly one of the keys broker, mqtt, command and frames",
    ),
    Case(
        "software of two kinds",
        _BROKER,
        "mosquitto: {broker: mosquitto, command: x}",
        "nodes.broker.software.mosquitto",
        "exactly one of the keys",
    ),
    Case(
        "software a text",
        _BROKER,
        "mosquitto: mosquitto",
        "nodes.broker.software.mosquitto",
        "exactly one of the keys",
    ),
    Case(
        "unknown broker",
        _BROKER,
        "mosquitto: {broker: emqx}",
        "nodes.broker.software.mosquitto.broker",
        "write mosquitto",
    ),
    Case(
        "broker port",
        _BROKER,
        "mosquitto: {broker: mosquitto, port: 70000}",
        "nodes.broker.software.mosquitto.port",
        "must be at most 65535",
    ),
    Case(
        "broker ports twice",
        _BROKER,
        _BROKER + "\n      second: {broker: mosquitto}",
        "nodes.broker.software.second.port",
        "is already the port of mosquitto",
        13,
    ),
    Case(
        "no such broker node",
        _SUB,
        _SUB.replace("broker: broker", "broker: brokr"),
        f"{_MQTT}.broker",
        'did you mean "broker"?',
    ),
    Case(
        "node without broker",
        _SUB,
        _SUB.replace("broker: broker", "broker: reader"),
        f"{_MQTT}.broker",
        "no broker runs on this node",
    ),
    Case(
        "broker out of reach",
        "    between: [field, office]\n    both: {delay: 10 ms, jitter: 1 ms}",
        "    between: [reader, office]",
        "groups.client.software.pub.mqtt.broker",
        "no link joins its segment",
        25,
    ),
    Case("idle client", _SUB, "mqtt: {broker: broker}", _MQTT, "neither publishes nor subscribes"),
    Case("qos 3", _SUB, _SUB.replace("qos: 1", "qos: 3"), f"{_MQTT}.subscribe[0].qos", "must be at most 2"),
    Case(
        "qos text",
        _SUB,
        _SUB.replace("qos: 1", "qos: one"),
        f"{_MQTT}.subscribe[0].qos",
        "must be a whole number",
    ),
    Case(
        "MQTT 4",
        _SUB,
        _SUB.replace("broker: broker", "broker: broker, version: 4"),
        f"{_MQTT}.version",
        "is not one of the values",
    ),
    Case(
        "keepalive in ms",
        _SUB,
        _SUB.replace("broker: broker", "broker: broker, keepalive: 1500 ms"),
        f"{_MQTT}.keepalive",
        "must be whole seconds",
    ),
    Case(
        "placeholder",
        _PUB,
        _PUB.replace("{index}", "{number}"),
        f"{_PUBLISH}.topic",
        "no placeholder is called {number}",
    ),
    Case(
        "wildcard in message topic",
        _PUB,
        _PUB.replace("m/{index}", "m/#"),
        f"{_PUBLISH}.topic",
        "has no wildcards",
    ),
    Case(
        "filter # inside", _SUB, _SUB.replace("m/#", "'#/m'"), f"{_MQTT}.subscribe[0].topic", "# stands alone"
    ),
    Case(
        "filter + inside", _SUB, _SUB.replace("m/#", "a+/m"), f"{_MQTT}.subscribe[0].topic", "+ stands alone"
    ),
    Case(
        "subscribe a text",
        _SUB,
        "mqtt: {broker: broker, subscribe: m/#}",
        f"{_MQTT}.subscribe",
        "must be a list",
    ),
    Case(
        "payload too small",
        _PUB,
        _PUB.replace("qos: 1", "payload_size: 10 B"),
        f"{_PUBLISH}.payload_size",
        "payload has from 256",
    ),
    Case(
        "unknown payload",
        _PUB,
        _PUB.replace("qos: 1", "payload: json"),
        f"{_PUBLISH}.payload",
        "write metering-xml",
    ),
    Case(
        "inflight 0",
        _PUB,
        _PUB.replace("qos: 1", "inflight: 0"),
        f"{_PUBLISH}.inflight",
        "must be at least 1",
    ),
    Case(
        "variable with =",
        _BROKER,
        _BROKER + '\n      x: {command: ls, env: {"A=B": x}}',
        "nodes.broker.software.x.env.A=B",
        "is not the name of a variable",
        13,
    ),
    Case(
        "zero byte in a command",
        _BROKER,
        _BROKER + '\n      x: {command: "ls\\0"}',
        "nodes.broker.software.x.command",
        "holds a zero byte",
        13,
    ),
    Case(
        "file below a file",
        _BROKER,
        _BROKER + "\n      x: {command: ls, files: {a: x, a/b: y}}",
        "nodes.broker.software.x.files.a",
        "another file lies below it",
        13,
    ),
    Case(
        "ready within no time",
        _BROKER,
        _BROKER + "\n      x: {command: ls, ready: {tcp: 1, within: 0 s}}",
        "nodes.broker.software.x.ready.within",
        "is no time at all",
        13,
    ),
    Case(
        "two lines in one option",
        _BROKER,
        'mosquitto: {broker: mosquitto, options: {"a\\nlistener": 1}}',
        "nodes.broker.software.mosquitto.options.a\\nlistener",
        "is not one line of a configuration",
    ),
    Case(
        "key with a line break",
        "  reader:",
        '  "re\\nader":',
        "nodes.re\\nader",
        "does not match",
    ),
    Case(
        "topic with a zero byte",
        _PUB,
        _PUB.replace("m/{index}", "m\\0"),
        f"{_PUBLISH}.topic",
        "no control characters",
    ),
    Case(
        "topic too long",
        _PUB,
        _PUB.replace("m/{index}", "m" * 65_490 + "/{node}"),
        f"{_PUBLISH}.topic",
        "a topic has at most 65535 bytes",
    ),
    Case(
        "filter that is an option",
        "main: {at: node broker}",
        "main: {at: node broker, filter: -v}",
        "captures.main.filter",
        "is an option of tcpdump",
    ),
    Case(
        "range beyond the names",
        _EVENT,
        '{at: hold, run: ls, on: "client[1-4]"}',
        "timeline[0].on",
        "no node or group is called client4",
    ),
    Case(
        "range of seven digits",
        _EVENT,
        '{at: hold, run: ls, on: "client[1-9999999]"}',
        "timeline[0].on",
        "no node or group is called client4",
    ),
    Case(
        "list in a range",
        _EVENT,
        '{at: hold, run: ls, on: "client[1,3-12]"}',
        "timeline[0].on",
        "no node or group is called client4",
    ),
    Case(
        "down for no time",
        _EVENT,
        "{at: hold + 5 s, link-down: wan, for: 0 s}",
        "timeline[0].for",
        "is no time at all",
    ),
    Case(
        "command empty",
        _BROKER,
        _BROKER + "\n      x: {command: []}",
        "nodes.broker.software.x.command",
        "must have at least 1 items",
        13,
    ),
    Case(
        "command of numbers",
        _BROKER,
        _BROKER + "\n      x: {command: [sleep, 5]}",
        "nodes.broker.software.x.command[1]",
        "must be text",
        13,
    ),
    Case(
        "template syntax",
        _BROKER,
        _BROKER + '\n      x: {command: "echo {{ node"}',
        "nodes.broker.software.x.command",
        "is not a template",
        13,
    ),
    Case(
        "template name",
        _BROKER,
        _BROKER + '\n      x: {command: "echo {{ host }}"}',
        "nodes.broker.software.x.command",
        "no name host in templates",
        13,
    ),
    Case(
        "two probes",
        _BROKER,
        _BROKER + "\n      x: {command: a, ready: {tcp: 1, log: b}}",
        "nodes.broker.software.x.ready",
        "exactly one of the keys tcp, log and command",
        13,
    ),
    Case(
        "file above",
        _BROKER,
        _BROKER + "\n      x: {command: a, files: {../x: b}}",
        "nodes.broker.software.x.files.../x",
        "is not a path below",
        13,
    ),
    Case(
        "restart word",
        _BROKER,
        _BROKER + "\n      x: {command: a, restart: yes}",
        "nodes.broker.software.x.restart",
        "is not one of the values",
        13,
    ),
    # --- captures
    Case(
        "capture nowhere", "at: node broker", "at: node brokr", "captures.main.at", 'did you mean "broker"?'
    ),
    Case("capture of a kind", "at: node broker", "at: bridge office", "captures.main.at", "does not match"),
    Case(
        "capture of a link", "at: node broker", "at: link lan", "captures.main.at", "no link is called that"
    ),
    Case(
        "capture snaplen",
        "at: node broker",
        "at: node broker, snaplen: 10",
        "captures.main.snaplen",
        "must be at least 60",
    ),
    Case(
        "capture filter lines",
        "at: node broker",
        'at: node broker, filter: "tcp\\nudp"',
        "captures.main.filter",
        "does not match",
    ),
    # --- timeline
    Case("event without action", _EVENT, "{at: hold}", "timeline[0]", "an event has exactly one action"),
    Case(
        "event with two actions",
        _EVENT,
        "{at: hold, link-down: wan, stop: reader}",
        "timeline[0]",
        "exactly one action",
    ),
    Case("event without time", _EVENT, "{link-down: wan}", "timeline[0].at", "is missing"),
    Case("event at no phase", _EVENT, "{at: 5 s, link-down: wan}", "timeline[0].at", "a moment is a phase"),
    Case(
        "event at half a moment",
        _EVENT,
        "{at: hold +, link-down: wan}",
        "timeline[0].at",
        "a moment is a phase",
    ),
    Case("event before", _EVENT, "{at: hold + -5 s, link-down: wan}", "timeline[0].at", "cannot be negative"),
    Case(
        "event after its phase",
        _EVENT,
        "{at: hold + 21 s, link-down: wan}",
        "timeline[0].at",
        "is after the end of hold, which lasts 20 s",
    ),
    Case(
        "event beyond the run",
        _EVENT,
        "{at: hold + 19 s, link-down: wan, for: 7 s}",
        "timeline[0]",
        "ends 1 s after the run",
    ),
    Case(
        "event in a short ramp",
        _EVENT,
        "{at: ramp + 1 s, link-down: wan}",
        "timeline[0].at",
        "is after the end of ramp, which lasts 400 ms",
    ),
    Case(
        "event on no link",
        _EVENT,
        "{at: hold, link-down: wam}",
        "timeline[0].link-down",
        'did you mean "wan"?',
    ),
    Case(
        "event on no node",
        _EVENT,
        "{at: hold, kill: client4}",
        "timeline[0].kill",
        "no node or group is called that",
    ),
    Case(
        "event on no software",
        _EVENT,
        "{at: hold, stop: reader, software: pub}",
        "timeline[0].software",
        "no software of reader is called that",
    ),
    Case(
        "restart of a client alone",
        _EVENT,
        "{at: hold, restart: reader, software: sub}",
        "timeline[0].software",
        "cannot be stopped alone",
    ),
    Case(
        "impair with nothing",
        _EVENT,
        "{at: hold, impair: wan}",
        "timeline[0]",
        "impair needs the new impairment",
    ),
    Case(
        "impair wrongly",
        _EVENT,
        "{at: hold, impair: wan, both: {reorder: 1 %}}",
        "timeline[0].both.reorder",
        "reorder without delay",
    ),
    Case("flap without down", _EVENT, "{at: hold, flap: wan}", "timeline[0]", "flap needs how long"),
    Case(
        "flap too long",
        _EVENT,
        "{at: hold, flap: wan, down: 5 s, up: 5 s, times: 4}",
        "timeline[0]",
        "after the run",
    ),
    Case(
        "partition for ever",
        _EVENT,
        "{at: hold, partition: client}",
        "timeline[0]",
        "partition needs its length",
    ),
    Case(
        "partition of an island",
        _EVENT,
        "{at: hold, partition: far, for: 1 s}",
        "timeline[0].partition",
        "no node or group is called that",
    ),
    Case("run nowhere", _EVENT, "{at: hold, run: date}", "timeline[0]", "run needs its nodes"),
    Case(
        "key of another action",
        _EVENT,
        "{at: hold, link-up: wan, for: 1 s}",
        "timeline[0].for",
        "does not belong to link-up",
    ),
    Case(
        "underscore action",
        _EVENT,
        "{at: hold, link_down: wan}",
        "timeline[0].link_down",
        'did you mean "link-down"?',
    ),
    # --- run and campaign
    Case(
        "ramp and interval",
        _RUN,
        _RUN.replace("drain: 5 s", "ramp: 9 s"),
        "run.ramp",
        "stands beside connect_interval",
    ),
    Case(
        "failure policy",
        _RUN,
        _RUN.replace("drain: 5 s", "on_node_failure: ignore"),
        "run.on_node_failure",
        "is not one of the values",
    ),
    Case(
        "factor unknown",
        _RUN,
        _RUN + "\ncampaign: {factors: {qos: [0, 1]}}",
        "campaign.factors.qos",
        "no parameter is called that",
        36,
    ),
    Case(
        "factor without levels",
        _RUN,
        _RUN + "\ncampaign: {factors: {clients: []}}",
        "campaign.factors.clients",
        "must have at least 1 items",
        36,
    ),
    Case(
        "factor given too",
        _RUN,
        _RUN + "\ncampaign: {factors: {clients: [1]}, parameters: {clients: 2}}",
        "campaign.parameters.clients",
        "is a factor already",
        36,
    ),
    Case(
        "no repetitions",
        _RUN,
        _RUN + "\ncampaign: {repetitions: 0}",
        "campaign.repetitions",
        "must be at least 1",
        36,
    ),
]
