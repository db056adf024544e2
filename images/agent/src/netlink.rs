//! Implements a small rtnetlink client for one network namespace. It reads interface names and the counters
//! of links, qdiscs and HTB classes. It reads and sets IPv6 addresses, routes, HTB rates, and the highest
//! number of segments in a packet. It sets neighbours and interface aliases.

mod addresses;
mod classes;
mod links;
mod neighbours;
mod queues;
mod routes;

pub use classes::HtbClass;
pub use queues::ClassCounters;

use crate::os::{self, Res};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsRawFd, OwnedFd};

const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const RTM_GETSTATS: u16 = 94;
const IFLA_IFNAME: u16 = 3;
/// The attribute that holds a link's statistics; also its bit in the request's filter mask (linux/if_link.h).
const IFLA_STATS_LINK_64: u16 = 1;
/// The attribute that holds a qdisc's statistics (linux/rtnetlink.h). The two attributes inside it are those
/// of linux/gen_stats.h.
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TC_H_ROOT: u32 = 0xffff_ffff;

const HEADER: usize = 16;
/// The largest datagram of an answer in bytes.
const DATAGRAM: usize = 65_536;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub tx_dropped: u64,
    /// Frames that the device lost before the kernel saw them.
    pub rx_missed: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QdiscCounters {
    pub bytes: u64,
    pub packets: u64,
    pub dropped: u64,
    pub overlimits: u64,
    pub backlog_bytes: u64,
    pub backlog_packets: u64,
}

/// Identifies a qdisc of an interface (`tin` is None), or one of its tins (a CAKE qdisc's internal queues,
/// numbered from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    pub index: i32,
    pub handle: u32,
    pub tin: Option<u16>,
    pub marked_at: Option<u16>, // see queues::class
}

type Roots = HashMap<i32, QdiscCounters>;
type Parts = HashMap<Part, ClassCounters>;

fn parts_by_qdisc(wanted: &HashSet<Part>) -> HashMap<(i32, u32), Vec<Part>> {
    let mut found: HashMap<_, Vec<Part>> = HashMap::new();
    for part in wanted {
        found
            .entry((part.index, part.handle))
            .or_default()
            .push(*part);
    }
    found
}

/// A netlink socket. It belongs to the namespace in which it was opened, even if the process moves to
/// another.
pub struct Netlink {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket in the namespace of this process.
    pub fn open() -> Res<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: plain numbers.
        let fd = os::own(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) });
        Ok(Self {
            fd: fd.map_err(|e| format!("netlink: {e}"))?,
            buffer: Vec::new(),
        })
    }

    /// Returns the index of every interface by name.
    pub fn names(&mut self) -> Res<HashMap<String, i32>> {
        let mut names = HashMap::new();
        self.dump(RTM_GETLINK, &[0; 16], |body| {
            let index = i32_at(body, 4);
            if let Some(name) = attribute(body.get(16..).unwrap_or(&[]), IFLA_IFNAME) {
                names.insert(
                    String::from_utf8_lossy(name)
                        .trim_end_matches('\0')
                        .to_owned(),
                    index,
                );
            }
        })?;
        Ok(names)
    }

    /// Returns the counters of all links by interface index.
    pub fn links(&mut self) -> Res<HashMap<i32, LinkCounters>> {
        let mut links = HashMap::new();
        let mut request = [0u8; 12];
        request[8..].copy_from_slice(&1u32.to_ne_bytes());
        self.dump(RTM_GETSTATS, &request, |body| {
            if let Some(stats) = attribute(body.get(12..).unwrap_or(&[]), IFLA_STATS_LINK_64) {
                let n = |i: usize| u64_at(stats, i * 8);
                // struct rtnl_link_stats64
                let counters = LinkCounters {
                    rx_packets: n(0),
                    tx_packets: n(1),
                    rx_bytes: n(2),
                    tx_bytes: n(3),
                    tx_dropped: n(7),
                    rx_missed: n(14) + n(15), // rx_fifo_errors, rx_missed_errors
                };
                links.insert(i32_at(body, 4), counters);
            }
        })?;
        Ok(links)
    }

    /// Returns the counters of all root qdiscs by interface index, except those of the kind `noqueue`, and
    /// those of the parts in `wanted` whose qdisc exists.
    pub fn queues(&mut self, wanted: &HashSet<Part>) -> Res<(Roots, Parts)> {
        let (mut roots, mut parts) = (HashMap::new(), HashMap::new());
        let by_qdisc = parts_by_qdisc(wanted);
        self.dump(RTM_GETQDISC, &[0; 20], |body| {
            let (index, handle) = (i32_at(body, 4), i32_at(body, 8) as u32);
            let attributes = body.get(20..).unwrap_or(&[]);
            let kind = attribute(attributes, queues::TCA_KIND).unwrap_or(&[]);
            // A device without a queue reports the qdisc `noqueue`, which counts nothing.
            if i32_at(body, 12) as u32 == TC_H_ROOT
                && kind != b"noqueue\0"
                && let Some(stats) = attribute(attributes, TCA_STATS2)
            {
                roots.insert(index, qdisc(stats));
            }
            for part in by_qdisc.get(&(index, handle)).into_iter().flatten() {
                parts.insert(*part, queues::class(attributes, part.tin, part.marked_at));
            }
        })?;
        Ok((roots, parts))
    }

    /// Sends a request, whose flags must require an acknowledgement, and waits for it; an error if the kernel
    /// refuses the request.
    fn acknowledged(&mut self, request: &[u8]) -> Res<()> {
        os::write(self.fd.as_raw_fd(), request).map_err(|e| e.to_string())?;
        let n = self.receive().map_err(|e| e.to_string())?;
        if n < HEADER + 4 {
            return Err(format!("the kernel answered {n} bytes"));
        }
        match i32_at(&self.buffer, HEADER) {
            0 => Ok(()),
            refused => Err(std::io::Error::from_raw_os_error(-refused).to_string()),
        }
    }

    /// Receives one datagram into the emptied buffer; returns its length.
    fn receive(&mut self) -> std::io::Result<usize> {
        self.buffer.clear();
        os::append(self.fd.as_raw_fd(), &mut self.buffer, DATAGRAM)
    }

    fn dump(&mut self, kind: u16, payload: &[u8], mut each: impl FnMut(&[u8])) -> Res<()> {
        let mut request = Vec::with_capacity(HEADER + payload.len());
        request.extend(((HEADER + payload.len()) as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        request.extend([0u8; 8]);
        request.extend(payload);
        os::write(self.fd.as_raw_fd(), &request)
            .map_err(|e| format!("netlink request {kind}: {e}"))?;
        loop {
            self.receive()
                .map_err(|e| format!("netlink answer to {kind}: {e}"))?;
            if messages(kind, &self.buffer, &mut each)? {
                return Ok(());
            }
        }
    }
}

/// Passes the body of each message of a datagram to `each`; returns true at the end of the dump, and an error
/// if the kernel reports one.
fn messages(kind: u16, mut rest: &[u8], each: &mut impl FnMut(&[u8])) -> Res<bool> {
    while rest.len() >= HEADER {
        let length = (i32_at(rest, 0) as usize).clamp(HEADER, rest.len());
        let body = &rest[HEADER..length];
        match i32::from(u16::from_ne_bytes([rest[4], rest[5]])) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let error = std::io::Error::from_raw_os_error(i32_at(body, 0).wrapping_neg());
                return Err(format!("netlink request {kind}: {error}"));
            }
            _ => each(body),
        }
        rest = rest.get(align(length)..).unwrap_or(&[]);
    }
    Ok(false)
}

fn qdisc(stats: &[u8]) -> QdiscCounters {
    let basic = attribute(stats, TCA_STATS_BASIC).unwrap_or(&[]);
    let queue = attribute(stats, TCA_STATS_QUEUE).unwrap_or(&[]);
    let q = |i: usize| u64::from(i32_at(queue, i * 4) as u32);
    // struct gnet_stats_basic {bytes, packets}, struct gnet_stats_queue {qlen, backlog, drops, requeues, overlimits}
    QdiscCounters {
        bytes: u64_at(basic, 0),
        packets: u64::from(i32_at(basic, 8) as u32),
        backlog_packets: q(0),
        backlog_bytes: q(1),
        dropped: q(2),
        overlimits: q(4),
    }
}

/// Encodes a request: the netlink header, then `body`.
fn request(kind: u16, flags: libc::c_int, number: u32, body: &[u8]) -> Vec<u8> {
    let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend(number.to_ne_bytes());
    message.extend([0u8; 4]);
    message.extend(body);
    message
}

/// Appends an attribute to a request, without padding: the length of `value` must be a multiple of four
/// unless the attribute is the last one.
fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(((4 + value.len()) as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
}

fn align(n: usize) -> usize {
    n.div_ceil(4) * 4
}

/// Returns the value of the first attribute of the type `wanted`, or None.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]])).clamp(4, rest.len());
        // The two highest bits are flags (nested, byte order).
        if u16::from_ne_bytes([rest[2], rest[3]]) & 0x3fff == wanted {
            return Some(&rest[4..length]);
        }
        rest = rest.get(align(length)..).unwrap_or(&[]);
    }
    None
}

/// Returns the number at offset `at`; 0 if the kernel's structure is shorter.
fn i32_at(bytes: &[u8], at: usize) -> i32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, i32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}

#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = messages(0, bytes, &mut |body| {
        _ = qdisc(body);
        _ = queues::class(body, None, Some(12));
        _ = queues::class(body, Some(1), None);
        _ = classes::class(body);
        _ = routes::entry(body);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_lo_and_it_counts() {
        let mut netlink = Netlink::open().unwrap();
        let lo = netlink.names().unwrap()["lo"];
        let before = netlink.links().unwrap()[&lo];
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .send_to(&[0; 100], socket.local_addr().unwrap())
            .unwrap();
        let after = netlink.links().unwrap()[&lo];
        // The datagram has 100 bytes of data, 8 of UDP and 20 of IP; lo has no Ethernet header.
        assert!(after.tx_bytes >= before.tx_bytes + 128 && after.rx_packets > before.rx_packets);
        netlink.queues(&HashSet::new()).unwrap();
    }

    #[test]
    fn attributes_are_found_behind_others() {
        let bytes = [5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 3, 0x80, 1, 2, 3, 4];
        assert_eq!(attribute(&bytes, 3), Some(&[1, 2, 3, 4][..]));
        assert_eq!(attribute(&bytes, 4), None);
    }
}
