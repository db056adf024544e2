//! Implements the overlay queue of a gateway. The gateway diverts packets from the kernel before they queue
//! at its link, holds them in the order of their deadlines or of their arrival, and sends them to their HTB
//! class at the class's rate.

use super::queue::{Order, Queue};
use super::red;
use crate::clock;
use crate::netlink::QdiscCounters;
use crate::os::{self, Res};
use crate::packet;
use crate::tap;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most frames to read before the gateway does other work.
const AT_ONCE: usize = 64;
/// The longest time for which a gateway that wakes up late sends the missed packets at once.
const CATCH_UP_NS: i64 = 10_000_000;
const LARGEST: usize = 65_536;
/// The protocol number of the sending socket (an experimental one of linux/if_ether.h), so that no filter for
/// IP diverts the frames again. The frames themselves keep their EtherType.
const SENT_AS: u16 = 0x88b5;

/// Settings of the overlay of a gateway: its device and its filters.
#[derive(Deserialize)]
pub struct Settings {
    /// The TAP device to which the kernel diverts packets.
    tap: String,
    /// Lines for `tc -batch` that divert the packets to the TAP device.
    filters: Vec<String>,
}

/// Settings of the queue of one class, which several flows share.
#[derive(Deserialize)]
pub struct Shared {
    order: Order,
    drops_late: bool,
    /// The most waiting packets of each flow.
    limit: u64,
    /// For each port: the time from a packet's arrival to its deadline.
    deadlines_ns: BTreeMap<u16, i64>,
    /// Random early detection; None: packets are dropped only where the queue is full.
    #[serde(default)]
    red: Option<red::Settings>,
}

pub struct Overlay {
    tap: File,
    index: i32,
    lanes: Vec<Lane>,
    lane_of: BTreeMap<u16, usize>,
    frame: Vec<u8>,
}

/// The queue of one HTB class, and the socket that sends packets to the class.
struct Lane {
    /// Index of the class among the gateway's flows.
    flow: usize,
    deadlines_ns: BTreeMap<u16, i64>,
    queue: Queue<Vec<u8>>,
    /// True if the queue uses random early detection; the log then counts the packets that it drops early.
    detects_early: bool,
    socket: OwnedFd,
    rate_bps: u64,
    /// The time at which the next packet may leave, in nanoseconds of the monotonic clock.
    free_ns: i64,
    /// Counts of overflowed and expired packets and of early drops when the last line was logged.
    logged: (u64, u64, u64),
}

impl Overlay {
    /// Opens the TAP device and the filters of `settings`, and one queue for each class. `index` is that
    /// of the link's interface. `shared` holds for each class its index among the gateway's flows, its
    /// handle and its settings.
    pub fn open(
        settings: &Settings,
        index: i32,
        shared: impl Iterator<Item = (usize, u32, Shared)>,
    ) -> Res<Self> {
        let lanes = shared.map(|(flow, handle, shared)| Lane::open(flow, handle, shared));
        let lanes = lanes.collect::<Res<Vec<_>>>()?;
        let of_lane = |(i, lane): (usize, &Lane)| -> Vec<(u16, usize)> {
            lane.deadlines_ns.keys().map(|port| (*port, i)).collect()
        };
        let lane_of = lanes.iter().enumerate().flat_map(of_lane).collect();
        let tap = tap::open(&settings.tap)?;
        tap::run_tc(&settings.filters)?;
        Ok(Self {
            tap,
            index,
            lanes,
            lane_of,
            frame: vec![0; LARGEST],
        })
    }

    /// Returns the descriptor to poll for reading.
    pub fn fd(&self) -> RawFd {
        self.tap.as_raw_fd()
    }

    /// Returns the monotonic time in ns at which to send the next packet; None if no packet waits.
    pub fn deadline(&self) -> Option<i64> {
        let waiting = self.lanes.iter().filter(|lane| lane.waits());
        waiting.map(|lane| lane.free_ns).min()
    }

    pub fn set_rate(&mut self, flow: usize, rate_bps: u64) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.flow == flow) {
            lane.rate_bps = rate_bps.max(1);
        }
    }

    /// Adds the packets that wait in the queue of class `flow`, or were dropped from it, to `counters`, the
    /// kernel's counters of this class. Logs new drops under `name`.
    pub fn account(&mut self, flow: usize, name: &str, counters: &mut QdiscCounters) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.flow == flow) {
            let own = lane.queue.counters();
            counters.dropped += own.overflowed + own.expired + own.early;
            counters.backlog_packets += own.waiting;
            counters.backlog_bytes += own.waiting_bytes;
            let dropped = (own.overflowed, own.expired, own.early);
            if dropped != lane.logged {
                let at_s = clock::lab_ns() as f64 / 1e9;
                let early = if lane.detects_early {
                    format!(" {}", own.early)
                } else {
                    String::new()
                };
                println!(
                    "dropped {at_s:.3} {name} {} {}{early}",
                    dropped.0, dropped.1
                );
                lane.logged = dropped;
            }
        }
    }

    /// Reads at most 64 arrived packets into their queues, and sends those that may leave by `now_ns`. Drops
    /// packets whose ports belong to no queue.
    pub fn forward(&mut self, now_ns: i64) -> Res<()> {
        self.take(now_ns)?;
        for lane in &mut self.lanes {
            lane.serve(self.index, now_ns)?;
        }
        Ok(())
    }

    fn take(&mut self, now_ns: i64) -> Res<()> {
        for _ in 0..AT_ONCE {
            let n = match os::read(self.tap.as_raw_fd(), &mut self.frame) {
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(format!("overlay: {e}")),
            };
            // Packets that the kernel itself sends on the device have none of these ports, and are dropped.
            let frame = &self.frame[..n];
            let ports = ports(frame).into_iter().flatten();
            let found = ports
                .filter_map(|port| Some((port, *self.lane_of.get(&port)?)))
                .next();
            if let Some((port, lane)) = found {
                self.lanes[lane].take(port, frame, now_ns);
            }
        }
        Ok(())
    }
}

impl Lane {
    fn open(flow: usize, handle: u32, shared: Shared) -> Res<Self> {
        let socket = packet::socket(libc::SOCK_NONBLOCK)?;
        // HTB puts a packet whose priority equals a class's handle into that class.
        packet::option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &handle)?;
        Ok(Self {
            flow,
            detects_early: shared.red.is_some(),
            queue: Queue::new(shared.order, shared.drops_late, shared.limit, shared.red),
            deadlines_ns: shared.deadlines_ns,
            socket,
            rate_bps: 1,
            free_ns: 0,
            logged: (0, 0, 0),
        })
    }

    fn waits(&self) -> bool {
        self.queue.counters().waiting > 0
    }

    fn take(&mut self, port: u16, frame: &[u8], now_ns: i64) {
        if !self.waits() {
            self.free_ns = self.free_ns.max(now_ns);
        }
        let deadline_ns = now_ns + self.deadlines_ns.get(&port).copied().unwrap_or_default();
        let bytes = frame.len() as u64;
        if !self.queue.drops_early(now_ns, self.sending_ns(bytes)) {
            self.queue.push(port, deadline_ns, bytes, frame.to_vec());
        }
    }

    /// Returns the time that a frame of this length takes at the class's rate.
    fn sending_ns(&self, bytes: u64) -> i64 {
        (8_000_000_000 * bytes / self.rate_bps) as i64
    }

    fn serve(&mut self, index: i32, now_ns: i64) -> Res<()> {
        while self.free_ns <= now_ns {
            let Some((bytes, frame)) = self.queue.pop(now_ns) else {
                break;
            };
            tap::send(&self.socket, index, SENT_AS, &frame).map_err(|e| format!("overlay: {e}"))?;
            self.free_ns = self.free_ns.max(now_ns - CATCH_UP_NS) + self.sending_ns(bytes);
        }
        Ok(())
    }
}

/// Returns destination and source port of an Ethernet frame, with or without a VLAN tag, that holds an IPv4
/// packet without options, the only kind that the filters divert; None for others.
fn ports(frame: &[u8]) -> Option<[u16; 2]> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let tag = if word(12)? == 0x8100 { 4 } else { 0 };
    let ip = 14 + tag;
    if word(12 + tag)? != 0x0800 || *frame.get(ip)? != 0x45 {
        return None;
    }
    Some([word(ip + 22)?, word(ip + 20)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(tag: bool, version: u8) -> Vec<u8> {
        let mut frame = vec![0; 12];
        if tag {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend([8, 0, version]);
        frame.extend([0; 19]);
        frame.extend(1000u16.to_be_bytes());
        frame.extend(9001u16.to_be_bytes());
        frame
    }

    #[test]
    fn finds_the_ports_of_a_packet() {
        assert_eq!(ports(&datagram(false, 0x45)), Some([9001, 1000]));
        assert_eq!(ports(&datagram(true, 0x45)), Some([9001, 1000]));
        assert_eq!(
            ports(&datagram(false, 0x46)),
            None,
            "its ports are elsewhere"
        );
        assert_eq!(ports(&datagram(false, 0x45)[..36]), None, "it is cut");
        assert_eq!(ports(&[0; 14]), None);
    }
}
