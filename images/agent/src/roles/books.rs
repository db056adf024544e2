//! The books of who sends to peers without a go-between: a message of its flows is open until each of its receivers is
//! done with, then it is written down, once.

use super::sends::Sends;
use crate::os::Res;
use crate::payload::Identity;
use crate::proto::{Item, Pattern, Session, Totals};
use crate::records::{self, Message, Outcome};
use std::collections::BTreeMap;
use std::ops::Range;

/// Names an open message; those that are given up first come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// `i64::MAX`: never, as nothing is waited for.
    expires_ns: i64,
    flow: u32,
    seq: u64,
}

struct Open {
    /// Place in `Books::sends`.
    flow: usize,
    message: Message,
    /// Receivers for whom the transport has not taken it yet.
    untaken: usize,
    /// Receivers whose transport has not confirmed it yet; of what is not answered.
    unconfirmed: usize,
    /// Receivers whose reply is missing; of a request.
    unanswered: Vec<usize>,
    /// The worst that became of it with any receiver.
    outcome: Outcome,
}

impl Open {
    /// The transport has taken or refused it for one receiver more; whether that was the last and any has taken it.
    fn done_with_one(&mut self) -> bool {
        self.untaken -= 1;
        self.untaken == 0 && self.message.sent_ns != 0
    }
}

pub struct Books {
    sends: Vec<Sends>,
    open: BTreeMap<Key, Open>,
    receivers: usize,
    timeout_ns: i64,
    /// The transport says when the other side has what is not answered.
    confirms: bool,
    counts: Totals,
}

impl Books {
    /// Every message goes to so many receivers; a request is given up so long after it was due.
    pub fn new(item: Item, session: &Session, receivers: usize, timeout_ns: i64) -> Res<Self> {
        let mut sends = Vec::new();
        for flow in item.flows {
            let number = flow.number;
            if flow.pattern == Pattern::Request && flow.payload.kind != "bytes" {
                return Err(format!(
                    "flow {number}: payload.kind: \"{}\" does not ask for a reply; write \"bytes\"",
                    flow.payload.kind
                ));
            }
            if receivers == 0 {
                return Err(format!(
                    "flow {number}: goes to nobody; name receivers in `to`"
                ));
            }
            if (flow.pattern == Pattern::Request) != flow.reply.is_some() {
                return Err(format!(
                    "flow {number}: reply: goes with a request, and only there"
                ));
            }
            let earlier = item.earlier.get(&number).cloned();
            sends.push(Sends::new(flow, session, earlier)?);
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

    /// What is not answered is open until it is `confirmed` for all receivers.
    pub fn with_confirmation(mut self) -> Self {
        self.confirms = true;
        self
    }

    /// No flow sends more messages than that bring so many bits per second, each with so many bytes of headers.
    pub fn limit(&mut self, bps: u64, headers: u64) {
        for sends in &mut self.sends {
            let bits = 8 * (sends.flow.payload.bytes as u64 + headers);
            sends.limit(bps as f64 / bits as f64);
        }
    }

    /// When something falls due or is to be given up.
    pub fn deadline(&self, t0_ns: i64) -> Option<i64> {
        let next = self
            .sends
            .iter()
            .filter_map(Sends::next_ns)
            .min()
            .map(|t| t0_ns + t);
        let expiry = self.open.first_key_value().map(|(key, _)| key.expires_ns);
        [next, expiry.filter(|at| *at < i64::MAX)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Opens the next message that is due.
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

    /// Places of those in the list of receivers to whom an open message goes.
    pub fn receivers(&self, key: &Key) -> Range<usize> {
        self.open.get(key).map_or(0..0, |open| {
            self.sends[open.flow].receivers(open.message.seq, self.receivers)
        })
    }

    pub fn is_open(&self, key: &Key) -> bool {
        self.open.contains_key(key)
    }

    /// Appends the message's payload; nothing is appended once it is given up.
    pub fn write(&self, key: &Key, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get(key) {
            self.sends[open.flow].write(&open.message, out);
        }
    }

    /// The transport has taken the whole message for one receiver.
    pub fn taken(&mut self, key: &Key, now: i64, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get_mut(key) {
            // The first attempt is one, however many receivers it is for.
            open.message.attempts += u32::from(open.message.sent_ns == 0);
            open.message.sent_ns = now;
            self.counts.sent += u64::from(open.done_with_one());
            self.close_if_done(key, now, out);
        }
    }

    /// The other side of one receiver's transport has the whole message, or nobody will ever know.
    pub fn confirmed(&mut self, key: &Key, now: i64, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get_mut(key) {
            open.unconfirmed -= 1;
            self.close_if_done(key, now, out);
        }
    }

    /// Whether replies to the message are missing.
    pub fn waits_for_answers(&self, key: &Key) -> bool {
        self.open
            .get(key)
            .is_some_and(|open| !open.unanswered.is_empty())
    }

    /// The transport lost a part of the message for one receiver; it will be offered again.
    pub fn taken_back(&mut self, key: &Key) {
        if let Some(open) = self.open.get_mut(key) {
            open.message.attempts += 1;
        }
    }

    /// One receiver will not get the message.
    pub fn failed(&mut self, key: &Key, receiver: usize, outcome: Outcome, out: &mut Vec<u8>) {
        if let Some(open) = self.open.get_mut(key) {
            self.counts.sent += u64::from(open.done_with_one());
            open.unconfirmed = open.unconfirmed.saturating_sub(1);
            open.unanswered.retain(|r| *r != receiver);
            open.outcome = open.outcome.max(outcome);
            self.close_if_done(key, 0, out);
        }
    }

    /// A reply has come from a receiver; its key, unless it answers nothing that was asked.
    pub fn answered(
        &mut self,
        reply: &Identity,
        (receiver, endpoint): (usize, &str),
        now: i64,
        out: &mut Vec<u8>,
    ) -> Option<Key> {
        let asked = self.sends.iter().find(|s| s.flow.number == reply.flow)?;
        if asked.flow.pattern != Pattern::Request || reply.seq >= asked.scheduled() {
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
            let asked = self.sends[open.flow].flow.pattern == Pattern::Request;
            let outcome = open.outcome.max(if asked {
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
        self.sends[open.flow].write_down(out, &open.message, settled_ns, outcome);
    }

    fn give_up(&mut self, open: &Open, out: &mut Vec<u8>) {
        let left = if open.untaken == 0 {
            Outcome::Unsettled
        } else {
            Outcome::Unsent
        };
        self.close(open, 0, open.outcome.max(left), out);
    }

    /// Gives up the requests whose time is over; whether there were any.
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

    /// No new messages: writes down all that is still open.
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
