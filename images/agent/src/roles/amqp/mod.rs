//! One client of AMQP 0-9-1: an open-loop publisher, a consumer, or both, with every message accounted for.
//!
//! The protocol itself is a state machine without input and output; here are the socket, the schedule and the books.

mod connection;
mod methods;
mod spec;
mod wire;

use super::Role;
use super::delivery::{Delivery, Rules};
use super::sends::Sends;
use super::socket;
use crate::os::{self, Res};
use crate::proto::{self, Item, Session, Totals};
use crate::{clock, payload, records};
use connection::{Connection, Event};
use spec::Spec;
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// An attempt to connect (TCP, login and all that is declared) is given up after this time.
const CONNECT_LIMIT_NS: i64 = 10_000_000_000;
/// Messages wait in the queue, not in the socket's buffer, once so much is unsent.
const BACKLOG_BYTES: usize = 65_536;
const CHUNK_BYTES: usize = 16_384;
/// Of a name or key: AMQP's short text.
const LONGEST_TEXT: usize = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Connects at the time.
    Waiting(i64),
    /// Not ready yet, and given up at the time.
    Connecting(i64),
    Up,
    Over,
}

pub struct Client {
    spec: Spec,
    session: Session,
    broker: IpAddr,
    state: State,
    t0_ns: Option<i64>,
    link: Option<Link>,
    delivery: Delivery,
    totals: Totals,
}

/// A connection and its socket.
struct Link {
    socket: TcpStream,
    /// TCP's handshake is over.
    established: bool,
    /// The broker has taken the login.
    welcome: bool,
    amqp: Connection,
}

/// A client for an item of `workload`.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    Ok(Box::new(Client::new(item)?))
}

fn check(spec: &Spec) -> Res<()> {
    let mut texts = vec![("vhost", &spec.vhost)];
    if let Some(publish) = &spec.publish {
        texts.push(("publish.exchange.name", &publish.exchange.name));
        texts.push(("publish.key", &publish.key));
    }
    if let Some(consume) = &spec.consume {
        texts.push(("consume.exchange.name", &consume.exchange.name));
        texts.push(("consume.queue", &consume.queue));
        texts.extend(consume.keys.iter().map(|key| ("consume.keys", key)));
    }
    match texts.iter().find(|(_, text)| text.len() > LONGEST_TEXT) {
        Some((place, _)) => Err(format!(
            "{place}: more than {LONGEST_TEXT} bytes; write less"
        )),
        None => Ok(()),
    }
}

/// What is not confirmed when the connection is lost is sent anew, so that a duplicate is possible and a loss is not.
fn rules(spec: &Spec) -> Rules {
    let Some(publish) = &spec.publish else {
        return Rules::default();
    };
    Rules {
        acknowledged: publish.confirms,
        resends: true,
        keeps_session: false,
        inflight: publish.inflight,
        queue: publish.queue,
    }
}

impl Client {
    /// Checks the specification; nothing happens before `go`.
    fn new(item: Item) -> Res<Self> {
        let session = item.software.session;
        let spec: Spec = proto::parse("spec", item.software.spec)?;
        check(&spec)?;
        let broker = spec.broker.parse().map_err(|_| {
            format!(
                "broker: \"{}\" is not an IP address; write 10.0.0.1 or fd00::1",
                spec.broker
            )
        })?;
        let count = item.flows.len();
        let sends = match (&spec.publish, item.flows.into_iter().next()) {
            (None, None) => None,
            (Some(_), Some(flow)) if count == 1 => {
                let earlier = item.earlier.get(&flow.number).cloned();
                Some(Sends::new(flow, &session, earlier)?)
            }
            _ => {
                return Err(format!(
                    "publish: goes with one flow, and {count} are given; give both or none"
                ));
            }
        };
        Ok(Self {
            delivery: Delivery::new(rules(&spec), sends),
            spec,
            session,
            broker,
            state: State::Over,
            t0_ns: None,
            link: None,
            totals: Totals::default(),
        })
    }

    fn note(&self, what: &str, now: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, now, detail);
    }

    fn connect(&mut self, now: i64, out: &mut Vec<u8>) {
        self.note("connecting", now, "", out);
        // Latency is measured: small packets leave at once.
        match socket::connect(self.broker, self.spec.port, true, self.spec.marks) {
            Ok(socket) => {
                self.link = Some(Link {
                    socket,
                    established: false,
                    welcome: false,
                    amqp: Connection::new(self.spec.clone(), now),
                });
                self.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    /// The connection (or the attempt) is over; what follows is the reconnect policy.
    fn lost(&mut self, why: &str, now: i64, out: &mut Vec<u8>) {
        let welcome = self.link.as_ref().is_some_and(|link| link.welcome);
        let what = if welcome { "disconnected" } else { "failed" };
        self.note(what, now, why, out);
        // What it had to say at the end, if anything; nobody waits for it to leave.
        self.flush(now, out);
        self.close(out);
        self.state = match self.spec.reconnect_ns {
            0 => State::Over,
            wait => State::Waiting(now + wait),
        };
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.link = None;
        self.delivery.connection_lost(out);
    }

    /// Says goodbye and never comes back.
    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.state = State::Over;
        if let Some(link) = self.link.as_mut().filter(|link| link.welcome) {
            link.amqp.leave();
            self.flush(now, out);
            self.note("disconnected", now, "as planned", out);
        }
        self.close(out);
    }

    /// Whether TCP's handshake is over.
    fn established(&mut self, now: i64, out: &mut Vec<u8>) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        if link.established {
            return true;
        }
        match link.socket.take_error() {
            Ok(None) => link.established = true,
            Ok(Some(e)) | Err(e) => self.lost(&e.to_string(), now, out),
        }
        self.link.is_some()
    }

    fn read(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(link) = &mut self.link else {
            return;
        };
        let mut chunk = [0u8; CHUNK_BYTES];
        match os::read(link.socket.as_raw_fd(), &mut chunk) {
            Ok(0) => self.lost("closed by the broker", now, out),
            Ok(n) => {
                // The process may have waited for a CPU before the read: what came in meanwhile is dated after it.
                let now = clock::lab_ns().max(now);
                let mut events = Vec::new();
                link.amqp.receive(&chunk[..n], now, &mut events);
                self.apply(events, now, out);
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    fn apply(&mut self, events: Vec<Event>, now: i64, out: &mut Vec<u8>) {
        for event in events {
            match event {
                Event::Connected => {
                    if let Some(link) = &mut self.link {
                        link.welcome = true;
                    }
                    self.note("connected", now, "", out);
                }
                Event::Subscribed => self.note("subscribed", now, "", out),
                Event::Ready => self.state = State::Up,
                Event::Confirmed {
                    tag,
                    multiple: true,
                    taken,
                } => self.delivery.settled_to(tag, taken, now, out),
                Event::Confirmed { tag, taken, .. } => self.delivery.settled(tag, taken, now, out),
                Event::Message { redelivered, body } => {
                    self.on_message(redelivered, &body, now, out);
                }
                Event::Warning(text) => self.note("failed", now, &text, out),
                Event::Closed(why) => return self.lost(&why, now, out),
            }
        }
    }

    fn on_message(&mut self, redelivered: bool, body: &[u8], now: i64, out: &mut Vec<u8>) {
        match payload::read(body) {
            Some(who) => {
                self.totals.received += 1;
                let endpoint = &self.session.endpoint;
                records::received(out, who.flow, who.seq, endpoint, 0, now, redelivered);
            }
            None => self.totals.foreign += 1,
        }
    }

    /// Hands queued messages to the protocol while the window is open, and writes what the socket takes.
    fn pump(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(link) = self.link.as_mut().filter(|_| self.state == State::Up) {
            while link.amqp.output.len() < BACKLOG_BYTES
                && let Some(body) = self.delivery.next()
            {
                let tag = link.amqp.publish(&body);
                self.delivery.emitted(tag, link.amqp.output.len());
            }
        }
        self.flush(now, out);
    }

    /// Writes what the socket takes and learns which messages have left.
    fn flush(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(link) = self.link.as_mut().filter(|link| link.established) else {
            return;
        };
        while !link.amqp.output.is_empty() {
            match os::write(link.socket.as_raw_fd(), &link.amqp.output) {
                Ok(n) => {
                    link.amqp.output.drain(..n);
                    link.amqp.sent(now);
                    self.delivery.written(n, now, out);
                }
                // Full; or broken, which the read that follows learns with the reason.
                Err(_) => return,
            }
        }
        link.amqp.output = Vec::new();
    }
}

impl Role for Client {
    fn go(&mut self, t0_ns: i64) {
        if self.t0_ns.is_none() {
            self.t0_ns = Some(t0_ns);
            self.state = State::Waiting(t0_ns + self.session.connect_ns);
        }
    }

    fn connected(&self) -> bool {
        self.state == State::Up
    }

    fn totals(&self) -> Totals {
        let mut totals = self.totals;
        self.delivery.add_to(&mut totals);
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(link) = &self.link {
            let writes = !link.established || !link.amqp.output.is_empty();
            wait_for(link.socket.as_raw_fd(), writes);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let state = match self.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up | State::Over => None,
        };
        let end = (self.state != State::Over).then_some(t0 + self.session.disconnect_ns);
        let tick = self.delivery.next_tick().map(|t| t0 + t);
        let heartbeat = self.link.as_ref().and_then(|link| link.amqp.deadline());
        [state, end, tick, heartbeat].into_iter().flatten().min()
    }

    /// Schedule, connect, keep alive, leave.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        self.delivery.schedule(t0, now, out);
        if self.state != State::Over && now >= t0 + self.session.disconnect_ns {
            self.leave(now, out);
        }
        match self.state {
            State::Waiting(at) if now >= at => self.connect(now, out),
            State::Connecting(until) if now >= until => {
                self.lost("not ready in time", now, out);
            }
            _ => {}
        }
        if let Some(link) = &mut self.link {
            let mut events = Vec::new();
            link.amqp.on_time(now, &mut events);
            self.apply(events, now, out);
        }
        self.pump(now, out);
    }

    fn on_ready(&mut self, _fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if !self.established(now, out) {
            return;
        }
        if revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
            self.read(now, out);
        }
        self.pump(now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.delivery.schedule(t0, now, out);
        }
        self.delivery.freeze();
        if self.state != State::Over {
            self.leave(now, out);
        }
        self.delivery.finish(out);
    }
}

#[cfg(test)]
mod tests;
