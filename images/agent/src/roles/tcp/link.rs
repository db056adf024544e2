//! Implements the connection to one peer, with reconnection. The send time of a message is the time at which
//! the socket has accepted all of it; a message without a reply stays open until the peer has acknowledged
//! it or the connection ends.

mod traffic;

use super::http;
use super::wire::Wire;
use crate::records::Outcome;
use crate::roles::broker_client::tls::{Channel, Tls};
use crate::roles::ledger::{Key, Ledger};
use crate::roles::peers::Peer;
use crate::roles::socket::{self, CONNECT_LIMIT_NS, Marks};
use std::collections::{BTreeSet, VecDeque};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// The interval in ns at which the link checks which bytes the peer's kernel has acknowledged.
const CONFIRM_NS: i64 = 100_000_000;

/// The settings that all links of a role share.
pub struct Settings {
    pub nodelay: bool,
    pub marks: Marks,
    /// Delay before a reconnection; 0: no reconnection.
    pub reconnect_ns: i64,
    pub queue: usize,
    /// The most messages of one link that are in its output or, as requests, unanswered; `usize::MAX`: no
    /// limit.
    pub inflight: usize,
    /// The settings of HTTP; None: each message follows its length.
    pub http: Option<http::Settings>,
    pub tls: Option<Tls>,
}

/// A change of the connection's state, for the records of the session.
pub enum Change {
    Connecting,
    /// The handshake of TLS has ended; the text is its kind.
    Tls(String),
    Connected,
    /// The connection or the attempt has ended: true if the connection had been established, and the reason.
    Ended(bool, String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting(i64),
    Connecting(i64),
    Up,
    /// The link has no connection until it has a message to send.
    Idle,
    Over,
}

/// The position after a message that has not come out of HTTP/2 whole.
const UNKNOWN: u64 = u64::MAX;

/// A message in the output: the positions, in the connection's stream, of its first byte and after its last.
struct Leaving {
    from: u64,
    to: u64,
    key: Key,
}

pub struct Link {
    pub peer: Peer,
    /// Index of the peer among the receivers.
    index: usize,
    state: State,
    socket: Option<TcpStream>,
    tls: Option<Channel>,
    /// Whether TCP's handshake is complete.
    established: bool,
    /// True if the connection began after an idle time; the session's records do not show such a connection.
    quiet: bool,
    queue: VecDeque<Key>,
    output: Vec<u8>,
    leaving: VecDeque<Leaving>,
    written: u64,
    /// Messages without a reply that the socket has accepted and the peer has not acknowledged.
    unconfirmed: VecDeque<(u64, Key)>,
    confirm_ns: i64,
    unanswered: BTreeSet<Key>,
    wire: Wire,
    pub changes: Vec<Change>,
    /// Number of received messages that match no request.
    pub foreign: u64,
}

impl Link {
    pub fn new(peer: Peer, index: usize) -> Self {
        Self {
            peer,
            index,
            state: State::Over,
            socket: None,
            tls: None,
            established: false,
            quiet: false,
            queue: VecDeque::new(),
            output: Vec::new(),
            leaving: VecDeque::new(),
            written: 0,
            unconfirmed: VecDeque::new(),
            confirm_ns: 0,
            unanswered: BTreeSet::new(),
            wire: Wire::new(false),
            changes: Vec::new(),
            foreign: 0,
        }
    }

    pub fn begin(&mut self, at_ns: i64) {
        self.state = State::Waiting(at_ns);
    }

    /// Makes the link connect only when it has a first message.
    pub fn rest(&mut self) {
        self.state = State::Idle;
    }

    pub fn up(&self) -> bool {
        self.state == State::Up
    }

    /// Returns whether the link is up, or needs no connection until its next message.
    pub fn ready(&self) -> bool {
        matches!(self.state, State::Up | State::Idle)
    }

    /// Returns whether the link is closed for good, and the number of messages that wait on it for the
    /// connection or for their answers. A new message goes to the link with the smallest value.
    pub fn load(&self) -> (bool, usize) {
        let waiting = self.queue.len() + self.leaving.len() + self.unanswered.len();
        (self.state == State::Over, waiting)
    }

    pub fn fd(&self) -> Option<(RawFd, bool)> {
        let output = !self.output.is_empty();
        let write = match &self.tls {
            _ if !self.established => true,
            Some(channel) => channel.wants_write(output),
            None => output,
        };
        self.socket.as_ref().map(|s| (s.as_raw_fd(), write))
    }

    pub fn deadline(&self) -> Option<i64> {
        match self.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up => (!self.unconfirmed.is_empty()).then_some(self.confirm_ns),
            State::Idle | State::Over => None,
        }
    }

    pub fn on_time(
        &mut self,
        now: i64,
        settings: &Settings,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) {
        if now >= self.confirm_ns {
            self.confirm(now, ledger, out);
        }
        match self.state {
            State::Waiting(at) if now >= at => self.connect(now, settings, ledger, out),
            State::Connecting(until) if now >= until => {
                self.lost("no connection in time", now, settings, ledger, out);
            }
            _ => {}
        }
    }

    fn connect(&mut self, now: i64, settings: &Settings, ledger: &mut Ledger, out: &mut Vec<u8>) {
        if !self.quiet {
            self.changes.push(Change::Connecting);
        }
        let (address, port) = (self.peer.address, self.peer.port);
        let tls = settings.tls.as_ref().map(Tls::begin).transpose();
        let socket = socket::connect(address, port, settings.nodelay, settings.marks);
        let wire = Wire::begin(settings.http.as_ref());
        match tls.and_then(|tls| Ok((tls, wire?, socket.map_err(|e| e.to_string())?))) {
            Ok((tls, wire, socket)) => {
                (self.socket, self.tls, self.established) = (Some(socket), tls, false);
                self.wire = wire;
                self.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(text) => self.lost(&text, now, settings, ledger, out),
        }
    }

    /// Queues a message. Records it as dropped if the queue is full (`Settings::queue`), and as unsent if
    /// the link is closed for good.
    pub fn offer(&mut self, key: Key, settings: &Settings, ledger: &mut Ledger, out: &mut Vec<u8>) {
        if self.state == State::Over {
            ledger.failed(&key, self.index, Outcome::Unsent, out);
        } else if self.queue.len() < settings.queue {
            self.queue.push_back(key);
        } else {
            ledger.failed(&key, self.index, Outcome::Dropped, out);
        }
    }

    /// Removes messages that the ledger has closed, such as expired requests, from the queue and from the
    /// unanswered requests. With HTTP/1.1, ends the connection on which the answer to such a request would
    /// come; with HTTP/2, only its stream.
    pub fn forget_closed(&mut self, settings: &Settings, ledger: &mut Ledger) {
        self.queue.retain(|key| ledger.is_open(key));
        let before = self.unanswered.len();
        self.unanswered.retain(|key| ledger.is_open(key));
        let left = before > self.unanswered.len()
            || self
                .leaving
                .iter()
                .any(|leaving| !ledger.is_open(&leaving.key));
        if settings.http.is_none() || !left || !self.up() {
            return;
        }
        let Wire::Http2(client) = &mut self.wire else {
            return self.hang_up(ledger);
        };
        // If the connection has failed, the next read returns the reason.
        _ = client.forget(|key| ledger.is_open(key));
        self.leaving
            .retain(|one| one.to != UNKNOWN || ledger.is_open(&one.key));
        self.collect();
    }

    /// Ends the connection as planned, and waits for the next message. Requeues messages that the socket has
    /// not accepted completely.
    fn hang_up(&mut self, ledger: &mut Ledger) {
        self.requeue(ledger);
        self.close();
        self.rest();
    }

    pub fn on_ready(
        &mut self,
        revents: i16,
        now: i64,
        settings: &Settings,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) {
        if !self.established && !self.establish(now, settings, ledger, out) {
            return;
        }
        if revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
            self.read(now, settings, ledger, out);
        }
        self.write(ledger, out);
        self.pump(settings, ledger, out);
    }

    fn establish(
        &mut self,
        now: i64,
        settings: &Settings,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) -> bool {
        let error = match self.socket.as_ref().map(TcpStream::take_error) {
            Some(Ok(None)) => None,
            Some(Ok(Some(e)) | Err(e)) => Some(e.to_string()),
            None => return false,
        };
        if let Some(text) = error {
            self.lost(&text, now, settings, ledger, out);
            return false;
        }
        if !self.socket.as_ref().is_some_and(socket::established) {
            return false;
        }
        self.established = true;
        if self.tls.is_none() {
            self.arrive();
        }
        true
    }

    /// Records that the connection is complete; the role writes a record if the link was not connected
    /// before.
    fn arrive(&mut self) {
        self.state = State::Up;
        self.quiet = false;
        self.changes.push(Change::Connected);
    }

    /// Handles the end of a connection or an attempt, and waits for the reconnection. Requeues messages that
    /// the socket has not accepted, or only in part, since they cannot have arrived. Does not send the others
    /// again, since that could duplicate them, and no longer waits for their acknowledgement. If the link
    /// does not reconnect, records queued messages as unsent.
    fn lost(
        &mut self,
        why: &str,
        now: i64,
        settings: &Settings,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) {
        self.changes.push(Change::Ended(
            self.up(),
            format!("{}: {why}", self.peer.endpoint),
        ));
        for (_, key) in std::mem::take(&mut self.unconfirmed) {
            ledger.confirmed(&key, now, out);
        }
        self.requeue(ledger);
        self.close();
        if settings.reconnect_ns > 0 {
            self.state = State::Waiting(now + settings.reconnect_ns);
            return;
        }
        for key in std::mem::take(&mut self.queue) {
            ledger.failed(&key, self.index, Outcome::Unsent, out);
        }
    }

    /// Moves the messages that the socket has not accepted, or only in part, back to the queue.
    fn requeue(&mut self, ledger: &mut Ledger) {
        for leaving in std::mem::take(&mut self.leaving).into_iter().rev() {
            if leaving.from < self.written {
                ledger.taken_back(&leaving.key);
            }
            if ledger.is_open(&leaving.key) {
                self.queue.push_front(leaving.key);
            }
        }
    }

    /// Closes the link without records, and discards its output; it stays closed unless `begin` is called
    /// again.
    pub fn close(&mut self) {
        self.state = State::Over;
        if let (Some(socket), Some(channel)) = (&self.socket, &mut self.tls)
            && self.established
        {
            channel.close(socket.as_raw_fd());
        }
        (self.socket, self.tls, self.established) = (None, None, false);
        self.quiet = false;
        self.output = Vec::new();
        self.leaving.clear();
        self.unconfirmed.clear();
        self.written = 0;
        self.unanswered.clear();
        self.wire = Wire::new(false);
    }
}
