//! Reads the counters of the node's network stack, with the names that `nstat` uses.

use crate::os::Res;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// The files with the counters of the reading process's network namespace: TCP, UDP, IP, ICMP; then
/// extensions.
const FILES: [&str; 2] = ["/proc/self/net/snmp", "/proc/self/net/netstat"];
/// The file with the counters of IPv6: Ip6, Icmp6, Udp6.
const FILE6: &str = "/proc/self/net/snmp6";
/// Whether an interface of the node was given an IPv6 address; only then are the counters of IPv6 read.
pub static IPV6: AtomicBool = AtomicBool::new(false);

/// Returns every non-zero counter by its name with the protocol, such as `UdpRcvbufErrors`. Leaves out the
/// settings of IP and TCP in the same files.
pub fn counters() -> Res<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    for path in FILES {
        let text = fs::read_to_string(path)
            .map_err(|e| format!("{path}: {e}; /proc must be mounted in the node"))?;
        found.extend(counted(&text));
    }
    if IPV6.load(Ordering::Relaxed) {
        let text = fs::read_to_string(FILE6)
            .map_err(|e| format!("{FILE6}: {e}; a node with IPv6 addresses has this file"))?;
        found.extend(counted6(&text));
    }
    Ok(found)
}

/// Parses lines with a name and a number, `Udp6InDatagrams 17`, into non-zero counters by name.
fn counted6(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, words.next()?.parse().ok()?);
        (value > 0).then(|| (name.to_owned(), value))
    })
}

/// Parses pairs of lines, `Udp: InDatagrams NoPorts` and `Udp: 17 0`, into non-zero counters by name with the
/// protocol. Skips settings, and negative values such as TCP's MaxConn -1, since these are not counters.
fn counted(text: &str) -> Vec<(String, u64)> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines
        .chunks_exact(2)
        .filter_map(|pair| Some((pair[0].split_once(": ")?, pair[1].split_once(": ")?)));
    pairs
        .filter(|((of, _), (again, _))| of == again)
        .flat_map(|((of, names), (_, values))| {
            let settings = |name: &str| {
                name.starts_with("Rto") || name == "Forwarding" || name == "DefaultTTL"
            };
            names
                .split(' ')
                .zip(values.split(' '))
                .filter(move |(name, _)| !settings(name))
                .filter_map(move |(name, value)| Some((format!("{of}{name}"), value.parse().ok()?)))
        })
        .filter(|(_, value)| *value > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_ipv6_have_a_line_each() {
        let text =
            "Ip6InReceives                   \t7\nUdp6InDatagrams                 \t0\n\nbroken\n";
        let found: Vec<(String, u64)> = counted6(text).collect();
        assert_eq!(found, [("Ip6InReceives".to_owned(), 7)]);
    }

    #[test]
    fn lines_come_in_pairs_and_settings_are_no_counters() {
        let text = "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 7\n\
                    Tcp: RtoMin RtoMax MaxConn RetransSegs\nTcp: 200 120000 -1 3\n\
                    Udp: InDatagrams RcvbufErrors\nUdp: 0 5\n";
        let expected = [
            ("IpInReceives", 7),
            ("TcpRetransSegs", 3),
            ("UdpRcvbufErrors", 5),
        ];
        assert_eq!(
            counted(text),
            expected.map(|(name, n)| (name.to_owned(), n))
        );
    }

    #[test]
    fn a_datagram_to_nobody_is_counted_here() {
        let before = counters().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let unused = std::net::UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        socket.send_to(b"x", unused).unwrap();
        let count = |c: &BTreeMap<String, u64>| c.get("UdpNoPorts").copied().unwrap_or(0);
        assert!(count(&counters().unwrap()) > count(&before));
    }
}
