//! Implements the role of a broker's client, common to all protocols: it joins a session, a link and a
//! delivery ledger with a protocol.
//!
//! The protocol is a state machine without I/O; the caller passes bytes and the time to it. All times are
//! Unix nanoseconds of the lab's clock.

mod delivery;
mod link;
mod lives;
mod replies;
pub mod tls;
mod waits;

pub use delivery::Rules;
pub use link::{Broker, Link};

use super::Role;
use super::sends::Sends;
use super::socket::CONNECT_LIMIT_NS;
use crate::clock;
use crate::os::{self, Res};
use crate::proto::{Item, Totals};
use crate::roles::earliest;
use delivery::Delivery;
use link::State;
use lives::End;
use std::io::ErrorKind;
use std::os::fd::RawFd;

const CHUNK_BYTES: usize = 16_384;

/// A protocol on a connection. It buffers output until one of its functions writes it to the link; a returned
/// error is the reason why the connection is unusable.
pub trait Protocol {
    /// The reason that is recorded for an attempt that timed out.
    const LATE: &'static str;

    /// Sets t0, from which the offsets of the settings count.
    fn go(&mut self, _t0_ns: i64) {}
    /// Begins the protocol on a new connection, which is not established yet.
    fn begin(&mut self, now: i64);
    /// Handles the end of TCP's handshake: the connection is established.
    fn established(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()>;
    fn receive(&mut self, bytes: &[u8], link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()>;
    /// Returns when to call `on_time` next; None if nothing is planned.
    fn deadline(&self) -> Option<i64>;
    /// Runs the timers and heartbeats that are due.
    fn on_time(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()>;
    /// Passes queued messages to the protocol while its window is open, and writes them.
    fn pump(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()>;
    /// Returns whether output waits for space in the socket's buffer.
    fn has_output(&self) -> bool;
    /// Handles a writable socket, before the client reads from it.
    fn on_room(&mut self, _line: &mut Link, _now: i64, _out: &mut Vec<u8>) {}
    /// Disconnects from a broker that has accepted the login.
    fn leave(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>);
    /// Sends a last message, if the protocol has one, before the client closes a connection or a failed
    /// attempt.
    fn last_words(&mut self, _line: &mut Link, _now: i64, _out: &mut Vec<u8>) {}
    /// Handles the end of the connection; the state of the session stays for the next connection.
    fn end(&mut self);
}

pub struct Client<P> {
    link: Link,
    protocol: P,
    t0_ns: Option<i64>,
}

impl<P: Protocol> Client<P> {
    /// Creates a client for an item of `workload`; it does nothing before `go`. `rules` are those of a
    /// publisher, None for a client that only subscribes.
    pub fn new(item: Item, broker: Broker, rules: Option<Rules>, protocol: P) -> Res<Self> {
        let session = item.software.session;
        let address = broker.address()?;
        let count = item.flows.len();
        let sends = match (&rules, item.flows.into_iter().next()) {
            (None, None) => None,
            (Some(rules), Some(flow)) if count == 1 => {
                let resume = item.resume.get(&flow.number).cloned();
                Some(if rules.own_content {
                    Sends::with_own_encoding(flow, &session, resume)?
                } else {
                    Sends::new(flow, &session, resume)?
                })
            }
            _ => {
                return Err(format!(
                    "publish: needs exactly one flow, not {count}; write both or neither"
                ));
            }
        };
        let delivery = Delivery::new(rules.unwrap_or_default(), sends);
        Ok(Self {
            link: Link::new(session, broker, address, delivery)?,
            protocol,
            t0_ns: None,
        })
    }

    fn connect(&mut self, now: i64, out: &mut Vec<u8>) {
        self.link.note("connecting", now, "", out);
        match self.link.connect() {
            Ok(()) => {
                self.protocol.begin(now);
                self.link.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(e) => self.lost(&e, now, out),
        }
    }

    /// Handles the end of a connection or an attempt: records `link.error`, or `why` if there is no error,
    /// and reconnects later if the settings require it.
    fn lost(&mut self, why: &str, now: i64, out: &mut Vec<u8>) {
        let what = if self.link.is_welcome() {
            "disconnected"
        } else {
            "failed"
        };
        let why = self.link.error.take().unwrap_or_else(|| why.to_owned());
        self.link.note(what, now, &why, out);
        self.protocol.last_words(&mut self.link, now, out);
        self.close(out);
        self.link.state = match self.link.waits.take_next() {
            None => State::Over,
            Some(wait) => State::Waiting(now + wait),
        };
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.link.hang_up();
        self.protocol.end();
        self.link.delivery.connection_lost(out);
    }

    /// Ends a connection at its planned end; the client connects again later.
    fn pause(&mut self, end: End, now: i64, out: &mut Vec<u8>) {
        self.link.state = State::Waiting(now + end.away_ns);
        let how = if end.abrupt {
            "as drawn, abruptly"
        } else {
            self.protocol.leave(&mut self.link, now, out);
            "as drawn"
        };
        self.link.note("disconnected", now, how, out);
        self.close(out);
    }

    /// Disconnects as planned, without reconnecting later.
    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        // The broker closes the connection next, which is expected.
        self.link.state = State::Over;
        if self.link.is_welcome() {
            self.protocol.leave(&mut self.link, now, out);
            self.link
                .session
                .record("disconnected", now, "as planned", out);
        }
        self.close(out);
    }

    fn keep(&mut self, done: Res<()>, now: i64, out: &mut Vec<u8>) {
        if let Err(why) = done {
            self.lost(&why, now, out);
        }
    }

    /// Reads the result of TCP's handshake, and passes it on to the protocol; a failure ends the attempt.
    /// Returns whether there is a connection now.
    fn establish(&mut self, now: i64, out: &mut Vec<u8>) -> bool {
        match self.link.take_error() {
            None => return false,
            Some(Err(why)) => self.lost(&why, now, out),
            Some(Ok(())) => {
                let done = self.protocol.established(&mut self.link, now, out);
                self.keep(done, now, out);
            }
        }
        self.link.is_established()
    }

    fn read(&mut self, fd: RawFd, now: i64, out: &mut Vec<u8>) {
        let mut chunk = [0u8; CHUNK_BYTES];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.lost("closed by the broker", now, out),
            Ok(n) => {
                // The process may have waited for a CPU before the read, so the clock is read again.
                let now = clock::lab_ns().max(now);
                let done = match self.link.decrypt(&chunk[..n], now, out) {
                    None => self.protocol.receive(&chunk[..n], &mut self.link, now, out),
                    Some(Ok(plain)) => self.protocol.receive(&plain, &mut self.link, now, out),
                    Some(Err(why)) => Err(why),
                };
                self.keep(done, now, out);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    fn pump(&mut self, now: i64, out: &mut Vec<u8>) {
        let done = self.protocol.pump(&mut self.link, now, out);
        self.keep(done, now, out);
    }
}

impl<P: Protocol> Role for Client<P> {
    fn go(&mut self, t0_ns: i64) {
        if self.t0_ns.is_none() {
            self.t0_ns = Some(t0_ns);
            self.protocol.go(t0_ns);
            self.link.state = State::Waiting(t0_ns + self.link.session.connect_ns);
        }
    }

    fn connected(&self) -> bool {
        self.link.is_up()
    }

    fn totals(&self) -> Totals {
        self.link.totals()
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(fd) = self.link.fd() {
            wait_for(fd, self.link.wants_write(self.protocol.has_output()));
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let state = match self.link.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up | State::Over => None,
        };
        let stays = self.link.state != State::Over;
        let end = stays.then_some(t0 + self.link.session.disconnect_ns);
        let tick = self.link.delivery.next_tick().map(|t| t0 + t);
        let planned = self.link.end.map(|end| end.at_ns);
        earliest([state, end, tick, planned, self.protocol.deadline()])
    }

    /// Queues due messages, connects, runs the protocol's timers, and disconnects at the session's end.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        self.link.delivery.schedule(t0, now, out);
        if self.link.state != State::Over && now >= t0 + self.link.session.disconnect_ns {
            self.leave(now, out);
        }
        if let Some(end) = self.link.end.filter(|end| now >= end.at_ns) {
            self.pause(end, now, out);
        }
        match self.link.state {
            State::Waiting(at) if now >= at => self.connect(now, out),
            State::Connecting(until) if now >= until => self.lost(P::LATE, now, out),
            _ => {}
        }
        let done = self.protocol.on_time(&mut self.link, now, out);
        self.keep(done, now, out);
        self.pump(now, out);
    }

    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if !self.link.is_established() && !self.establish(now, out) {
            return;
        }
        if revents & libc::POLLOUT != 0 {
            self.protocol.on_room(&mut self.link, now, out);
        }
        if revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
            self.read(fd, now, out);
        }
        self.pump(now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.link.delivery.schedule(t0, now, out);
        }
        self.link.delivery.freeze();
        if self.link.state != State::Over {
            self.leave(now, out);
        }
        self.link.delivery.finish(out);
    }
}
