//! Implements messages over TCP: a client sends requests and pushes, a server receives them and replies. With
//! settings of HTTP each message is a request of HTTP/1.1 or HTTP/2; with those of TLS its bytes are encrypted.
//!
//! TCP does not report what the peer's application has read. So a message without a reply is `sent`, with the
//! time at which the socket accepted it, once the peer's kernel has acknowledged it or the connection has
//! ended.

mod frames;
mod http;
mod http2;
mod link;
mod server;
mod wire;

use super::Role;
use super::broker_client::tls::{self, Acceptor, Tls};
use super::ledger::Ledger;
use super::peers::Peer;
use super::socket::Marks;
use crate::clock;
use crate::os::Res;
use crate::proto::{self, Item, Session, Totals};
use crate::records;
use crate::roles::earliest;
use link::{Change, Link, Settings};
use serde::Deserialize;
use server::Server;
use std::os::fd::RawFd;

#[derive(Deserialize)]
struct Spec {
    listen: Option<u16>,
    #[serde(default)]
    to: Vec<Peer>,
    nodelay: bool,
    #[serde(flatten)]
    marks: Marks,
    /// Whether the node has IPv6 addresses.
    #[serde(default)]
    ipv6: bool,
    /// Delay before a new attempt to connect; 0: never reconnect.
    #[serde(default)]
    reconnect_ns: i64,
    /// The most messages per peer that wait to be written to the connection; further ones are dropped.
    #[serde(default = "default_queue")]
    queue: usize,
    /// The most messages per peer that are in the output or, as requests, unanswered; None: no limit.
    inflight: Option<usize>,
    /// The time from a request's due time after which the request expires.
    timeout_ns: i64,
    http: Option<http::Settings>,
    /// The most connections to each peer.
    #[serde(default = "default_connections")]
    connections: usize,
    /// TLS of a side that sends.
    tls: Option<tls::Settings>,
    /// TLS of a side that listens.
    accept_tls: Option<tls::Identity>,
}

fn default_connections() -> usize {
    1
}

fn default_queue() -> usize {
    1000
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Armed,
    Running,
    Over,
}

pub struct Tcp {
    session: Session,
    settings: Settings,
    server: Option<Server>,
    bound_ns: i64,
    /// The links to the first peer, then those to the second, and so on: `connections` for each peer.
    links: Vec<Link>,
    connections: usize,
    ledger: Ledger,
    state: State,
    t0_ns: Option<i64>,
    /// Whether the step `connected` is recorded: all links are established.
    connected: bool,
}

/// Creates the role of an item of `workload`, a client or a server; binds the server's socket.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    Ok(Box::new(Tcp::new(item)?))
}

impl Tcp {
    fn new(mut item: Item) -> Res<Self> {
        let session = item.software.session.clone();
        let spec: Spec = proto::parse("spec", item.software.spec.take())?;
        item.flows
            .iter()
            .try_for_each(|flow| flow.fits(frames::LONGEST))?;
        let ledger =
            Ledger::new(item, &session, spec.to.len(), spec.timeout_ns)?.with_confirmation();
        let mut acceptor = spec.accept_tls.as_ref().map(Acceptor::new).transpose()?;
        let mut tls = spec.tls.as_ref().map(Tls::new).transpose()?;
        if let Some(http) = &spec.http {
            acceptor = acceptor.map(|one| one.offering(&[http2::ALPN, http::ALPN]));
            if http.version == 2 {
                tls = tls.map(|one| one.offering(&[http2::ALPN]));
            }
        }
        let settings = server::Settings {
            nodelay: spec.nodelay,
            http: spec.http.is_some(),
            tls: acceptor,
        };
        let server = spec
            .listen
            .map(|port| Server::bind(port, settings, spec.marks, spec.ipv6));
        let connections = spec.connections.max(1);
        let links = spec.to.into_iter().enumerate();
        let links = links.flat_map(|(index, peer)| {
            (0..connections).map(move |_| Link::new(peer.clone(), index))
        });
        Ok(Self {
            session,
            settings: Settings {
                nodelay: spec.nodelay,
                marks: spec.marks,
                reconnect_ns: spec.reconnect_ns,
                queue: spec.queue,
                inflight: spec.inflight.unwrap_or(usize::MAX),
                http: spec.http,
                tls,
            },
            server: server.transpose()?,
            bound_ns: clock::lab_ns(),
            links: links.collect(),
            connections,
            ledger,
            state: State::Armed,
            t0_ns: None,
            connected: false,
        })
    }

    fn begin(&mut self, t0: i64, out: &mut Vec<u8>) {
        self.state = State::Running;
        if self.server.is_some() {
            self.session.record("listening", self.bound_ns, "", out);
        }
        for (number, link) in self.links.iter_mut().enumerate() {
            if number % self.connections == 0 {
                link.begin(t0 + self.session.connect_ns);
            } else {
                link.rest();
            }
        }
    }

    /// Returns when the session of a client ends; None for a server, which listens until `finish`.
    fn end_ns(&self) -> Option<i64> {
        let leaves = self.state != State::Over && self.server.is_none();
        self.t0_ns
            .filter(|_| leaves)
            .map(|t0| t0 + self.session.disconnect_ns)
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        for link in &mut self.links {
            link.confirm(now, &mut self.ledger, out);
        }
        self.ledger.finish(out);
        self.links.iter_mut().for_each(Link::close);
        if self.state == State::Running && (self.connected || self.server.is_some()) {
            self.session.record("disconnected", now, "as planned", out);
        }
        self.state = State::Over;
        self.connected = false;
    }

    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(key) = self.ledger.take_due(t0, now, out) {
            for peer in self.ledger.receivers(&key) {
                let from = peer * self.connections;
                let links = &mut self.links[from..from + self.connections];
                if let Some(link) = links.iter_mut().min_by_key(|link| link.load()) {
                    link.offer(key, &self.settings, &mut self.ledger, out);
                    link.pump(&self.settings, &mut self.ledger, out);
                }
            }
        }
    }

    /// Records the changes of all connections: each attempt and each end, and `connected` when all are
    /// established. Also records the error of a server that accepts no further connection.
    fn note(&mut self, now: i64, out: &mut Vec<u8>) {
        for i in 0..self.links.len() {
            for change in std::mem::take(&mut self.links[i].changes) {
                match change {
                    Change::Connecting => {
                        let peer = &self.links[i].peer.endpoint;
                        self.session.record("connecting", now, peer, out);
                    }
                    Change::Tls(detail) => self.session.record("tls", now, &detail, out),
                    Change::Connected if !self.connected && self.links.iter().all(Link::ready) => {
                        self.connected = true;
                        self.session
                            .record("connected", now, &self.links[i].peer.endpoint, out);
                    }
                    Change::Connected => {}
                    Change::Ended(was_up, why) => {
                        self.connected &= !was_up;
                        let what = if was_up { "disconnected" } else { "failed" };
                        let (endpoint, peer) =
                            (&self.session.endpoint, &self.links[i].peer.endpoint);
                        records::connection(out, endpoint, what, now, &why, peer);
                    }
                }
            }
        }
        if let Some(text) = self.server.as_mut().and_then(|server| server.error.take()) {
            self.session.record("failed", now, &text, out);
        }
    }
}

impl Role for Tcp {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn connected(&self) -> bool {
        self.state == State::Running && self.links.iter().all(Link::ready)
    }

    fn totals(&self) -> Totals {
        let mut totals = self.ledger.totals();
        totals.foreign += self.links.iter().map(|link| link.foreign).sum::<u64>();
        totals += self
            .server
            .as_ref()
            .map(|server| server.counts)
            .unwrap_or_default();
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(server) = self.server.as_ref().filter(|_| self.state != State::Over) {
            wait_for(server.raw(), false);
        }
        for (fd, write) in self.links.iter().filter_map(Link::fd) {
            wait_for(fd, write);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let begin = (self.state == State::Armed).then_some(t0);
        let links = self.links.iter().filter_map(Link::deadline).min();
        earliest([begin, links, self.end_ns(), self.ledger.deadline(t0)])
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        if self.state == State::Armed {
            self.begin(t0, out);
        }
        self.send_due(t0, now, out);
        if self.ledger.expire(now, out) {
            for link in &mut self.links {
                link.forget_closed(&self.settings, &mut self.ledger);
                link.pump(&self.settings, &mut self.ledger, out);
            }
        }
        for link in &mut self.links {
            link.on_time(now, &self.settings, &mut self.ledger, out);
        }
        self.note(now, out);
        if self.end_ns().is_some_and(|end| now >= end) {
            self.leave(now, out);
        }
    }

    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if let Some(server) = self.server.as_mut().filter(|server| server.raw() == fd) {
            server.on_ready(&self.session.endpoint, out);
        }
        let ours = |link: &&mut Link| link.fd().is_some_and(|(raw, _)| raw == fd);
        if let Some(link) = self.links.iter_mut().find(ours) {
            link.on_ready(revents, now, &self.settings, &mut self.ledger, out);
        }
        self.note(now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.send_due(t0, now, out);
        }
        self.leave(now, out);
    }
}

/// Passes a stream of bytes, in two pieces, to the parser of frames, and the messages in it to that of
/// payloads, for fuzzing.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let mut frames = frames::Frames::default();
    let (one, other) = bytes.split_at(bytes.len() / 2);
    _ = frames
        .feed(one, |message| _ = crate::payload::read(message))
        .and_then(|()| frames.feed(other, |_| {}));
}

#[cfg(test)]
mod http_tests;
#[cfg(test)]
mod tests;
