//! Implements the connection to one peer, with reconnection. The send time of a message is the time at which
//! the socket has accepted all of it; a message without a reply stays open until the peer has acknowledged
//! it or the connection ends.

use super::frames::{self, Frames};
use crate::clock;
use crate::os;
use crate::payload::{self, Purpose};
use crate::records::Outcome;
use crate::roles::ledger::{Key, Ledger};
use crate::roles::peers::Peer;
use crate::roles::socket::{self, BACKLOG_BYTES, CONNECT_LIMIT_NS, Marks};
use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// The interval in ns between two checks of which bytes the peer's kernel has acknowledged.
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
}

/// A change of the connection's state, for the records of the session.
pub enum Change {
    Connecting,
    Connected,
    /// True if the connection had been established; and the reason why it or the attempt ended.
    Ended(bool, String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting(i64),
    Connecting(i64),
    Up,
    Over,
}

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
    queue: VecDeque<Key>,
    output: Vec<u8>,
    leaving: VecDeque<Leaving>,
    written: u64,
    /// Messages without a reply that the socket has accepted and the peer has not acknowledged.
    unconfirmed: VecDeque<(u64, Key)>,
    confirm_ns: i64,
    unanswered: BTreeSet<Key>,
    frames: Frames,
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
            queue: VecDeque::new(),
            output: Vec::new(),
            leaving: VecDeque::new(),
            written: 0,
            unconfirmed: VecDeque::new(),
            confirm_ns: 0,
            unanswered: BTreeSet::new(),
            frames: Frames::default(),
            changes: Vec::new(),
            foreign: 0,
        }
    }

    pub fn begin(&mut self, at_ns: i64) {
        self.state = State::Waiting(at_ns);
    }

    pub fn up(&self) -> bool {
        self.state == State::Up
    }

    pub fn fd(&self) -> Option<(RawFd, bool)> {
        let write = !self.up() || !self.output.is_empty();
        self.socket.as_ref().map(|s| (s.as_raw_fd(), write))
    }

    pub fn deadline(&self) -> Option<i64> {
        match self.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up => (!self.unconfirmed.is_empty()).then_some(self.confirm_ns),
            State::Over => None,
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
        self.changes.push(Change::Connecting);
        let (address, port) = (self.peer.address, self.peer.port);
        match socket::connect(address, port, settings.nodelay, settings.marks) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(e) => self.lost(&e.to_string(), now, settings, ledger, out),
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
    /// unanswered requests.
    pub fn forget_closed(&mut self, ledger: &Ledger) {
        self.queue.retain(|key| ledger.is_open(key));
        self.unanswered.retain(|key| ledger.is_open(key));
    }

    pub fn on_ready(
        &mut self,
        revents: i16,
        now: i64,
        settings: &Settings,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) {
        if !self.up() && !self.establish(now, settings, ledger, out) {
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
        self.state = State::Up;
        self.changes.push(Change::Connected);
        true
    }

    /// Handles the end of a connection or an attempt, and waits for the reconnection. Requeues messages that
    /// the socket has not accepted, or only in part, since they cannot have arrived; does not resend the
    /// others, since that could duplicate them, and no longer waits for their acknowledgement. Without
    /// reconnection, records queued messages as unsent.
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
        for leaving in std::mem::take(&mut self.leaving).into_iter().rev() {
            if leaving.from < self.written {
                ledger.taken_back(&leaving.key);
            }
            if ledger.is_open(&leaving.key) {
                self.queue.push_front(leaving.key);
            }
        }
        self.close();
        if settings.reconnect_ns > 0 {
            self.state = State::Waiting(now + settings.reconnect_ns);
            return;
        }
        for key in std::mem::take(&mut self.queue) {
            ledger.failed(&key, self.index, Outcome::Unsent, out);
        }
    }

    /// Closes the link without records, and discards its output; it stays closed unless `begin` is called
    /// again.
    pub fn close(&mut self) {
        self.state = State::Over;
        self.socket = None;
        self.output = Vec::new();
        self.leaving.clear();
        self.unconfirmed.clear();
        self.written = 0;
        self.unanswered.clear();
        self.frames = Frames::default();
    }

    fn read(&mut self, now: i64, settings: &Settings, ledger: &mut Ledger, out: &mut Vec<u8>) {
        let Some(fd) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        let mut chunk = [0u8; 16_384];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.lost("closed by the peer", now, settings, ledger, out),
            Ok(n) => {
                if let Err(text) = self.take(&chunk[..n], ledger, out) {
                    self.lost(&text, now, settings, ledger, out);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, settings, ledger, out),
        }
    }

    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) -> os::Res<()> {
        let (from, now) = ((self.index, self.peer.endpoint.as_str()), clock::lab_ns());
        self.frames.feed(bytes, |message| {
            let reply = payload::read(message).filter(|m| m.purpose == Purpose::Reply);
            match reply.and_then(|reply| ledger.answered(&reply, from, now, out)) {
                Some(key) => drop(self.unanswered.remove(&key)),
                None => self.foreign += 1,
            }
        })
    }

    /// Writes queued messages to the socket, one write each, while the link is up, its output has fewer than
    /// `BACKLOG_BYTES`, and fewer than `inflight` messages are in the output or, as requests, unanswered.
    pub fn pump(&mut self, settings: &Settings, ledger: &mut Ledger, out: &mut Vec<u8>) {
        while self.up()
            && self.output.len() < BACKLOG_BYTES
            && self.unanswered.len() + self.leaving.len() < settings.inflight
        {
            let Some(key) = self.queue.pop_front() else {
                return;
            };
            let from = self.written + self.output.len() as u64;
            frames::append(&mut self.output, |out| ledger.write(&key, out));
            let to = self.written + self.output.len() as u64;
            if to > from {
                self.leaving.push_back(Leaving { from, to, key });
                self.write(ledger, out);
            }
        }
    }

    /// Writes as much output as the socket accepts, and records the messages that were written completely.
    fn write(&mut self, ledger: &mut Ledger, out: &mut Vec<u8>) {
        let Some(fd) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        while !self.output.is_empty() {
            // The next read returns the reason of a broken connection.
            let Ok(n) = os::write(fd, &self.output) else {
                break;
            };
            self.output.drain(..n);
            self.written += n as u64;
        }
        let now = clock::lab_ns();
        while let Some(leaving) = self.leaving.pop_front_if(|l| l.to <= self.written) {
            // Only requests with missing replies occupy the window.
            if ledger.waits_for_answers(&leaving.key) {
                self.unanswered.insert(leaving.key);
            } else if ledger.is_open(&leaving.key) {
                if self.unconfirmed.is_empty() {
                    self.confirm_ns = now + CONFIRM_NS;
                }
                self.unconfirmed.push_back((leaving.to, leaving.key));
            }
            ledger.taken(&leaving.key, now, out);
        }
        if now >= self.confirm_ns {
            self.confirm(now, ledger, out);
        }
    }

    /// Records the messages without a reply that the peer's kernel has acknowledged; none if the kernel does
    /// not state how many bytes are outstanding.
    pub fn confirm(&mut self, now: i64, ledger: &mut Ledger, out: &mut Vec<u8>) {
        self.confirm_ns = now + CONFIRM_NS;
        let Some(socket) = self
            .socket
            .as_ref()
            .filter(|_| !self.unconfirmed.is_empty())
        else {
            return;
        };
        // Without an answer of the kernel nothing counts as acknowledged.
        let outstanding = socket::outstanding(socket).unwrap_or(self.written);
        let acknowledged = self.written.saturating_sub(outstanding);
        while let Some((_, key)) = self.unconfirmed.pop_front_if(|(to, _)| *to <= acknowledged) {
            ledger.confirmed(&key, now, out);
        }
    }
}
