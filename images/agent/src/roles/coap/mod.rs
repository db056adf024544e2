//! Implements CoAP (RFC 7252): a client that sends messages or observes resources (RFC 7641), and a server
//! that answers or notifies its observers. Long bodies are sent in blocks (RFC 7959).
//!
//! The protocol does no I/O: `client` and `server` take messages and the time, and `layer` repeats messages
//! that are not acknowledged. This module connects them with a socket and with the delivery ledger.

mod client;
mod layer;
mod message;
mod server;

use super::Role;
use super::datagrams::{self, Ends};
use super::ledger::{Key, Ledger};
use super::peers::Peer;
use super::socket::{self, Marks};
use crate::clock;
use crate::os::Res;
use crate::proto::{self, Item, Session, Totals};
use crate::records::Outcome;
use crate::roles::earliest;
use layer::{Event, Layer, Timing, Way};
use message::Message;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};

/// The longest body in bytes, all its blocks together.
const LONGEST: usize = 1 << 20;
/// The longest datagram in bytes; the longest block with all options needs less.
const DATAGRAM: usize = 65_507;
/// The most datagrams to receive before the role checks the clock again.
const AT_ONCE: usize = 64;
const MAX_ERRORS: usize = 100;

#[derive(Deserialize)]
struct Spec {
    listen: Option<u16>,
    #[serde(default)]
    to: Vec<Peer>,
    #[serde(flatten)]
    marks: Marks,
    #[serde(default)]
    ipv6: bool,
    #[serde(flatten)]
    settings: Settings,
}

/// The settings, which client and server share.
#[derive(Debug, Clone, Deserialize)]
struct Settings {
    /// Whether messages are confirmable.
    confirmable: bool,
    /// The exponent of the size of blocks.
    block: u8,
    path: Vec<String>,
    /// The most messages to a peer that wait for their answers at the same time.
    nstart: usize,
    /// The most messages to a peer that wait for their turn.
    queue: usize,
    /// The time from a request's due time after which the request expires.
    timeout_ns: i64,
    /// Whether the client observes its servers.
    observe: bool,
    /// The number of clients that observe the server according to the plan.
    observers: usize,
    #[serde(flatten)]
    timing: Timing,
}

/// The state that client and server share: message layer, delivery ledger, settings and counts.
struct Core {
    session: Session,
    settings: Settings,
    layer: Layer,
    ledger: Ledger,
    received: u64,
    foreign: u64,
    /// The errors recorded so far; each is recorded only once.
    errors: BTreeSet<String>,
}

impl Core {
    fn at<'a>(&'a mut self, now: i64, out: &'a mut Vec<u8>) -> Context<'a> {
        let core = self;
        Context { core, now, out }
    }

    fn error(&mut self, text: String, now: i64, out: &mut Vec<u8>) {
        if self.errors.len() < MAX_ERRORS && !self.errors.contains(&text) {
            self.session.record("failed", now, &text, out);
            self.errors.insert(text);
        }
    }
}

/// The arguments that all functions of a client or server need: the shared state, the present time, and the
/// buffer for records.
struct Context<'a> {
    core: &'a mut Core,
    now: i64,
    out: &'a mut Vec<u8>,
}

/// A client or a server, without I/O.
trait Side {
    /// Begins the session; the socket is open.
    fn begin(&mut self, cx: &mut Context);
    /// Sends a due message to its receivers.
    fn due(&mut self, key: Key, body: Vec<u8>, cx: &mut Context);
    /// Handles a new message that has been received.
    fn receive(&mut self, message: Message, way: Way, cx: &mut Context);
    fn event(&mut self, event: Event, cx: &mut Context);
    /// Handles requests that have expired.
    fn expired(&mut self, _cx: &mut Context) {}
    fn deadline(&self) -> Option<i64> {
        None
    }
    fn on_time(&mut self, _cx: &mut Context) {}
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The session has not begun, so the socket is not open yet.
    Waiting,
    Up,
    Over,
}

struct Coap {
    core: Core,
    side: Box<dyn Side>,
    listens: bool,
    ipv6: bool,
    marks: Marks,
    state: State,
    t0_ns: Option<i64>,
    socket: Option<UdpSocket>,
    bound_ns: i64,
}

/// Creates the role of an item of `workload`; binds its socket if it listens.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let session = item.software.session.clone();
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    if spec.settings.block > 6 || spec.settings.timing.max_retransmit > 20 {
        return Err("block: is 0 to 6 and max_retransmit at most 20; write less".to_owned());
    }
    let open = |port| {
        datagrams::bound(port, spec.ipv6)
            .and_then(|socket| socket::mark(&socket, spec.marks).map(|()| socket))
            .map_err(|e| format!("listen: port {port}: {e}; choose another"))
    };
    let socket = spec.listen.map(open).transpose()?;
    let listens = socket.is_some();
    if !listens && spec.to.is_empty() {
        return Err("to: has no receivers; name them, or write `listen`".to_owned());
    }
    item.flows.iter().try_for_each(|flow| flow.fits(LONGEST))?;
    let receivers = if listens {
        spec.settings.observers.max(1)
    } else {
        spec.to.len()
    };
    let ledger = Ledger::new(item, &session, receivers, spec.settings.timeout_ns)?;
    let ledger = if spec.settings.confirmable {
        ledger.with_confirmation()
    } else {
        ledger
    };
    let ipv6 = spec.to.iter().any(|peer| peer.address.is_ipv6());
    let side: Box<dyn Side> = if listens {
        Box::<server::Server>::default()
    } else {
        Box::new(client::Client::new(spec.to, spec.settings.timing.seed))
    };
    let core = Core {
        ledger,
        session,
        layer: Layer::new(spec.settings.timing),
        settings: spec.settings,
        received: 0,
        foreign: 0,
        errors: BTreeSet::new(),
    };
    Ok(Box::new(Coap {
        core,
        side,
        listens,
        ipv6,
        marks: spec.marks,
        state: State::Waiting,
        t0_ns: None,
        socket,
        bound_ns: clock::lab_ns(),
    }))
}

impl Coap {
    fn open(&mut self, now: i64, out: &mut Vec<u8>) {
        self.state = State::Up;
        if self.listens {
            self.core
                .session
                .record("listening", self.bound_ns, "", out);
        } else {
            let marked = |socket| socket::mark(&socket, self.marks).map(|()| socket);
            match datagrams::bound(0, self.ipv6).and_then(marked) {
                Ok(socket) => self.socket = Some(socket),
                Err(e) => {
                    self.state = State::Over;
                    return self.core.session.record("failed", now, &e.to_string(), out);
                }
            }
            self.core.session.record("connected", now, "", out);
        }
        self.side.begin(&mut self.core.at(now, out));
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.core.layer.outbox.clear();
        self.core.ledger.finish(out);
        if let Some(text) = self.socket.as_ref().and_then(datagrams::overrun) {
            self.core.session.record("failed", now, &text, out);
        }
        if self.state == State::Up {
            self.core
                .session
                .record("disconnected", now, "as planned", out);
        }
        self.state = State::Over;
        self.socket = None;
    }

    fn handle(&mut self, events: Vec<Event>, now: i64, out: &mut Vec<u8>) {
        for event in events {
            match event {
                Event::Again(key) => self.core.ledger.taken_back(&key),
                event => self.side.event(event, &mut self.core.at(now, out)),
            }
        }
    }

    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(key) = self.core.ledger.take_due(t0, now, out) {
            let mut body = Vec::new();
            self.core.ledger.write(&key, &mut body);
            self.side.due(key, body, &mut self.core.at(now, out));
        }
        if self.core.ledger.expire(now, out) {
            self.side.expired(&mut self.core.at(now, out));
        }
    }

    /// Sends the datagrams that wait, until the socket's buffer is full.
    fn flush(&mut self, out: &mut Vec<u8>) {
        while let Some(datagram) = self.core.layer.outbox.pop_front() {
            let sent = match (&self.socket, datagram.way.from) {
                (None, _) if self.state == State::Waiting => {
                    return self.core.layer.outbox.push_front(datagram);
                }
                (None, _) => Err(ErrorKind::NotConnected.into()),
                (Some(socket), None) => socket.send_to(&datagram.bytes, datagram.way.to),
                (Some(socket), Some(ours)) => {
                    let theirs = datagram.way.to;
                    datagrams::answer(socket, &datagram.bytes, Ends { theirs, ours })
                }
            };
            let now = clock::lab_ns();
            match (sent, datagram.key) {
                (Ok(_), Some((key, _))) => self.core.ledger.taken(&key, now, out),
                (Err(e), _) if e.kind() == ErrorKind::WouldBlock => {
                    return self.core.layer.outbox.push_front(datagram);
                }
                (Err(e), key) => {
                    let text = format!("{}: {e}", datagram.way.to);
                    self.core.error(text, now, out);
                    if let Some((key, to)) = key {
                        self.core.ledger.failed(&key, to, Outcome::Unsent, out);
                    }
                    let lost = self.core.layer.refused(&datagram);
                    self.handle(lost.into_iter().collect(), now, out);
                }
                (Ok(_), None) => {}
            }
        }
    }

    fn read(&mut self, out: &mut Vec<u8>) {
        let mut bytes = vec![0; DATAGRAM];
        for _ in 0..AT_ONCE {
            let next = self.socket.as_ref();
            let Some(Ok((n, ends))) = next.map(|s| datagrams::receive(s, &mut bytes)) else {
                return;
            };
            let now = clock::lab_ns();
            let Some(message) = Message::decode(&bytes[..n]) else {
                self.core.foreign += 1;
                continue;
            };
            let from = self.listens.then_some(ends.ours);
            let (to, mut events) = (ends.theirs, Vec::new());
            let way = Way { to, from };
            let new = self.core.layer.receive(message, way, now, &mut events);
            self.handle(events, now, out);
            if let Some(message) = new {
                self.side.receive(message, way, &mut self.core.at(now, out));
            }
        }
    }
}

impl Role for Coap {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn connected(&self) -> bool {
        self.state == State::Up
    }

    fn totals(&self) -> Totals {
        let mut totals = self.core.ledger.totals();
        totals += Totals {
            received: self.core.received,
            foreign: self.core.foreign,
            ..Totals::default()
        };
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(socket) = &self.socket {
            wait_for(socket.as_raw_fd(), !self.core.layer.outbox.is_empty());
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let session = match self.state {
            State::Waiting if self.listens => Some(t0),
            State::Waiting => Some(t0 + self.core.session.connect_ns),
            State::Up if !self.listens => Some(t0 + self.core.session.disconnect_ns),
            State::Up | State::Over => None,
        };
        let side = self.side.deadline().filter(|_| self.state == State::Up);
        let layer = self
            .core
            .layer
            .deadline()
            .filter(|_| self.state == State::Up);
        earliest([session, self.core.ledger.deadline(t0), layer, side])
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        if self.state == State::Waiting
            && (self.listens || now >= t0 + self.core.session.connect_ns)
        {
            self.open(now, out);
        }
        self.send_due(t0, now, out);
        if self.state == State::Up {
            let mut events = Vec::new();
            self.core.layer.on_time(now, &mut events);
            self.handle(events, now, out);
            self.side.on_time(&mut self.core.at(now, out));
        }
        self.flush(out);
        if self.state == State::Up && !self.listens && now >= t0 + self.core.session.disconnect_ns {
            self.leave(now, out);
        }
    }

    fn on_ready(&mut self, _fd: RawFd, revents: i16, _now: i64, out: &mut Vec<u8>) {
        if revents & (libc::POLLIN | libc::POLLERR) != 0 {
            self.read(out);
        }
        self.flush(out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.send_due(t0, now, out);
        }
        self.leave(now, out);
    }
}

/// Passes a peer's bytes to the decoder and the message layer.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let again = |message: Message| Message::decode(&message.encoded());
    let message = Message::decode(bytes);
    assert_eq!(message.clone().and_then(again), message);
}
