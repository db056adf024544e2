"""Writes a Kathará lab: two routers with OSPF of Quagga, a network of three, and a link with a delay."""

from __future__ import annotations

from pathlib import Path

LAB = """\
LAB_DESCRIPTION="Two routers"
LAB_VERSION=1.0

# the routers
r1[0]="A"
r1[1]=B
r1[image]="kathara/quagga"
r2[0]='A'   # towards r1
r2[1]=C/02:00:00:00:00:22
r2[sysctl]="net.ipv4.tcp_syncookies=1"

PC1[0]="B"
pc2[0]="C"
pc3[0]="C"
watcher[bridged]=true
"""
STARTUP = {
    "r1": "ip a add 10.0.0.1/30 dev eth0\nip address add 10.1.0.1/24 dev eth1\nsystemctl start quagga\n",
    "r2": (
        "ifconfig eth0 10.0.0.2 netmask 255.255.255.252 up\nifconfig eth1 10.2.0.1/24 up\n"
        "ip address add 10.99.0.2/32 dev lo\n/etc/init.d/zebra start\n"
    ),
    "PC1": (
        "ip addr add 10.1.0.2/24 dev eth0\nip route add default via 10.1.0.1 dev eth0\n"
        "tc qdisc add dev eth0 root netem delay 20ms 1ms loss 0.5%\n# ip addr add 10.1.0.9/24 dev eth0\n"
        "systemctl start apache2\n"
    ),
    "pc2": "ifconfig eth0 10.2.0.77/24 up\nroute add default gw 10.2.0.1 dev eth0\n",
    "pc3": "ifconfig eth0 10.2.0.78/24\nroute add -net 10.1.0.0/24 gw 10.2.0.1\n",
}
ZEBRA = "hostname zebra\npassword zebra\nlog file /var/log/quagga/zebra.log\n"
OSPF = """\
router ospf
network 10.0.0.0/8 area 0.0.0.0
redistribute connected
!
debug ospf events
log file /tmp/ospfd.log
"""


def write(directory: Path) -> Path:
    """Writes the lab's directory below `directory`, and returns its path."""
    lab = directory / "Two Routers"
    for name in ("r1", "r2"):
        (lab / name / "etc/quagga").mkdir(parents=True)
        (lab / name / "etc/quagga/zebra.conf").write_text(ZEBRA)
        (lab / name / "etc/quagga/ospfd.conf").write_text(OSPF)
    (lab / "r1/var/www").mkdir(parents=True)
    (lab / "r1/var/www/index.html").write_text("hello")
    (lab / "lab.conf").write_text(LAB)
    for name, text in STARTUP.items():
        (lab / f"{name}.startup").write_text(text)
    return lab
