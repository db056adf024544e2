//! Implements the delivery ledger of a client that publishes through a broker: every scheduled message is in
//! exactly one state until it is settled and recorded.
//!
//! The states are: in the queue (not yet passed to the protocol); then, without acknowledgements, in
//! `leaving` (in the socket's buffer), otherwise in `inflight` (handshake in progress); then settled. A
//! message returns to the front of the queue if its guarantee allows resending.

use super::replies::Requests;
use crate::payload::Identity;
use crate::proto::Totals;
use crate::records::{Message, Outcome};
use crate::roles::sends::Sends;
use std::collections::{BTreeMap, VecDeque};

/// The protocol's delivery guarantee, and the limits on waiting messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Whether the broker acknowledges messages.
    pub acknowledged: bool,
    /// Whether unacknowledged messages may be resent.
    pub resends: bool,
    /// Whether handshakes continue after the connection was lost.
    pub keeps_session: bool,
    /// The most unacknowledged messages.
    pub inflight: usize,
    pub queue: usize,
    /// Whether the protocol makes the payloads itself.
    pub own_content: bool,
    /// The number of clients whose replies settle a message; 0: the message is not a request.
    pub replies: usize,
}

/// A message in the socket's buffer, with the stream position of its last byte.
struct Leaving {
    end: u64,
    id: Option<u64>,
    message: Option<Message>,
}

#[derive(Default)]
pub struct Delivery {
    sends: Option<Sends>,
    rules: Rules,
    /// The broker's own limit on unacknowledged messages (open handshakes).
    window: usize,
    queue: VecDeque<Message>,
    /// The message passed to the protocol, but not yet in the socket's buffer.
    taken: Option<Message>,
    inflight: BTreeMap<u64, Message>,
    leaving: VecDeque<Leaving>,
    requests: Requests,
    /// The number of open handshakes of messages that are not in the ledger.
    others: usize,
    written: u64,
    counts: Totals,
}

impl Delivery {
    /// Creates the ledger; `sends` is the flow of a publisher, None for a client that only subscribes.
    pub fn new(rules: Rules, sends: Option<Sends>) -> Self {
        Self {
            sends,
            rules,
            window: usize::MAX,
            requests: Requests::new(rules.replies),
            ..Self::default()
        }
    }

    /// Returns the length of every payload in bytes; 0 without a flow.
    pub fn payload_bytes(&self) -> usize {
        self.sends.as_ref().map_or(0, |s| s.flow.payload.bytes)
    }

    /// Returns the number of the client's flow; None for a client that only subscribes.
    pub fn flow(&self) -> Option<u32> {
        self.sends.as_ref().map(|s| s.flow.number)
    }

    /// Returns when the next message falls due, as an offset from t0; None without a flow, or if no further
    /// message follows.
    pub fn next_tick(&self) -> Option<i64> {
        self.sends.as_ref().and_then(Sends::next_ns)
    }

    pub fn freeze(&mut self) {
        if let Some(sends) = &mut self.sends {
            sends.stop();
        }
    }

    pub fn add_to(&self, totals: &mut Totals) {
        *totals += self.counts;
        totals.scheduled += self.sends.as_ref().map_or(0, Sends::scheduled);
        let leaving = self.leaving.iter().filter(|l| l.message.is_some()).count();
        let open = self.queue.len() + self.inflight.len() + leaving + self.requests.len();
        totals.pending += open as u64;
    }

    /// Queues all due messages; drops and records those that exceed the queue's limit.
    pub fn schedule(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        let Some(sends) = &mut self.sends else {
            return;
        };
        while let Some(message) = sends.take_due(t0, now, out) {
            if self.queue.len() < self.rules.queue {
                self.queue.push_back(message);
            } else {
                self.counts.dropped += 1;
                sends.record(out, &message, 0, Outcome::Dropped);
            }
        }
    }

    /// Sets the broker's limit on open handshakes. The ledger counts `inflight` itself, since
    /// mqtt-protocol-core 0.7 counts the answers to resent messages of a resumed session but not the
    /// messages, so that its count falls below zero.
    pub fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    /// Returns the number of handshakes that may be open, less those of messages outside the ledger.
    fn room(&self) -> usize {
        self.window.saturating_sub(self.others)
    }

    /// Returns whether the broker permits one more handshake of a message outside the ledger. `open`: the
    /// number of those that are open.
    pub fn permits(&mut self, open: usize) -> bool {
        self.others = open;
        self.inflight.len() < self.room()
    }

    /// Records the arrival of a reply of the client `by` to the request `seq`, and settles the request with its
    /// last missing reply.
    pub fn replied(&mut self, seq: u64, by: &str, now: i64, out: &mut Vec<u8>) {
        let inside = |m: &Option<Message>| m.as_ref().is_some_and(|m| m.seq == seq);
        let open = self.inflight.values().any(|m| m.seq == seq)
            || self.leaving.iter().any(|l| inside(&l.message));
        if let Some(message) = self.requests.replied(seq, by, open) {
            self.counts.settled += 1;
            self.record(out, &message, now, Outcome::Settled);
        }
    }

    /// Records a message that has arrived at the broker as `outcome`. A request is recorded only if its
    /// replies have arrived; otherwise it waits for them.
    fn arrived(&mut self, message: Message, now: i64, outcome: Outcome, out: &mut Vec<u8>) {
        let message = if self.rules.replies == 0 {
            let settled = outcome == Outcome::Settled;
            self.counts.settled += u64::from(settled);
            let at = if settled { now } else { 0 };
            return self.record(out, &message, at, outcome);
        } else {
            self.requests.sent(message)
        };
        if let Some(message) = message {
            self.counts.settled += 1;
            self.record(out, &message, now, Outcome::Settled);
        }
    }

    /// Removes the next message from the queue and returns its identity and payload (empty with
    /// `own_content`). None if the queue is empty, or if as many messages are unacknowledged as `inflight` or
    /// the window allows.
    pub fn next(&mut self) -> Option<(Identity, Vec<u8>)> {
        let sends = self.sends.as_ref()?;
        let most = self.rules.inflight.min(self.room());
        if self.rules.acknowledged && self.inflight.len() >= most {
            return None;
        }
        let message = self.queue.pop_front()?;
        let mut body = Vec::new();
        sends.write(&message, &mut body);
        let identity = sends.identity(&message);
        self.taken = Some(message);
        Some((identity, body))
    }

    /// Records that the protocol has appended the message to the socket's buffer, which now holds `buffered`
    /// bytes; the broker will acknowledge the message by `id`.
    pub fn emitted(&mut self, id: Option<u64>, buffered: usize) {
        let end = self.written + buffered as u64;
        let mut message = None;
        match (id, self.taken.take()) {
            (Some(id), Some(taken)) => drop(self.inflight.insert(id, taken)),
            (_, taken) => message = taken,
        }
        self.leaving.push_back(Leaving { end, id, message });
    }

    /// Records that the protocol has refused the message (too large for the broker, no packet id): it is not
    /// sent.
    pub fn refused(&mut self, out: &mut Vec<u8>) {
        if let Some(message) = self.taken.take() {
            self.record(out, &message, 0, Outcome::Unsent);
        }
    }

    /// Records that the socket has accepted `n` bytes, and so the messages that end in them.
    pub fn written(&mut self, n: usize, now: i64, out: &mut Vec<u8>) {
        self.written += n as u64;
        while self.leaving.front().is_some_and(|l| l.end <= self.written) {
            if let Some(leaving) = self.leaving.pop_front() {
                self.left(leaving, now, out);
            }
        }
    }

    fn left(&mut self, leaving: Leaving, now: i64, out: &mut Vec<u8>) {
        if let Some(mut message) = leaving.message {
            message.sent_ns = now;
            message.attempts += 1;
            self.counts.sent += 1;
            self.arrived(message, now, Outcome::Sent, out);
        } else if let Some(message) = leaving.id.and_then(|id| self.inflight.get_mut(&id)) {
            message.attempts += 1;
            if message.sent_ns == 0 {
                message.sent_ns = now;
                self.counts.sent += 1;
            }
        }
    }

    /// Settles the message with this id, if it is unacknowledged: records it as settled if the broker has
    /// accepted it (`taken`), else as unsettled.
    pub fn settled(&mut self, id: u64, taken: bool, now: i64, out: &mut Vec<u8>) {
        if let Some(message) = self.inflight.remove(&id) {
            if taken {
                self.arrived(message, now, Outcome::Settled, out);
            } else {
                self.record(out, &message, 0, Outcome::Unsettled);
            }
        }
    }

    /// Settles the messages with all ids up to `last`, as `settled` does.
    pub fn settled_to(&mut self, last: u64, taken: bool, now: i64, out: &mut Vec<u8>) {
        while let Some(first) = self.inflight.first_key_value().map(|(id, _)| *id)
            && first <= last
        {
            self.settled(first, taken, now, out);
        }
    }

    /// Handles the end of the connection: requeues the messages that need no acknowledgement and of which the
    /// socket has not taken all bytes, since they cannot have arrived. Also ends the handshakes, unless the
    /// session outlasts the connection.
    pub fn connection_lost(&mut self, out: &mut Vec<u8>) {
        let back: Vec<Message> = self.leaving.drain(..).filter_map(|l| l.message).collect();
        back.into_iter()
            .rev()
            .for_each(|m| self.queue.push_front(m));
        self.written = 0;
        if !self.rules.keeps_session {
            self.session_lost(out);
        }
    }

    /// Handles the loss of the broker's handshakes: requeues the unacknowledged messages. If duplicates are
    /// not allowed, records the messages that were sent as unsettled instead.
    pub fn session_lost(&mut self, out: &mut Vec<u8>) {
        let mut open: Vec<Message> = std::mem::take(&mut self.inflight).into_values().collect();
        open.sort_by_key(|m| m.seq);
        for message in open.into_iter().rev() {
            if !self.rules.resends && message.attempts > 0 {
                self.record(out, &message, 0, Outcome::Unsettled);
            } else {
                self.queue.push_front(message);
            }
        }
    }

    /// Records the outcome of all unacknowledged and queued messages: unsettled if they were sent, else
    /// unsent.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        for message in self.requests.take_all() {
            self.record(out, &message, 0, Outcome::Unsettled);
        }
        for message in std::mem::take(&mut self.inflight).into_values() {
            let outcome = if message.attempts > 0 {
                Outcome::Unsettled
            } else {
                Outcome::Unsent
            };
            self.record(out, &message, 0, outcome);
        }
        for message in std::mem::take(&mut self.queue) {
            let outcome = if message.attempts > 0 {
                Outcome::Unsettled
            } else {
                Outcome::Unsent
            };
            self.record(out, &message, 0, outcome);
        }
    }

    fn record(&self, out: &mut Vec<u8>, message: &Message, settled_ns: i64, outcome: Outcome) {
        if let Some(sends) = &self.sends {
            sends.record(out, message, settled_ns, outcome);
        }
    }
}
