//! A client of a broker, whatever it speaks: when it comes and goes, its connection, and the books of what it publishes.
//!
//! The protocol itself is a state machine without input and output; the clock is an argument. All times are the lab's
//! clock in Unix nanoseconds.

mod delivery;
mod line;

pub use delivery::Rules;
pub use line::{Broker, Line};

use super::Role;
use super::sends::Sends;
use super::socket::CONNECT_LIMIT_NS;
use crate::clock;
use crate::os::{self, Res};
use crate::proto::{Item, Totals};
use delivery::Delivery;
use line::State;
use std::io::ErrorKind;
use std::os::fd::RawFd;

const CHUNK_BYTES: usize = 16_384;

/// What one protocol does with a connection. It keeps what it has to say until `write` or `pump` gives it to the line;
/// an error is why the connection is of no use any more.
pub trait Protocol {
    /// What there is to say of an attempt that was given up.
    const LATE: &'static str;

    /// A new connection is on its way.
    fn begin(&mut self, now: i64);
    /// TCP's handshake is over.
    fn established(&mut self, line: &mut Line, now: i64, out: &mut Vec<u8>) -> Res<()>;
    fn receive(&mut self, bytes: &[u8], line: &mut Line, now: i64, out: &mut Vec<u8>) -> Res<()>;
    /// When `on_time` has something to do.
    fn deadline(&self) -> Option<i64>;
    /// Timers and heartbeats.
    fn on_time(&mut self, line: &mut Line, now: i64, out: &mut Vec<u8>) -> Res<()>;
    /// Hands queued messages to the protocol while its window is open, and writes them.
    fn pump(&mut self, line: &mut Line, now: i64, out: &mut Vec<u8>) -> Res<()>;
    /// Whether something waits for room in the socket.
    fn has_output(&self) -> bool;
    /// The socket has room, before anything is read from it.
    fn on_room(&mut self, _line: &mut Line, _now: i64, _out: &mut Vec<u8>) {}
    /// Says goodbye to a broker that has taken the login.
    fn leave(&mut self, line: &mut Line, now: i64, out: &mut Vec<u8>);
    /// The connection is about to be given up: what it still has to say, if anything.
    fn last_words(&mut self, _line: &mut Line, _now: i64, _out: &mut Vec<u8>) {}
    /// The connection is gone; what its session keeps is carried over into the next.
    fn end(&mut self);
}

pub struct Client<P> {
    line: Line,
    protocol: P,
    t0_ns: Option<i64>,
}

impl<P: Protocol> Client<P> {
    /// A client for an item of `workload`, whose specification is read; nothing happens before `go`.
    ///
    /// `rules`: of what it publishes, if it does.
    pub fn new(item: Item, broker: Broker, rules: Option<Rules>, protocol: P) -> Res<Self> {
        let session = item.software.session;
        let address = broker.address()?;
        let count = item.flows.len();
        let sends = match (&rules, item.flows.into_iter().next()) {
            (None, None) => None,
            (Some(_), Some(flow)) if count == 1 => {
                let resume = item.resume.get(&flow.number).cloned();
                Some(Sends::new(flow, &session, resume)?)
            }
            _ => {
                return Err(format!(
                    "publish: goes with one flow, and {count} are given; give both or none"
                ));
            }
        };
        let delivery = Delivery::new(rules.unwrap_or_default(), sends);
        Ok(Self {
            line: Line::new(session, broker, address, delivery),
            protocol,
            t0_ns: None,
        })
    }

    fn connect(&mut self, now: i64, out: &mut Vec<u8>) {
        self.line.note("connecting", now, "", out);
        match self.line.connect() {
            Ok(()) => {
                self.protocol.begin(now);
                self.line.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    /// The connection (or the attempt) is over; what follows is the reconnect policy.
    fn lost(&mut self, why: &str, now: i64, out: &mut Vec<u8>) {
        let what = if self.line.is_welcome() {
            "disconnected"
        } else {
            "failed"
        };
        let why = self.line.trouble.take().unwrap_or_else(|| why.to_owned());
        self.line.note(what, now, &why, out);
        // Nobody waits for it to leave.
        self.protocol.last_words(&mut self.line, now, out);
        self.close(out);
        self.line.state = match self.line.broker.reconnect_ns {
            0 => State::Over,
            wait => State::Waiting(now + wait),
        };
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.line.hang_up();
        self.protocol.end();
        self.line.delivery.connection_lost(out);
    }

    /// Says goodbye and never comes back.
    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        // From here on a close by the broker is the end that we asked for.
        self.line.state = State::Over;
        if self.line.is_welcome() {
            self.protocol.leave(&mut self.line, now, out);
            self.line.note("disconnected", now, "as planned", out);
        }
        self.close(out);
    }

    fn keep(&mut self, done: Res<()>, now: i64, out: &mut Vec<u8>) {
        if let Err(why) = done {
            self.lost(&why, now, out);
        }
    }

    /// Whether TCP's handshake is over.
    fn establish(&mut self, now: i64, out: &mut Vec<u8>) -> bool {
        match self.line.take_error() {
            None => return false,
            Some(Err(why)) => self.lost(&why, now, out),
            Some(Ok(())) => {
                let done = self.protocol.established(&mut self.line, now, out);
                self.keep(done, now, out);
            }
        }
        self.line.is_established()
    }

    fn read(&mut self, fd: RawFd, now: i64, out: &mut Vec<u8>) {
        let mut chunk = [0u8; CHUNK_BYTES];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.lost("closed by the broker", now, out),
            Ok(n) => {
                // The process may have waited for a CPU before the read: what came in meanwhile is dated after it.
                let now = clock::lab_ns().max(now);
                let done = self.protocol.receive(&chunk[..n], &mut self.line, now, out);
                self.keep(done, now, out);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    fn pump(&mut self, now: i64, out: &mut Vec<u8>) {
        let done = self.protocol.pump(&mut self.line, now, out);
        self.keep(done, now, out);
    }
}

impl<P: Protocol> Role for Client<P> {
    fn go(&mut self, t0_ns: i64) {
        if self.t0_ns.is_none() {
            self.t0_ns = Some(t0_ns);
            self.line.state = State::Waiting(t0_ns + self.line.session.connect_ns);
        }
    }

    fn connected(&self) -> bool {
        self.line.is_up()
    }

    fn totals(&self) -> Totals {
        self.line.totals()
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(fd) = self.line.fd() {
            let writes = !self.line.is_established() || self.protocol.has_output();
            wait_for(fd, writes);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let state = match self.line.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up | State::Over => None,
        };
        let stays = self.line.state != State::Over;
        let end = stays.then_some(t0 + self.line.session.disconnect_ns);
        let tick = self.line.delivery.next_tick().map(|t| t0 + t);
        [state, end, tick, self.protocol.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Schedule, connect, keep alive, leave.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        self.line.delivery.schedule(t0, now, out);
        if self.line.state != State::Over && now >= t0 + self.line.session.disconnect_ns {
            self.leave(now, out);
        }
        match self.line.state {
            State::Waiting(at) if now >= at => self.connect(now, out),
            State::Connecting(until) if now >= until => self.lost(P::LATE, now, out),
            _ => {}
        }
        let done = self.protocol.on_time(&mut self.line, now, out);
        self.keep(done, now, out);
        self.pump(now, out);
    }

    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if !self.line.is_established() && !self.establish(now, out) {
            return;
        }
        if revents & libc::POLLOUT != 0 {
            self.protocol.on_room(&mut self.line, now, out);
        }
        if revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
            self.read(fd, now, out);
        }
        self.pump(now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.line.delivery.schedule(t0, now, out);
        }
        self.line.delivery.freeze();
        if self.line.state != State::Over {
            self.leave(now, out);
        }
        self.line.delivery.finish(out);
    }
}
