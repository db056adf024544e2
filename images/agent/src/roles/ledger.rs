//! Keeps the delivery ledger of a sender without a broker: tracks each message until all its receivers are
//! settled, then records the message's outcome once.

use super::sends::Sends;
use crate::os::Res;
use crate::payload::Identity;
use crate::proto::{Item, Pattern, Session, Totals};
use crate::records::{self, Message, Outcome};
use crate::roles::earliest;
use std::collections::BTreeMap;
use std::ops::Range;

/// Identifies an open message. Keys are ordered by the time at which the messages expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The time at which the message expires, in Unix nanoseconds; `i64::MAX` if it has no reply.
    expires_ns: i64,
    flow: u32,
    seq: u64,
}

struct Open {
    /// Index in `Ledger::sends`.
    flow: usize,
    message: Message,
    /// Number of receivers for which the transport has not accepted the message yet.
    untaken: usize,
    /// Number of receivers whose transport has not confirmed the message yet; 0 for requests.
    unconfirmed: usize,
    /// Receivers whose reply is missing; empty except for requests.
    unanswered: Vec<usize>,
    /// The worst outcome so far at any receiver.
    outcome: Outcome,
}

impl Open {
    /// Counts one more receiver for which the transport has accepted or refused the message. Returns true
    /// after the last receiver, if the transport has accepted the message for any of them.
    fn one_handled(&mut self) -> bool {
        self.untaken -= 1;
        self.untaken == 0 && self.message.sent_ns != 0
    }
}

pub struct Ledger {
    sends: Vec<Sends>,
    open: BTreeMap<Key, Open>,
    receivers: usize,
    timeout_ns: i64,
    /// True if the transport confirms messages that have no reply.
    confirms: bool,
    counts: Totals,
}

impl Ledger {
    /// Creates the ledger of an item's flows. An error for a request whose payload is not of the kind `bytes`
    /// or that has no reply, for another pattern with a reply, and for a flow without receivers. `receivers`
    /// is the number of receivers of the item. A request expires `timeout_ns` after it was due.
    pub fn new(item: Item, session: &Session, receivers: usize, timeout_ns: i64) -> Res<Self> {
        let mut sends = Vec::new();
        for flow in item.flows {
            let number = flow.number;
            if flow.pattern == Pattern::Request && flow.payload.kind != "bytes" {
                return Err(format!(
                    "flow {number}: payload.kind: \"{}\" cannot request a reply; write \"bytes\"",
                    flow.payload.kind
                ));
            }
            if receivers == 0 {
                return Err(format!(
                    "flow {number}: has no receivers; name them in `to`"
                ));
            }
            if (flow.pattern == Pattern::Request) != flow.reply.is_some() {
                return Err(format!(
                    "flow {number}: reply: a request needs one, other patterns have none"
                ));
            }
            let resume = item.resume.get(&number).cloned();
            sends.push(Sends::new(flow, session, resume)?);
        }
        let (open, counts) = (BTreeMap::new(), Totals::default());
        Ok(Self {
            sends,
            open,
            receivers,
            timeout_ns,
            confirms: false,
            counts,
        })
    }

    /// Makes the ledger keep messages without a reply open until all receivers have `confirmed` them.
    pub fn with_confirmation(mut self) -> Self {
        self.confirms = true;
        self
    }

    /// Limits each flow to `bps` bits per second, counting `headers` bytes of headers per message.
    pub fn limit(&mut self, bps: u64, headers: u64) {
        for sends in &mut self.sends {
            let bits = 8 * (sends.flow.payload.bytes as u64 + headers);
            sends.limit(bps as f64 / bits as f64);
        }
    }

    /// Returns when the next message falls due or expires, in Unix nanoseconds; None if there is none.
    pub fn deadline(&self, t0_ns: i64) -> Option<i64> {
        let next = self
            .sends
            .iter()
            .filter_map(Sends::next_ns)
            .min()
            .map(|t| t0_ns + t);
        let expiry = self.open.first_key_value().map(|(key, _)| key.expires_ns);
        earliest([next, expiry.filter(|at| *at < i64::MAX)])
    }

    /// Opens the next message that is due, of the first flow that has one, and returns its key; None if no
    /// message is due.
    pub fn take_due(&mut self, t0_ns: i64, now: i64, out: &mut Vec<u8>) -> Option<Key> {
        for (flow, sends) in self.sends.iter_mut().enumerate() {
            let Some(message) = sends.take_due(t0_ns, now, out) else {
                continue;
            };
            let to = sends.receivers(message.seq, self.receivers);
            let untaken = to.len();
            let (expires_ns, unanswered, unconfirmed) = match sends.flow.pattern {
                Pattern::Request => (message.scheduled_ns + self.timeout_ns, to.collect(), 0),
                _ if self.confirms => (i64::MAX, Vec::new(), untaken),
                _ => (i64::MAX, Vec::new(), 0),
            };
            let key = Key {
                expires_ns,
                flow: sends.flow.number,
                seq: message.seq,
            };
            let outcome = Outcome::Settled;
            self.open.insert(
                key,
                Open {
                    flow,
                    message,
                    untaken,
                    unconfirmed,
                    unanswered,
                    outcome,
                },
            );
            return Some(key);
        }
        None
    }

    /// Returns the indices of an open message's receivers in the list of all; empty if the message is not
    /// open.
    pub fn receivers(&self, key: &Key) -> Range<usize> {
        self.open.get(key).map_or(0..0, |open| {
            self.sends[open.flow].receivers(open.message.seq, self.receivers)
        })
    }

    pub fn is_open(&self, key: &Key) -> bool {
        self.open.contains_key(key)
    }

    /// Appends the message's payload to `out`, unless the message is no longer open.
    pub fn write(&self, key: &Key, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get(key) {
            self.sends[open.flow].write(&open.message, out);
        }
    }

    /// Records that the transport has accepted the whole message for one receiver; records the message's
    /// outcome if nothing else is missing.
    pub fn taken(&mut self, key: &Key, now: i64, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get_mut(key) {
            // The messages to all receivers count as one attempt.
            open.message.attempts += u32::from(open.message.sent_ns == 0);
            open.message.sent_ns = now;
            self.counts.sent += u64::from(open.one_handled());
            self.close_if_done(key, now, out);
        }
    }

    /// Records that the transport of one receiver has confirmed the message, or will never confirm it;
    /// records the message's outcome if nothing else is missing.
    pub fn confirmed(&mut self, key: &Key, now: i64, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get_mut(key) {
            open.unconfirmed -= 1;
            self.close_if_done(key, now, out);
        }
    }

    /// Returns whether replies to the message are missing.
    pub fn waits_for_answers(&self, key: &Key) -> bool {
        self.open
            .get(key)
            .is_some_and(|open| !open.unanswered.is_empty())
    }

    /// Counts a further attempt: the transport has lost a part of the message for one receiver and will send
    /// it again.
    pub fn taken_back(&mut self, key: &Key) {
        if let Some(open) = self.open.get_mut(key) {
            open.message.attempts += 1;
        }
    }

    /// Records that one receiver does not get the message, and with which outcome; records the worst outcome
    /// of all receivers if nothing else is missing.
    pub fn failed(&mut self, key: &Key, receiver: usize, outcome: Outcome, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get_mut(key) {
            self.counts.sent += u64::from(open.one_handled());
            open.unconfirmed = open.unconfirmed.saturating_sub(1);
            open.unanswered.retain(|r| *r != receiver);
            open.outcome = open.outcome.max(outcome);
            self.close_if_done(key, 0, out);
        }
    }

    /// Records a receiver's reply, even one that arrives after its request has expired; returns the request's
    /// key, or None if no such request has been due. Settles the request with its last missing reply.
    pub fn answered(
        &mut self,
        reply: &Identity,
        (receiver, endpoint): (usize, &str),
        now: i64,
        out: &mut Vec<u8>,
    ) -> Option<Key> {
        let sends = self.sends.iter().find(|s| s.flow.number == reply.flow)?;
        if sends.flow.pattern != Pattern::Request || reply.seq >= sends.scheduled() {
            return None;
        }
        records::received(out, reply.flow, reply.seq, endpoint, 1, now, false);
        self.counts.received += 1;
        let expires_ns = reply.scheduled_ns.saturating_add(self.timeout_ns);
        let key = Key {
            expires_ns,
            flow: reply.flow,
            seq: reply.seq,
        };
        if let Some(open) = self.open.get_mut(&key) {
            open.unanswered.retain(|r| *r != receiver);
            self.close_if_done(&key, now, out);
        }
        Some(key)
    }

    fn close_if_done(&mut self, key: &Key, now: i64, out: &mut Vec<u8>) {
        let done =
            |open: &Open| open.untaken == 0 && open.unconfirmed == 0 && open.unanswered.is_empty();
        if self.open.get(key).is_some_and(done)
            && let Some(open) = self.open.remove(key)
        {
            let request = self.sends[open.flow].flow.pattern == Pattern::Request;
            let outcome = open.outcome.max(if request {
                Outcome::Settled
            } else {
                Outcome::Sent
            });
            self.close(&open, now, outcome, out);
        }
    }

    fn close(&mut self, open: &Open, now: i64, outcome: Outcome, out: &mut Vec<u8>) {
        self.counts.settled += u64::from(outcome == Outcome::Settled);
        self.counts.dropped += u64::from(outcome == Outcome::Dropped);
        let settled_ns = if outcome == Outcome::Settled { now } else { 0 };
        self.sends[open.flow].record(out, &open.message, settled_ns, outcome);
    }

    fn give_up(&mut self, open: &Open, out: &mut Vec<u8>) {
        let outcome = if open.untaken == 0 {
            Outcome::Unsettled
        } else {
            Outcome::Unsent
        };
        self.close(open, 0, open.outcome.max(outcome), out);
    }

    /// Closes requests that have expired by `now` and records them, as unsettled at best; returns whether
    /// there were any.
    pub fn expire(&mut self, now: i64, out: &mut Vec<u8>) -> bool {
        let mut any = false;
        while let Some(first) = self
            .open
            .first_entry()
            .filter(|e| e.key().expires_ns <= now)
        {
            let open = first.remove();
            self.give_up(&open, out);
            any = true;
        }
        any
    }

    /// Stops the schedules, and closes and records all open messages: as unsettled at best if all transports
    /// had accepted or refused them, else as unsent at best.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.sends.iter_mut().for_each(Sends::stop);
        for open in std::mem::take(&mut self.open).into_values() {
            self.give_up(&open, out);
        }
    }

    pub fn totals(&self) -> Totals {
        let scheduled = self.sends.iter().map(Sends::scheduled).sum();
        Totals {
            scheduled,
            pending: self.open.len() as u64,
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests;
