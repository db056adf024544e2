//! Implements messages over UDP: sends requests, messages without replies, and streams to peers, receives
//! them and replies.
//!
//! The sockets are plain kernel sockets: lost datagrams stay lost. A request carries everything that its
//! reply needs.

mod spec;

use super::Role;
use super::datagrams::{self, Ends};
use super::ledger::{Key, Ledger};
use super::peers::{self, Peer};
use super::rate_limits::RateLimits;
use super::rates_wanted::RatesWanted;
use super::socket::{self, Marks};
use crate::clock;
use crate::os::Res;
use crate::payload::{self, Identity, Purpose};
use crate::proto::{self, Item, Session, Totals};
use crate::records::{self, Outcome};
use crate::roles::earliest;
use spec::Spec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// The longest payload of a datagram over IPv4, in bytes.
const LONGEST: usize = 65_507;
/// Length of the Ethernet, IPv4 and UDP headers, in bytes.
const HEADERS: u64 = 42;
/// The most datagrams that wait for space in the socket's buffer; more are dropped.
const WAITING: usize = 1000;
/// The most datagrams to receive before the role checks the clock again, so that arrivals do not delay sends.
const AT_ONCE: usize = 64;
/// The most distinct errors to record, since a foreign program can send from many unroutable addresses.
const MAX_ERRORS: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The session has not begun, so the socket is not open yet.
    Waiting,
    Up,
    Over,
}

pub struct Udp {
    session: Session,
    to: Vec<Peer>,
    marks: Marks,
    by_address: BTreeMap<SocketAddr, usize>,
    listens: bool,
    state: State,
    t0_ns: Option<i64>,
    socket: Option<UdpSocket>,
    bound_ns: i64,
    ledger: Ledger,
    /// Messages that wait for space in the socket's buffer, each with the receiver's index in `to`.
    waiting: VecDeque<(Key, usize)>,
    replies: VecDeque<(Ends, Identity)>,
    /// The buffer for one datagram. It is used again and again, since a server receives tens of thousands of
    /// datagrams a second.
    input: Vec<u8>,
    output: Vec<u8>,
    counts: Totals,
    /// The errors recorded so far; each is recorded once, and not for every datagram.
    errors: BTreeSet<String>,
    rate_limits: Option<RateLimits>,
    rates_wanted: Option<RatesWanted>,
}

/// Creates the role of an item of `workload`; binds its socket if it listens.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    Ok(Box::new(Udp::new(item)?))
}

impl Udp {
    fn new(mut item: Item) -> Res<Self> {
        let session = item.software.session.clone();
        let spec: Spec = proto::parse("spec", item.software.spec.take())?;
        item.flows.iter().try_for_each(|flow| flow.fits(LONGEST))?;
        let socket = spec.listen.map(|port| {
            datagrams::bound(port, spec.ipv6)
                .and_then(|socket| socket::mark(&socket, spec.marks).map(|()| socket))
                .map_err(|e| format!("listen: port {port}: {e}; choose another"))
        });
        let by_address = spec.to.iter().enumerate();
        Ok(Self {
            rate_limits: spec.rate_limits_from.map(RateLimits::open).transpose()?,
            rates_wanted: spec.wants.map(RatesWanted::new),
            by_address: by_address
                .map(|(i, p)| (SocketAddr::new(p.address, p.port), i))
                .collect(),
            ledger: Ledger::new(item, &session, spec.to.len(), spec.timeout_ns)?,
            session,
            to: spec.to,
            marks: spec.marks,
            listens: socket.is_some(),
            state: State::Waiting,
            t0_ns: None,
            socket: socket.transpose()?,
            bound_ns: clock::lab_ns(),
            waiting: VecDeque::new(),
            replies: VecDeque::new(),
            input: Vec::new(),
            output: Vec::new(),
            counts: Totals::default(),
            errors: BTreeSet::new(),
        })
    }

    fn open(&mut self, now: i64, out: &mut Vec<u8>) {
        self.state = State::Up;
        if self.listens {
            return self.session.record("listening", self.bound_ns, "", out);
        }
        let marked = |socket| socket::mark(&socket, self.marks).map(|()| socket);
        let ipv6 = self.to.iter().any(|peer| peer.address.is_ipv6());
        match datagrams::bound(0, ipv6).and_then(marked) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.session.record("connected", now, "", out);
            }
            Err(e) => {
                self.state = State::Over;
                self.session.record("failed", now, &e.to_string(), out);
            }
        }
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.waiting.clear();
        self.replies.clear();
        self.ledger.finish(out);
        if let Some(text) = self.socket.as_ref().and_then(datagrams::overrun) {
            self.session.record("failed", now, &text, out);
        }
        if self.state == State::Up {
            self.session.record("disconnected", now, "as planned", out);
        }
        self.state = State::Over;
        self.socket = None;
    }

    /// Sends due messages to each of their receivers. Queues a message if others wait already or the socket's
    /// buffer is full. `sent_ns` is the time after the kernel has accepted the datagram.
    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(key) = self.ledger.take_due(t0, now, out) {
            for peer in self.ledger.receivers(&key) {
                if !self.waiting.is_empty() || !self.send(&key, peer, out) {
                    self.wait(key, peer, out);
                }
            }
        }
    }

    fn wait(&mut self, key: Key, peer: usize, out: &mut Vec<u8>) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back((key, peer));
        } else {
            self.ledger.failed(&key, peer, Outcome::Dropped, out);
        }
    }

    /// Sends a message to a receiver; returns false if the datagram must wait, because the session has not
    /// begun or the socket's buffer is full. Records it as unsent after the session's end, if the session
    /// could not begin, or if the kernel refuses it.
    fn send(&mut self, key: &Key, peer: usize, out: &mut Vec<u8>) -> bool {
        let Some(socket) = &self.socket else {
            if self.state == State::Over {
                self.ledger.failed(key, peer, Outcome::Unsent, out);
            }
            return self.state == State::Over;
        };
        self.output.clear();
        self.ledger.write(key, &mut self.output);
        if self.output.is_empty() {
            return true;
        }
        let Peer { address, port, .. } = self.to[peer];
        match socket.send_to(&self.output, (address, port)) {
            Ok(_) => self.ledger.taken(key, clock::lab_ns(), out),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
            Err(e) => {
                self.ledger.failed(key, peer, Outcome::Unsent, out);
                self.record_error(format!("{}: {e}", self.to[peer].endpoint), out);
            }
        }
        true
    }

    fn record_error(&mut self, text: String, out: &mut Vec<u8>) {
        if self.errors.len() < MAX_ERRORS && !self.errors.contains(&text) {
            self.session.record("failed", clock::lab_ns(), &text, out);
            self.errors.insert(text);
        }
    }

    fn send_waiting(&mut self, out: &mut Vec<u8>) {
        while let Some((key, peer)) = self.waiting.front().copied() {
            if !self.send(&key, peer, out) {
                return;
            }
            self.waiting.pop_front();
        }
        while let Some((ends, request)) = self.replies.pop_front() {
            if !self.reply(ends, &request, out) {
                return self.replies.push_front((ends, request));
            }
        }
    }

    /// Sends the reply to a request; returns false if the socket's buffer is full. Without a socket it does
    /// nothing; another error is recorded.
    fn reply(&mut self, ends: Ends, request: &Identity, out: &mut Vec<u8>) -> bool {
        let Some(socket) = &self.socket else {
            return true;
        };
        self.output.clear();
        peers::reply(request, &mut self.output);
        match datagrams::answer(socket, &self.output, ends) {
            Ok(_) => true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => false,
            Err(e) => {
                self.record_error(format!("reply to {}: {e}", ends.theirs), out);
                true
            }
        }
    }

    /// Applies the last rate limit for this sender that has arrived since the last call; records
    /// malformed messages as errors. Does nothing without `rate_limits_from`.
    fn apply_rate_limit(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(limits) = &mut self.rate_limits else {
            return;
        };
        let received = limits.take();
        for text in received.malformed {
            self.record_error(text, out);
        }
        if let Some(bps) = received.share_bps {
            self.ledger.limit(bps, HEADERS);
            self.session
                .record("limited", now, &format!("{bps} bit/s"), out);
        }
    }

    /// Sends the gateway the rate that the receiver wants, if that is due, and records it. Does nothing
    /// without `wants`.
    fn want_rate(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        let Some(wanted) = &mut self.rates_wanted else {
            return;
        };
        let (wish, sent) = wanted.on_time(t0, now);
        if let Some(bps) = wish {
            self.session
                .record("wanted", now, &format!("{bps} bit/s"), out);
        }
        if let Err(text) = sent {
            self.record_error(text, out);
        }
    }

    fn receive(&mut self, out: &mut Vec<u8>) {
        let mut datagram = std::mem::take(&mut self.input);
        datagram.resize(LONGEST, 0);
        for _ in 0..AT_ONCE {
            let next = self.socket.as_ref();
            let Some(Ok((n, ends))) = next.map(|s| datagrams::receive(s, &mut datagram)) else {
                break;
            };
            self.take(&datagram[..n], ends, clock::lab_ns(), out);
        }
        self.input = datagram;
    }

    fn take(&mut self, datagram: &[u8], ends: Ends, now: i64, out: &mut Vec<u8>) {
        let Some(identity) = payload::read(datagram) else {
            self.counts.foreign += 1;
            return;
        };
        if identity.purpose == Purpose::Reply {
            let theirs = SocketAddr::new(ends.theirs.ip().to_canonical(), ends.theirs.port());
            let peer = self
                .by_address
                .get(&theirs)
                .map(|i| (*i, self.to[*i].endpoint.as_str()));
            let request = peer.and_then(|peer| self.ledger.answered(&identity, peer, now, out));
            self.counts.foreign += u64::from(request.is_none());
            return;
        }
        if !self.listens || identity.reply_bytes as usize > LONGEST {
            self.counts.foreign += 1;
            return;
        }
        self.counts.received += 1;
        let Identity { flow, seq, .. } = identity;
        records::received(out, flow, seq, &self.session.endpoint, 0, now, false);
        if identity.purpose == Purpose::Request {
            if self.replies.is_empty() && self.reply(ends, &identity, out) {
                return;
            }
            if self.replies.len() < WAITING {
                self.replies.push_back((ends, identity));
            } else {
                self.counts.dropped += 1;
            }
        }
    }
}

impl Role for Udp {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn connected(&self) -> bool {
        self.state == State::Up
    }

    fn totals(&self) -> Totals {
        let mut totals = self.ledger.totals();
        totals += self.counts;
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(socket) = &self.socket {
            let write = !(self.waiting.is_empty() && self.replies.is_empty());
            wait_for(socket.as_raw_fd(), write);
        }
        for fd in self.rate_limits.iter().flat_map(RateLimits::fds) {
            wait_for(fd, false);
        }
        if let Some(fd) = self.rates_wanted.as_ref().and_then(RatesWanted::fd) {
            wait_for(fd, true);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let session = match self.state {
            State::Waiting if self.listens => Some(t0),
            State::Waiting => Some(t0 + self.session.connect_ns),
            State::Up if !self.listens => Some(t0 + self.session.disconnect_ns),
            State::Up | State::Over => None,
        };
        let wanted = self.rates_wanted.as_ref().map(|wanted| wanted.deadline(t0));
        earliest([session, self.ledger.deadline(t0), wanted])
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        if self.state == State::Waiting && (self.listens || now >= t0 + self.session.connect_ns) {
            self.open(now, out);
        }
        self.want_rate(t0, now, out);
        self.send_due(t0, now, out);
        self.ledger.expire(now, out);
        if self.state == State::Up && !self.listens && now >= t0 + self.session.disconnect_ns {
            self.leave(now, out);
        }
    }

    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if self
            .rate_limits
            .as_ref()
            .is_some_and(|o| o.fds().contains(&fd))
        {
            return self.apply_rate_limit(now, out);
        }
        if self.rates_wanted.as_ref().and_then(RatesWanted::fd) == Some(fd) {
            return self.on_time(now, out);
        }
        if revents & libc::POLLOUT != 0 {
            self.send_waiting(out);
        }
        if revents & (libc::POLLIN | libc::POLLERR) != 0 {
            self.receive(out);
        }
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.send_due(t0, now, out);
        }
        self.leave(now, out);
    }
}

#[cfg(test)]
mod tests;
