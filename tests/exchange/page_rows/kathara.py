"""Holds the cases of the section on Kathará's labs."""

# ruff: noqa: E501
from __future__ import annotations

from orchestrator.exchange import kathara

from . import Tool, imported, network, refused, said, silent

CONF = """\
LAB_NAME="x"
r1[0]="A"
r1[1]=B
r2[0]="A"
r2[1]="C"
pc1[0]="B"
pc2[0]="C"
pc3[0]="C"
#conf
"""
OSPF = (
    "interface eth0\n ip address 10.0.0.1/30\nrouter ospf\nnetwork 10.0.0.0/8 area 0.0.0.0\nlog file /tmp/x\n"
)
FILES = {
    "lab/lab.conf": CONF,
    "lab/r1.startup": "ip addr add 10.0.0.1/30 dev eth0\nip addr add 10.1.0.1/24 dev eth1\nip route add 10.2.0.0/24 via 10.0.0.2\n#here\n",
    "lab/r2.startup": "ip addr add 10.0.0.2/30 dev eth0\nip addr add 10.2.0.1/24 dev eth1\nip route add 10.1.0.0/24 via 10.0.0.1\n#here\n",
    "lab/pc1.startup": "ip addr add 10.1.0.2/24 dev eth0\nip route add default via 10.1.0.1\nsystemctl start frr\n#here\n",
    "lab/pc2.startup": "ip addr add 10.2.0.2/24 dev eth0\n",
    "lab/pc3.startup": "systemctl restart networking\n#here\n",
    "lab/shared.startup": "#shared\n",
    "lab/pc3/etc/network/interfaces": "auto eth0\niface eth0 inet static\n address 10.2.0.3/24\n",
    "lab/r1/etc/frr/frr.conf": OSPF,
    "lab/r2/etc/quagga/ospfd.conf": "router ospf\nnetwork 10.0.0.0/8 area 0.0.0.0\n",
    "lab/pc1/etc/frr/staticd.conf": "ip route 10.2.0.0/24 10.1.0.1\n", "lab/r1/etc/frr/daemons": "ospfd=yes\n",
    "lab/r1/x.sh": "ip link set eth1 mtu 1300\n", "lab/shared/y.sh": "ip link set eth1 mtu 1200\n",
}  # fmt: skip
R1, PC1, PC3 = "lab/r1.startup", "lab/pc1.startup", "lab/pc3.startup"
BOTH = "systemctl start frr\n"


def conf(text: str) -> tuple[str, str]:
    return "#conf", text


ROWS = {
    "machine on networks of `lab.conf`": [
        network('pc3[0]="C"', 'pc3[0]="B"', file="lab/lab.conf"), network('pc3[0]="C"', 'pc3[0]="C"\npc3[1]="D"\npc4[0]="D"'),
        network("#here", "sysctl -w net.ipv4.ip_forward=0", "true", R1),
    ],
    "collision domain of two machines": [network('pc1[0]="B"', 'pc1[0]="B"\npc9[0]="B"'), network('pc3[0]="C"', 'pc3[0]="C"\npc4[0]="D"')],
    "`NAME.startup`": [
        network("10.1.0.2/24", "10.1.0.3/24", file=PC1), network("#shared", "ip link set eth0 mtu 1300", "ip link set eth0 mtu 1200", "lab/shared.startup"),
        network("systemctl restart networking", "true", file=PC3), network("10.2.0.3/24", "10.2.0.4/24", file="lab/pc3/etc/network/interfaces"),
        network("#here", "echo 'router rip\n network eth0' > /etc/frr/frr.conf\nsystemctl start frr",
                "echo 'router rip\n network eth1' > /etc/frr/frr.conf\nsystemctl start frr", R1),
        said("#here", "ip addr add 10.9.0.1/24 dev eth7", file=PC1),
    ],
    "starting `frr` or `quagga`": [
        network("#here", "systemctl start frr", file=R1), network("#here", "/etc/init.d/quagga start", file="lab/r2.startup"),
        network("#here", "systemctl start frr", "systemctl stop frr", R1), silent("log file /tmp/x", "debug ospf events", file="lab/r1/etc/frr/frr.conf"),
    ],
    "the same without a protocol": [
        network("systemctl start frr", "true", file=PC1), network("ip route 10.2.0.0/24 10.1.0.1", "ip route 10.0.0.0/30 10.1.0.1", file="lab/pc1/etc/frr/staticd.conf"),
    ],
    "`exec`, after the startup scripts": [
        network(*conf('pc2[exec]="ip route add default via 10.2.0.1"'), conf('pc2[exec]="ip route add 10.1.0.0/24 via 10.2.0.1"')[1]),
        network("#conf", "pc2[env]=\"VIA=10.2.0.1\"\npc2[exec]=\"sh -c 'ip route add default via $VIA'\"",
                "pc2[env]=\"VIA=10.2.0.1\"\npc2[exec]=\"sh -c 'ip route add 10.1.0.0/24 via $VIA'\""),
        said(*conf('pc2[env]="A=b"')), network("#here", "bash /x.sh", file=R1), network("#here", "bash /shared/y.sh", file=R1),
    ],
    "`sysctl` of forwarding": [
        network(*conf('r1[sysctl]="net.ipv4.ip_forward=0"'), conf('r1[sysctl]="net.ipv4.ip_forward=1"')[1]),
        network(*conf('r1[mem]="64m"'), conf('r1[mem]="65m"')[1]), network(*conf("r1[cpus]=0.5"), conf("r1[cpus]=0.6")[1]),
    ],
    "other commands and files of": [
        *(said(*conf(f"pc1[{text}")) for text in (
            'image]="kathara/base"', "sysctl]=net.ipv4.tcp_syncookies=1", "bridged]=true", "port]=80:80", "ipv6]=true", "ulimit]=nofile=9",
            "volume]=/a|/b|ro", "entrypoint]=/x", "args]=-x", "shell]=/bin/sh", "num_terms]=2", "privileged]=true")),
        said('pc1[0]="B"', 'pc1[0]="B/02:00:00:00:00:01"'), said("#here", "apache2ctl start", file=PC1),
        said("#here", "bind9 -x", file=PC1), *(said("", "x\n", file=f"lab/{name}") for name in ("lab.ext", "lab.dep", "pc1.shutdown")),
    ],
    "`LAB_NAME`": [silent('LAB_NAME="x"', 'LAB_NAME="y"'), silent('LAB_NAME="x"', 'LAB_DESCRIPTION="z"')],
    "switches of P4 and OpenFlow": [
        refused(*conf('r1[image]="kathara/p4"')), refused(*conf('r1[image]="kathara/sdn"')), refused(*conf('r1[5]="A"')),
        refused(*conf('r1[0]="D"')), refused("#here", "ip link add br0 type bridge vlan_filtering 1", R1), refused(*conf("nonsense")),
    ],
}  # fmt: skip
TOOL = Tool("Kathará's labs", FILES, "lab/lab.conf", imported(kathara.read), ROWS)
