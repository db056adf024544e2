//! Implements ZeroMQ: one side binds and sends (ROUTER, PUB), the others connect (DEALER, SUB) and reply.
//!
//! The sockets are libzmq's. A message is `sent` once libzmq has accepted it; only captures show its
//! queues and retransmissions. Replies return over the same connection (DEALER), or from a REQ to a REP
//! beside it.

mod library;
mod sockets;
mod spec;

use super::Role;
use super::ledger::{Key, Ledger};
use super::peers;
use crate::clock;
use crate::os::Res;
use crate::payload::{self, Identity, Purpose};
use crate::proto::{self, Item, Session, Totals};
use crate::records::{self, Outcome};
use crate::roles::earliest;
use sockets::{Incoming, Sockets};
use spec::Spec;
use std::collections::VecDeque;
use std::os::fd::RawFd;

/// The most messages that the role receives before it checks the clock again.
const AT_ONCE: usize = 64;
/// The time in ns before its first message at which a multicast publisher begins to announce itself.
const ANNOUNCE_NS: i64 = 10_000_000_000;
/// The interval between two announcements of a multicast publisher.
const ANNOUNCE_EVERY_NS: i64 = 500_000_000;
/// The most replies that wait until libzmq accepts them; further ones are dropped.
const WAITING: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Armed,
    Up,
    Over,
}

pub struct Zeromq {
    session: Session,
    spec: Spec,
    sockets: Option<Sockets>,
    bound_ns: i64,
    state: State,
    connected: bool,
    t0_ns: Option<i64>,
    ledger: Ledger,
    /// Replies that libzmq has not accepted yet.
    answers: VecDeque<Identity>,
    /// True if the role must run again at once: it stopped after `AT_ONCE` messages, or it sent a reply,
    /// which may have consumed an event.
    more: bool,
    /// The time of the publisher's next announcement, as an offset from t0; None from its first message on.
    announce_ns: Option<i64>,
    first_ns: i64,
    output: Vec<u8>,
    counts: Totals,
}

/// Creates the role of an item of `workload`; opens the sockets that are bound.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    Ok(Box::new(Zeromq::new(item)?))
}

impl Zeromq {
    fn new(mut item: Item) -> Res<Self> {
        let session = item.software.session.clone();
        let spec: Spec = proto::parse("spec", item.software.spec.take())?;
        spec.check(&item.flows)?;
        let first_ns = item.flows.iter().map(|flow| flow.start_ns).min();
        let announce_ns = first_ns.filter(|_| spec.sends() && spec.is_multicast());
        let ledger = Ledger::new(item, &session, spec.to.len(), spec.timeout_ns)?;
        let sockets = spec
            .sends()
            .then(|| Sockets::open(&spec, &session.endpoint));
        Ok(Self {
            session,
            sockets: sockets.transpose()?,
            spec,
            bound_ns: clock::lab_ns(),
            state: State::Armed,
            connected: false,
            t0_ns: None,
            ledger,
            answers: VecDeque::new(),
            more: false,
            announce_ns: announce_ns.map(|first| (first - ANNOUNCE_NS).max(0)),
            first_ns: first_ns.unwrap_or(0),
            output: Vec::new(),
            counts: Totals::default(),
        })
    }

    fn begin(&mut self, now: i64, out: &mut Vec<u8>) {
        self.state = State::Up;
        if self.spec.sends() {
            self.connected = true;
            return self.session.record("listening", self.bound_ns, "", out);
        }
        self.session
            .record("connecting", now, &self.spec.words(), out);
        match Sockets::open(&self.spec, &self.session.endpoint) {
            Ok(sockets) => self.sockets = Some(sockets),
            Err(text) => {
                self.state = State::Over;
                return self.session.record("failed", now, &text, out);
            }
        }
        // Multicast has no connections, so a group member counts as connected.
        if self.spec.is_multicast() {
            self.record_connected(now, out);
        }
    }

    fn record_connected(&mut self, now: i64, out: &mut Vec<u8>) {
        self.connected = true;
        self.session.record("connected", now, "", out);
        self.session.record("subscribed", now, "", out);
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.ledger.finish(out);
        if self.connected {
            self.session.record("disconnected", now, "as planned", out);
        }
        self.state = State::Over;
        self.connected = false;
        self.sockets = None;
    }

    /// Announces a multicast publisher by empty messages before its first message. A receiver without an SPM
    /// packet (source path message) of a source does not repair losses, and both sides check their timers
    /// only when a packet arrives. The first empty message makes receivers need an SPM, a later one makes
    /// them request it, and lossy links need some more.
    fn announce(&mut self, t0: i64, now: i64) {
        if let Some(offset) = self.announce_ns.filter(|offset| t0 + offset <= now) {
            self.announce_ns =
                Some(offset + ANNOUNCE_EVERY_NS).filter(|next| *next < self.first_ns);
            let _whether_taken = self.sockets.as_ref().map(|sockets| sockets.publish(b""));
        }
    }

    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(key) = self.ledger.take_due(t0, now, out) {
            self.output.clear();
            self.ledger.write(&key, &mut self.output);
            match &self.sockets {
                Some(sockets) if self.spec.is_published() => {
                    let taken = sockets.publish(&self.output);
                    for receiver in self.ledger.receivers(&key) {
                        note(&mut self.ledger, &key, receiver, taken, out);
                    }
                }
                Some(sockets) => {
                    for receiver in self.ledger.receivers(&key) {
                        let taken = sockets.route(&self.spec.to[receiver], &self.output);
                        note(&mut self.ledger, &key, receiver, taken, out);
                    }
                }
                None => return,
            }
        }
    }

    fn take_in(&mut self, out: &mut Vec<u8>) {
        self.more = true;
        for _ in 0..AT_ONCE {
            let Some(incoming) = self.sockets.as_mut().and_then(Sockets::next) else {
                self.more = false;
                return;
            };
            let now = clock::lab_ns();
            match incoming {
                Incoming::Message(body) => self.received(&body, now, out),
                Incoming::Answer(from, body) => self.answered(&from, &body, now, out),
                Incoming::Connected if !self.spec.sends() && !self.connected => {
                    self.record_connected(now, out);
                }
                Incoming::Lost if !self.spec.sends() && self.connected => {
                    self.connected = false;
                    self.session
                        .record("disconnected", now, "connection lost", out);
                }
                Incoming::Connected | Incoming::Lost => {}
            }
        }
    }

    fn received(&mut self, body: &[u8], now: i64, out: &mut Vec<u8>) {
        if body.is_empty() && self.spec.is_multicast() {
            return; // an announcement
        }
        let Some(identity) = payload::read(body) else {
            self.counts.foreign += 1;
            return;
        };
        self.counts.received += 1;
        let Identity { flow, seq, .. } = identity;
        records::received(out, flow, seq, &self.session.endpoint, 0, now, false);
        if identity.purpose == Purpose::Request {
            if self.answers.len() < WAITING {
                self.answers.push_back(identity);
            } else {
                self.counts.dropped += 1;
            }
        }
    }

    fn send_answers(&mut self) {
        while let (Some(sockets), Some(request)) = (&mut self.sockets, self.answers.front()) {
            self.output.clear();
            peers::reply(request, &mut self.output);
            if !sockets.answer(&self.session.endpoint, &self.output) {
                return;
            }
            self.answers.pop_front();
            // Sending may have consumed an event that no descriptor will signal again.
            self.more = true;
        }
    }

    fn answered(&mut self, from: &[u8], body: &[u8], now: i64, out: &mut Vec<u8>) {
        let reply = payload::read(body).filter(|m| m.purpose == Purpose::Reply);
        let known = |name: &String| name.as_bytes() == from;
        let receiver = self.spec.to.iter().position(known);
        let booked = reply.zip(receiver).and_then(|(reply, receiver)| {
            let from = (receiver, self.spec.to[receiver].as_str());
            self.ledger.answered(&reply, from, now, out)
        });
        self.counts.foreign += u64::from(booked.is_none());
    }
}

/// Records in the ledger that libzmq has accepted a message for one receiver or, with the outcome, that it
/// has not.
fn note(
    ledger: &mut Ledger,
    key: &Key,
    receiver: usize,
    taken: Result<(), Outcome>,
    out: &mut Vec<u8>,
) {
    match taken {
        Ok(()) => ledger.taken(key, clock::lab_ns(), out),
        Err(outcome) => ledger.failed(key, receiver, outcome, out),
    }
}

impl Role for Zeromq {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn connected(&self) -> bool {
        self.connected
    }

    fn totals(&self) -> Totals {
        let mut totals = self.ledger.totals();
        totals += self.counts;
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(sockets) = &self.sockets {
            sockets.fds().for_each(|fd| wait_for(fd, false));
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let session = match self.state {
            State::Armed if self.spec.sends() => Some(t0),
            State::Armed => Some(t0 + self.session.connect_ns),
            State::Up if !self.spec.sends() => Some(t0 + self.session.disconnect_ns),
            State::Up | State::Over => None,
        };
        let at_once = self.more.then_some(t0);
        let announce = self.announce_ns.map(|offset| t0 + offset);
        earliest([session, self.ledger.deadline(t0), at_once, announce])
    }

    /// Begins and ends the session, and sends, receives and expires all that is due. libzmq's descriptors
    /// are edge triggered, so each call processes all pending events.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        let its_time = self.spec.sends() || now >= t0 + self.session.connect_ns;
        if self.state == State::Armed && its_time {
            self.begin(now, out);
        }
        self.announce(t0, now);
        self.send_due(t0, now, out);
        self.take_in(out);
        self.send_answers();
        self.ledger.expire(now, out);
        let over = now >= t0 + self.session.disconnect_ns;
        if self.state == State::Up && !self.spec.sends() && over {
            self.leave(now, out);
        }
    }

    fn on_ready(&mut self, _fd: RawFd, _revents: i16, _now: i64, _out: &mut Vec<u8>) {}

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.send_due(t0, now, out);
        }
        self.take_in(out);
        self.leave(now, out);
    }
}

#[cfg(test)]
mod tests;
