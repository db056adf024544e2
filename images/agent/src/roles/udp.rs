//! Datagrams: requests with their replies, pushes and streams to peers, and the side that takes and answers them.
//!
//! A socket of the kernel and nothing above it: what is lost stays lost. All that a reply needs travels in the request.

use super::Role;
use super::books::{Books, Key};
use super::datagrams::{self, Ends};
use super::orders::{Obeys, Orders};
use super::peers::{self, Peer};
use super::socket::{self, Marks};
use crate::clock;
use crate::os::Res;
use crate::payload::{self, Identity, Purpose};
use crate::proto::{self, Item, Session, Totals};
use crate::records::{self, Outcome};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// The longest datagram over IPv4.
const LONGEST: usize = 65_507;
/// Of Ethernet, IPv4 and UDP, before a payload.
const HEADERS: u64 = 42;
/// Datagrams that wait for room in the socket's buffer; what is beyond is dropped.
const WAITING: usize = 1000;
/// So many are taken in before the clock is looked at again: what arrives must not make late what is to be sent.
const AT_ONCE: usize = 64;
/// So many different ones are said: a stranger can ask from many addresses that no route leads to.
const TROUBLES: usize = 100;

#[derive(Deserialize)]
struct Spec {
    listen: Option<u16>,
    #[serde(default)]
    to: Vec<Peer>,
    /// A request is given up so long after it was due.
    timeout_ns: i64,
    #[serde(flatten)]
    marks: Marks,
    /// The node has addresses of IPv6.
    #[serde(default)]
    ipv6: bool,
    /// Where a gateway says how much it may send.
    obeys: Option<Obeys>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Opens its socket at the session's time.
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
    books: Books,
    /// For whom the socket had no room yet: place in `to`.
    waiting: VecDeque<(Key, usize)>,
    replies: VecDeque<(Ends, Identity)>,
    /// A datagram each, kept: a server takes tens of thousands in a second.
    input: Vec<u8>,
    output: Vec<u8>,
    counts: Totals,
    /// Each is said once and not for every datagram.
    troubles: BTreeSet<String>,
    orders: Option<Orders>,
}

/// A role that is bound, if it listens.
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
            orders: spec.obeys.map(Orders::open).transpose()?,
            by_address: by_address
                .map(|(i, p)| (SocketAddr::new(p.address, p.port), i))
                .collect(),
            books: Books::new(item, &session, spec.to.len(), spec.timeout_ns)?,
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
            troubles: BTreeSet::new(),
        })
    }

    fn say(&self, what: &str, at_ns: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, at_ns, detail);
    }

    fn open(&mut self, now: i64, out: &mut Vec<u8>) {
        self.state = State::Up;
        if self.listens {
            return self.say("listening", self.bound_ns, "", out);
        }
        let marked = |socket| socket::mark(&socket, self.marks).map(|()| socket);
        let ipv6 = self.to.iter().any(|peer| peer.address.is_ipv6());
        match datagrams::bound(0, ipv6).and_then(marked) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.say("connected", now, "", out);
            }
            Err(e) => {
                self.state = State::Over;
                self.say("failed", now, &e.to_string(), out);
            }
        }
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.waiting.clear();
        self.replies.clear();
        self.books.finish(out);
        if let Some(text) = self.socket.as_ref().and_then(datagrams::overrun) {
            self.say("failed", now, &text, out);
        }
        if self.state == State::Up {
            self.say("disconnected", now, "as planned", out);
        }
        self.state = State::Over;
        self.socket = None;
    }

    /// Sends what is due; it is dated after the kernel has taken it.
    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(key) = self.books.take_due(t0, now, out) {
            for peer in self.books.receivers(&key) {
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
            self.books.failed(&key, peer, Outcome::Dropped, out);
        }
    }

    /// False where the socket has no room, so that the datagram waits.
    fn send(&mut self, key: &Key, peer: usize, out: &mut Vec<u8>) -> bool {
        let Some(socket) = &self.socket else {
            return false;
        };
        self.output.clear();
        self.books.write(key, &mut self.output);
        if self.output.is_empty() {
            return true;
        }
        let Peer { address, port, .. } = self.to[peer];
        match socket.send_to(&self.output, (address, port)) {
            Ok(_) => self.books.taken(key, clock::lab_ns(), out),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
            Err(e) => {
                self.books.failed(key, peer, Outcome::Unsent, out);
                self.complain(format!("{}: {e}", self.to[peer].endpoint), out);
            }
        }
        true
    }

    fn complain(&mut self, text: String, out: &mut Vec<u8>) {
        if self.troubles.len() < TROUBLES && !self.troubles.contains(&text) {
            self.say("failed", clock::lab_ns(), &text, out);
            self.troubles.insert(text);
        }
    }

    fn send_waiting(&mut self, out: &mut Vec<u8>) {
        while let Some((key, peer)) = self.waiting.front().copied() {
            if !self.send(&key, peer, out) {
                return;
            }
            self.waiting.pop_front();
        }
        while let Some((ends, asked)) = self.replies.pop_front() {
            if !self.reply(ends, &asked, out) {
                return self.replies.push_front((ends, asked));
            }
        }
    }

    /// False where the socket has no room.
    fn reply(&mut self, ends: Ends, asked: &Identity, out: &mut Vec<u8>) -> bool {
        let Some(socket) = &self.socket else {
            return true;
        };
        self.output.clear();
        peers::reply(asked, &mut self.output);
        match datagrams::answer(socket, &self.output, ends) {
            Ok(_) => true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => false,
            Err(e) => {
                self.complain(format!("reply to {}: {e}", ends.theirs), out);
                true
            }
        }
    }

    /// Sends no more than a gateway's last word allows.
    fn obey(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(orders) = &mut self.orders else {
            return;
        };
        let heard = orders.take();
        for text in heard.not_understood {
            self.complain(text, out);
        }
        if let Some(bps) = heard.share_bps {
            self.books.limit(bps, HEADERS);
            self.say("limited", now, &format!("{bps} bit/s"), out);
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
            let asked = peer.and_then(|peer| self.books.answered(&identity, peer, now, out));
            self.counts.foreign += u64::from(asked.is_none());
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
        let mut totals = self.books.totals();
        totals += self.counts;
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(socket) = &self.socket {
            let write = !(self.waiting.is_empty() && self.replies.is_empty());
            wait_for(socket.as_raw_fd(), write);
        }
        for fd in self.orders.iter().flat_map(Orders::fds) {
            wait_for(fd, false);
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
        [session, self.books.deadline(t0)]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        if self.state == State::Waiting && (self.listens || now >= t0 + self.session.connect_ns) {
            self.open(now, out);
        }
        self.send_due(t0, now, out);
        self.books.expire(now, out);
        if self.state == State::Up && !self.listens && now >= t0 + self.session.disconnect_ns {
            self.leave(now, out);
        }
    }

    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if self.orders.as_ref().is_some_and(|o| o.fds().contains(&fd)) {
            return self.obey(now, out);
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
