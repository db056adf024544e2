//! Implements the sender of a bulk transfer: it connects, and sends over TCP streams or by UDP datagrams
//! as the pace allows.

use super::pace::{CHUNK, Pace};
use super::stream::Stream;
use super::{Progress, Protocol, Spec, tcp_info};
use crate::os::Res;
use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload, Purpose};
use crate::records::Window;
use crate::roles::peers::Peer;
use crate::roles::socket::{self, Marks};
use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// The most writes in a row per TCP stream, so that a fast flow does not keep the node from other work.
const AT_ONCE: usize = 16;
/// The longest payload of a datagram over IPv4.
const LONGEST: usize = 65_507;

pub struct Sender {
    to: Peer,
    flow: u32,
    protocol: Protocol,
    congestion: Option<String>,
    marks: Marks,
    count: usize,
    pace: Pace,
    offsets_ns: (i64, i64),
    connect_ns: Option<i64>,
    streams: Vec<Stream>,
    /// Index of the stream that sends first in the next round.
    turn: usize,
    udp: Option<UdpSocket>,
    full: bool,
    sent: u64,
    datagrams: u64,
    chunk: Vec<u8>,
    over: bool,
    recorded: u64,
    /// Steps of the session that the role must still record.
    pub changes: Vec<(&'static str, String)>,
}

impl Sender {
    pub fn new(to: Peer, flow: u32, spec: Spec) -> Res<Self> {
        let (size, rate_bps) = (spec.size.unwrap_or(0), spec.rate_bps.unwrap_or(0));
        if spec.streams == 0 || (spec.protocol == Protocol::Udp && spec.streams > 1) {
            let streams = spec.streams;
            return Err(format!(
                "streams: {streams}; TCP has 1 or more, UDP has 1; correct it"
            ));
        }
        if spec.protocol == Protocol::Udp {
            let smallest = Bytes.smallest();
            if !(smallest..=LONGEST).contains(&size) {
                return Err(format!(
                    "size: {size} bytes; a datagram has {smallest} to {LONGEST}"
                ));
            }
            if rate_bps == 0 {
                return Err("rate_bps: 0; UDP has no rate control; write a rate".to_owned());
            }
        } else if let Some(congestion) = &spec.congestion {
            // Any TCP socket can test the name of the congestion control.
            let socket = TcpListener::bind((socket::any(false), 0))
                .map_err(|e| format!("congestion: {e}"))?;
            tcp_info::choose(&socket, congestion)?;
        }
        Ok(Self {
            to,
            flow,
            protocol: spec.protocol,
            congestion: spec.congestion,
            marks: spec.marks,
            count: spec.streams,
            pace: Pace {
                protocol: spec.protocol,
                rate_bps,
                size,
                volume_bytes: spec.volume_bytes.unwrap_or(0),
                start_ns: i64::MAX,
                stop_ns: i64::MAX,
            },
            offsets_ns: (spec.start_ns, spec.stop_ns),
            connect_ns: None,
            streams: Vec::new(),
            turn: 0,
            udp: None,
            full: false,
            sent: 0,
            datagrams: 0,
            chunk: Vec::new(),
            over: false,
            recorded: 0,
            changes: Vec::new(),
        })
    }

    pub fn go(&mut self, t0_ns: i64, connect_ns: i64) {
        self.connect_ns = Some(connect_ns);
        self.pace.start_ns = t0_ns + self.offsets_ns.0;
        self.pace.stop_ns = t0_ns + self.offsets_ns.1;
    }

    pub fn connected(&self) -> bool {
        self.udp.is_some()
            || (self.streams.len() == self.count && self.streams.iter().all(|s| s.up))
    }

    /// Returns whether the sender has sent a byte and the transfer has not ended.
    pub fn active(&self) -> bool {
        self.connect_ns.is_none() && !self.over && self.sent != 0
    }

    /// Returns the number of streams with unacknowledged data.
    pub fn pending(&self) -> u64 {
        let unsettled = |s: &&Stream| socket::outstanding(&s.socket).is_ok_and(|bytes| bytes > 0);
        self.streams.iter().filter(unsettled).count() as u64
    }

    pub fn deadline(&self) -> Option<i64> {
        if self.over {
            return None;
        }
        if self.connect_ns.is_some() {
            return self.connect_ns;
        }
        let begin = self.connected() && self.sent == 0 && self.pace.rate_bps == 0;
        // A stream with space in its buffer sends the data that is due.
        let waits = match self.protocol {
            Protocol::Udp => self.full,
            Protocol::Tcp => self.streams.iter().all(|s| s.full),
        };
        let next = match self.pace.rate_bps {
            0 => begin.then_some(self.pace.start_ns),
            _ if waits || !self.connected() => None,
            _ => Some(self.pace.next_ns(self.sent)),
        };
        Some(next.map_or(self.pace.stop_ns, |next| next.min(self.pace.stop_ns)))
    }

    pub fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        for stream in &self.streams {
            wait_for(
                stream.socket.as_raw_fd(),
                !stream.up || (stream.full && !self.over),
            );
        }
        if let Some(udp) = &self.udp {
            wait_for(udp.as_raw_fd(), self.full && !self.over);
        }
    }

    /// Connects, sends, and closes the sending side of all streams, when each is due; returns true when the
    /// transfer has just ended.
    pub fn on_time(&mut self, now: i64) -> bool {
        if self.connect_ns.is_some_and(|at| now >= at) {
            self.connect_ns = None;
            self.connect();
        }
        self.send(now);
        let ends = !self.over && self.connect_ns.is_none() && self.pace.done(now, self.sent);
        if ends {
            self.over = true;
            for stream in &self.streams {
                // The kernel sends the rest. A peer that has closed the connection needs no end of the
                // stream.
                if stream.socket.shutdown(Shutdown::Write).is_err() {
                    continue;
                }
            }
        }
        ends
    }

    fn connect(&mut self) {
        if self.protocol == Protocol::Udp {
            let opened =
                UdpSocket::bind((socket::any(self.to.address.is_ipv6()), 0)).and_then(|udp| {
                    udp.set_nonblocking(true)?;
                    socket::mark(&udp, self.marks)?;
                    udp.connect((self.to.address, self.to.port))?;
                    Ok(udp)
                });
            match opened {
                Ok(udp) => {
                    self.udp = Some(udp);
                    self.changes.push(("connected", String::new()));
                }
                Err(e) => self.changes.push(("failed", e.to_string())),
            }
            return;
        }
        self.changes.push(("connecting", self.to.endpoint.clone()));
        for _ in 0..self.count {
            // The timeout of the kernel starts only once the connection is established.
            let opened = socket::connect(self.to.address, self.to.port, false, self.marks)
                .map_err(|e| e.to_string())
                .and_then(|socket| match &self.congestion {
                    Some(congestion) => tcp_info::choose(&socket, congestion).map(|()| socket),
                    None => Ok(socket),
                });
            match opened {
                Ok(socket) => self.streams.push(Stream::new(socket)),
                Err(text) => self.changes.push(("failed", text)),
            }
        }
    }

    pub fn on_ready(&mut self, fd: RawFd, now: i64) {
        if let Some(udp) = self.udp.as_ref().filter(|udp| udp.as_raw_fd() == fd) {
            // An ICMP message refused a datagram, so it counts as lost. The pending error is taken since it
            // would keep the socket ready.
            drop(udp.take_error());
            self.full = false;
            return self.send(now);
        }
        let Some(i) = self.streams.iter().position(|s| s.socket.as_raw_fd() == fd) else {
            return;
        };
        if let Err(text) = self.streams[i].check() {
            self.streams.remove(i);
            if !self.over {
                let what = if self.sent > 0 {
                    "disconnected"
                } else {
                    "failed"
                };
                self.changes.push((what, text));
            } else if self.streams.is_empty() {
                // The receiver has acknowledged all data.
                self.changes.push(("disconnected", "as planned".to_owned()));
            }
            return;
        }
        if !self.streams[i].up {
            if !socket::established(&self.streams[i].socket) {
                return;
            }
            self.streams[i].up = true;
            if self.connected() {
                self.changes.push(("connected", String::new()));
            }
        }
        self.streams[i].full = false;
        self.send(now);
    }

    fn send(&mut self, now: i64) {
        if self.over
            || now < self.pace.start_ns
            || self.pace.done(now, self.sent)
            || !self.connected()
        {
            return;
        }
        if self.chunk.is_empty() {
            self.chunk = vec![0; CHUNK];
        }
        match self.protocol {
            Protocol::Tcp => self.send_streams(now),
            Protocol::Udp => self.send_datagrams(now),
        }
    }

    /// Writes to the streams in turn, one chunk at a time, as much as the pace allows, at most `AT_ONCE`
    /// chunks for each stream.
    fn send_streams(&mut self, now: i64) {
        let allowed = self.pace.allowed(now);
        for _ in 0..AT_ONCE * self.streams.len() {
            let count = self.streams.len();
            let left = (allowed.saturating_sub(self.sent)).min(CHUNK as u64) as usize;
            let open = (0..count)
                .map(|i| (self.turn + i) % count)
                .find(|i| !self.streams[*i].full);
            let (Some(i), true) = (open, left > 0) else {
                return;
            };
            self.turn = i + 1;
            let identity = self.identity(i as u64, self.pace.start_ns);
            self.sent += self.streams[i].write(&identity, &self.chunk[..left]) as u64;
        }
        // More could be sent, but the stream waits for writability, so that other streams and roles get their
        // turn first.
        self.streams.iter_mut().for_each(|s| s.full = true);
    }

    fn identity(&self, seq: u64, scheduled_ns: i64) -> Identity {
        Identity {
            purpose: Purpose::Stream,
            flow: self.flow,
            seq,
            scheduled_ns,
            reply_bytes: 0,
        }
    }

    fn send_datagrams(&mut self, now: i64) {
        let size = self.pace.size as u64;
        let mut datagram = std::mem::take(&mut self.chunk);
        while self.pace.allowed(now) >= self.sent + self.pace.quantum(self.sent)
            && !self.pace.done(now, self.sent)
        {
            let due =
                (u128::from(self.sent) * 8_000_000_000 / u128::from(self.pace.rate_bps)) as i64;
            datagram.clear();
            let identity = self.identity(self.datagrams, self.pace.start_ns + due);
            Bytes.write(&identity, self.pace.size, &mut datagram);
            match self.udp.as_ref().map(|udp| udp.send(&datagram)) {
                Some(Err(e)) if e.kind() == ErrorKind::WouldBlock => {
                    self.full = true;
                    break;
                }
                // The datagram was refused by ICMP, or the receiver is unreachable: the datagram counts as
                // lost.
                _ => {
                    self.sent += size;
                    self.datagrams += 1;
                }
            }
        }
        self.chunk = datagram;
    }

    /// Returns the congestion window of each connection with the connection's index; omits connections for
    /// which the kernel reports none.
    pub fn windows(&self) -> Vec<(usize, Window)> {
        let read = |(place, stream): (usize, &Stream)| {
            let info = tcp_info::read(&stream.socket).ok()?;
            Some((place, info.window))
        };
        self.streams.iter().enumerate().filter_map(read).collect()
    }

    pub fn flow(&self) -> u32 {
        self.flow
    }

    /// Returns the flow's number and its progress; None before the first byte, and once the final progress
    /// was returned.
    pub fn take_progress(&mut self) -> Option<(u32, Progress)> {
        if self.sent == 0
            || (self.over && std::mem::replace(&mut self.recorded, self.sent) == self.sent)
        {
            return None;
        }
        let mut progress = Progress {
            bytes: self.sent,
            ..Progress::default()
        };
        if self.protocol == Protocol::Udp {
            progress.packets = Some(self.datagrams);
        } else {
            let infos: Vec<_> = self
                .streams
                .iter()
                .filter_map(|s| tcp_info::read(&s.socket).ok())
                .collect();
            if !infos.is_empty() {
                progress.packets = Some(infos.iter().map(|i| i.segments).sum());
                progress.retransmits = Some(infos.iter().map(|i| i.retransmits).sum());
                progress.rtt_ns =
                    Some(infos.iter().map(|i| i.rtt_ns).sum::<u64>() / infos.len() as u64);
            }
        }
        Some((self.flow, progress))
    }
}
