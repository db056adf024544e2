//! The messages of one flow, as they fall due; what an earlier life of the sender settles does not come again.

use super::earlier::Fate;
use crate::os::Res;
use crate::payload::{self, Identity, Payload, Purpose};
use crate::proto::{Earlier, Flow, Pattern, Session, Spread};
use crate::records::{self, Message, Outcome};
use crate::schedule::{self, Ticks};
use std::ops::Range;

pub struct Sends {
    pub flow: Flow,
    /// None: the role encodes its messages itself.
    payload: Option<&'static dyn Payload>,
    ticks: Ticks,
    seq: u64,
    earlier: Option<Earlier>,
}

impl Sends {
    /// Checks the flow; nothing of it is due outside of the session.
    pub fn new(flow: Flow, session: &Session, earlier: Option<Earlier>) -> Res<Self> {
        let payload =
            payload::of(&flow.payload).map_err(|e| format!("flow {}: {e}", flow.number))?;
        let scheduled = Self::of_own_encoding(flow, session, earlier)?;
        Ok(Self {
            payload: Some(payload),
            ..scheduled
        })
    }

    /// As `new`, of a role whose protocol says all of a message: `write` appends nothing.
    pub fn of_own_encoding(flow: Flow, session: &Session, earlier: Option<Earlier>) -> Res<Self> {
        let place = |text: String| format!("flow {}: {text}", flow.number);
        let schedule = flow.schedule.clone().ok_or_else(|| {
            place("schedule: missing; this kind of software sends by a schedule".to_owned())
        })?;
        schedule::check(&schedule).map_err(place)?;
        let from_ns = flow.start_ns.max(session.connect_ns);
        let ticks = Ticks::new(schedule, from_ns, flow.stop_ns.min(session.disconnect_ns));
        Ok(Self {
            payload: None,
            ticks,
            seq: 0,
            earlier,
            flow,
        })
    }

    /// Offset of the next message.
    pub fn next_ns(&self) -> Option<i64> {
        self.ticks.peek()
    }

    /// How many messages have been due.
    pub fn scheduled(&self) -> u64 {
        self.seq
    }

    pub fn stop(&mut self) {
        self.ticks.stop();
    }

    /// The next message that is due and this life's to send.
    pub fn take_due(&mut self, t0_ns: i64, now_ns: i64, out: &mut Vec<u8>) -> Option<Message> {
        loop {
            let offset = self.ticks.take_due(now_ns - t0_ns)?;
            let message = Message {
                seq: self.seq,
                scheduled_ns: t0_ns + offset,
                ..Message::default()
            };
            self.seq += 1;
            let fate = self
                .earlier
                .as_ref()
                .map_or(Fate::Ours, |e| e.fate(message.seq, offset));
            match fate {
                Fate::Ours => return Some(message),
                Fate::Recorded => {}
                Fate::Unknown => self.write_down(out, &message, 0, Outcome::Unsettled),
                Fate::Missed => self.write_down(out, &message, 0, Outcome::Unsent),
            }
        }
    }

    /// Places of those in a list of so many receivers to whom a message goes.
    pub fn receivers(&self, seq: u64, all: usize) -> Range<usize> {
        match self.flow.spread {
            Spread::All => 0..all,
            Spread::RoundRobin => {
                let turn = (seq % all.max(1) as u64) as usize;
                turn..turn + 1
            }
        }
    }

    /// Appends the message's payload.
    pub fn write(&self, message: &Message, out: &mut Vec<u8>) {
        let identity = Identity {
            purpose: match self.flow.pattern {
                Pattern::Publish => Purpose::Other,
                Pattern::Request => Purpose::Request,
                Pattern::Push => Purpose::Push,
                Pattern::Stream => Purpose::Stream,
            },
            flow: self.flow.number,
            seq: message.seq,
            scheduled_ns: message.scheduled_ns,
            reply_bytes: self.flow.reply.as_ref().map_or(0, |r| r.bytes as u32),
        };
        if let Some(payload) = self.payload {
            payload.write(&identity, self.flow.payload.bytes, out);
        }
    }

    /// The record of what became of a message.
    pub fn write_down(
        &self,
        out: &mut Vec<u8>,
        message: &Message,
        settled_ns: i64,
        outcome: Outcome,
    ) {
        let Flow {
            number, payload, ..
        } = &self.flow;
        records::scheduled(out, *number, payload.bytes, message, settled_ns, outcome);
    }
}
