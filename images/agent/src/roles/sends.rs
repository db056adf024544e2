//! Yields the messages of one flow when they fall due. Leaves out messages that a rate limit skips and, after
//! a restart, messages whose outcome is already recorded.

use super::resume::Fate;
use crate::os::Res;
use crate::payload::{self, Identity, Payload, Purpose, sizes};
use crate::proto::{Flow, Pattern, ResumePoint, Session, Spread};
use crate::records::{self, Message, Outcome};
use crate::schedule::{self, Ticks};
use std::ops::Range;

pub struct Sends {
    pub flow: Flow,
    /// The kind of the payload; None if the role encodes its messages itself.
    payload: Option<&'static dyn Payload>,
    ticks: Ticks,
    seq: u64,
    resume: Option<ResumePoint>,
    /// The rate limit as an interval: a tick that follows the last message after a shorter time is skipped.
    least_gap_ns: i64,
    last_ns: Option<i64>,
}

impl Sends {
    /// Creates the schedule of a flow, limited to the session; an error if the flow has no valid payload and
    /// schedule.
    pub fn new(flow: Flow, session: &Session, resume: Option<ResumePoint>) -> Res<Self> {
        let payload =
            payload::of(&flow.payload).map_err(|e| format!("flow {}: {e}", flow.number))?;
        sizes::check(&flow.payload, payload).map_err(|e| format!("flow {}: {e}", flow.number))?;
        let scheduled = Self::with_own_encoding(flow, session, resume)?;
        Ok(Self {
            payload: Some(payload),
            ..scheduled
        })
    }

    /// Creates the schedule as `new` does, but does not check the payload. This is for a role whose protocol
    /// defines the whole message; `write` then appends nothing.
    pub fn with_own_encoding(
        flow: Flow,
        session: &Session,
        resume: Option<ResumePoint>,
    ) -> Res<Self> {
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
            resume,
            flow,
            least_gap_ns: 0,
            last_ns: None,
        })
    }

    /// Returns when the next message falls due, as an offset from t0; None after the last one.
    pub fn next_ns(&self) -> Option<i64> {
        self.ticks.peek()
    }

    /// Returns the number of messages that have been due so far, including those that the rate limit has
    /// skipped.
    pub fn scheduled(&self) -> u64 {
        self.seq
    }

    pub fn stop(&mut self) {
        self.ticks.stop();
    }

    /// Limits the schedule to `per_s` messages a second from now on, or to one message an hour if that is
    /// more.
    pub fn limit(&mut self, per_s: f64) {
        self.least_gap_ns = (1e9 / per_s.max(1.0 / 3600.0)) as i64;
    }

    /// Returns whether the rate limit skips this tick. The times of ticks vary, so a tick that is up to 2 %
    /// early is not skipped.
    fn too_soon(&self, offset: i64) -> bool {
        self.last_ns
            .is_some_and(|last| offset - last < self.least_gap_ns - self.least_gap_ns / 50)
    }

    /// Returns the next due message that is to be sent; None if no further message is due. Skips messages
    /// beyond the rate limit without a record, and records the outcome of messages that a restart has cut
    /// off.
    pub fn take_due(&mut self, t0_ns: i64, now_ns: i64, out: &mut Vec<u8>) -> Option<Message> {
        loop {
            let offset = self.ticks.take_due(now_ns - t0_ns)?;
            let message = Message {
                seq: self.seq,
                scheduled_ns: t0_ns + offset,
                ..Message::default()
            };
            self.seq += 1;
            if self.too_soon(offset) {
                continue;
            }
            self.last_ns = Some(offset);
            let fate = self
                .resume
                .as_ref()
                .map_or(Fate::Send, |resume| resume.fate(message.seq, offset));
            match fate {
                Fate::Send => return Some(message),
                Fate::Recorded => {}
                Fate::Unknown => self.record(out, &message, 0, Outcome::Unsettled),
                Fate::Missed => self.record(out, &message, 0, Outcome::Unsent),
            }
        }
    }

    /// Returns the indices of the message's receivers in a list of `all` receivers.
    pub fn receivers(&self, seq: u64, all: usize) -> Range<usize> {
        match self.flow.spread {
            Spread::All => 0..all,
            Spread::RoundRobin => {
                let turn = (seq % all.max(1) as u64) as usize;
                turn..turn + 1
            }
        }
    }

    /// Returns the identity that the message's payload carries.
    pub fn identity(&self, message: &Message) -> Identity {
        Identity {
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
        }
    }

    /// Returns the length of a message's payload in bytes.
    pub fn bytes(&self, seq: u64) -> usize {
        sizes::bytes(&self.flow.payload, seq)
    }

    /// Appends the message's payload to `out`, unless the role encodes its messages itself.
    pub fn write(&self, message: &Message, out: &mut Vec<u8>) {
        if let Some(payload) = self.payload {
            payload.write(&self.identity(message), self.bytes(message.seq), out);
        }
    }

    /// Appends the record of a message's outcome to `out`.
    pub fn record(&self, out: &mut Vec<u8>, message: &Message, settled_ns: i64, outcome: Outcome) {
        let bytes = self.bytes(message.seq);
        records::scheduled(out, self.flow.number, bytes, message, settled_ns, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_skips_ticks_and_can_be_lifted() {
        let flow = json!({
            "number": 0, "pattern": "push", "payload": {"kind": "bytes", "bytes": 100},
            "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 20}], "seed": 1},
            "start_ns": 0, "stop_ns": 10_000_000_000i64,
        });
        let session = json!({"endpoint": "a", "connect_ns": 0, "disconnect_ns": 10_000_000_000i64});
        let session = serde_json::from_value(session).unwrap();
        let mut sends = Sends::new(serde_json::from_value(flow).unwrap(), &session, None).unwrap();
        let until = |sends: &mut Sends, second: i64| {
            let mut out = Vec::new();
            std::iter::from_fn(|| sends.take_due(0, second * 1_000_000_000, &mut out)).count()
        };
        assert_eq!(until(&mut sends, 2), 40);
        sends.limit(10.0);
        assert_eq!(until(&mut sends, 4), 20);
        sends.limit(2.3);
        assert!((8..=9).contains(&until(&mut sends, 8)), "every ninth tick");
        sends.limit(1e9);
        assert_eq!(until(&mut sends, 10), 40);
    }
}
