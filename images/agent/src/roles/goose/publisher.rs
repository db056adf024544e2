//! The side that sends: each event changes the state, which is then sent again and again.

use super::curve::Curve;
use super::frame::{self, Content, Moment, Stream};
use crate::clock;
use crate::os::Res;
use crate::proto::{Item, Session, Totals};
use crate::records::{self, Message, Outcome};
use crate::roles::Role;
use crate::roles::iec61850::Sender;
use crate::roles::sends::Sends;
use serde::Deserialize;
use std::os::fd::RawFd;

/// stNum of the state in which a publisher begins; the first event's is one more.
pub const BEGINNING: u32 = 1;

#[derive(Debug, Deserialize)]
pub struct Spec {
    interface: String,
    #[serde(flatten)]
    stream: Stream,
    #[serde(flatten)]
    content: Content,
    #[serde(flatten)]
    curve: Curve,
}

pub struct Publisher {
    session: Session,
    sender: Sender,
    spec: Spec,
    sends: Sends,
    t0_ns: Option<i64>,
    connected: bool,
    over: bool,
    state: State,
    counts: Totals,
}

/// What is sent again, and how often it has been.
struct State {
    st_num: u32,
    sq_num: u32,
    changed_ns: i64,
    /// Messages of this state.
    sent: usize,
    next_ns: i64,
    /// The event, until its curve is over or the next one has come.
    open: Option<(Message, Outcome)>,
}

impl Publisher {
    pub fn new(item: Item, spec: Spec) -> Res<Self> {
        spec.curve.check()?;
        let session = item.software.session;
        let [flow]: [_; 1] = item.flows.try_into().map_err(|flows: Vec<_>| {
            format!("flows: {}; a publisher has one of events", flows.len())
        })?;
        let earlier = item.earlier.get(&flow.number).cloned();
        Ok(Self {
            sends: Sends::of_own_encoding(flow, &session, earlier)?,
            sender: Sender::open(&spec.interface)?,
            spec,
            session,
            t0_ns: None,
            connected: false,
            over: false,
            state: State {
                st_num: BEGINNING,
                sq_num: 1, // 0 is that of a change
                changed_ns: 0,
                sent: 0,
                next_ns: 0,
                open: None,
            },
            counts: Totals::default(),
        })
    }

    fn say(&self, what: &str, at_ns: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, at_ns, detail);
    }

    /// Sends the state as it is now; the next time is counted from when it was due.
    fn send(&mut self, due_ns: i64, out: &mut Vec<u8>) {
        let Spec {
            stream,
            content,
            curve,
            ..
        } = &self.spec;
        let now = Moment {
            st_num: self.state.st_num,
            sq_num: self.state.sq_num,
            time_allowed_to_live: curve.lives_ms(self.state.sent),
            changed_ns: self.state.changed_ns,
        };
        let frame = frame::encode(self.sender.address(), stream, content, &now);
        let (outcome, trouble) = self.sender.send(&frame);
        let at = clock::lab_ns();
        self.state.next_ns = due_ns + curve.wait_ns(self.state.sent);
        self.state.sent += 1;
        self.state.sq_num = self.state.sq_num.checked_add(1).unwrap_or(1);
        if let Some((message, known)) = &mut self.state.open {
            if outcome == Outcome::Sent {
                message.attempts += 1;
                if message.sent_ns == 0 {
                    message.sent_ns = at;
                }
            }
            // What one copy could not do another may.
            *known = (*known).min(outcome);
        }
        if let Some(text) = trouble {
            self.say("failed", at, &text, out);
        }
        if self.spec.curve.is_over(self.state.sent) {
            self.close(out);
        }
    }

    /// Writes down what became of the last event.
    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some((message, outcome)) = self.state.open.take() {
            self.counts.sent += u64::from(outcome == Outcome::Sent);
            self.counts.dropped += u64::from(outcome == Outcome::Dropped);
            self.sends.write_down(out, &message, 0, outcome);
        }
    }

    fn change(&mut self, message: Message, out: &mut Vec<u8>) {
        self.close(out);
        let due_ns = message.scheduled_ns;
        self.state = State {
            st_num: BEGINNING + 1 + message.seq as u32,
            sq_num: 0,
            changed_ns: due_ns,
            sent: 0,
            next_ns: 0,
            open: Some((message, Outcome::Dropped)),
        };
        self.send(due_ns, out);
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.sends.stop();
        self.close(out);
        if self.connected {
            self.say("disconnected", now, "as planned", out);
        }
        (self.connected, self.over) = (false, true);
    }
}

impl Role for Publisher {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns.filter(|_| !self.over)?;
        if !self.connected {
            return Some(t0 + self.session.connect_ns);
        }
        let event = self.sends.next_ns().map(|at| t0 + at);
        let others = [
            Some(t0 + self.session.disconnect_ns),
            Some(self.state.next_ns),
            event,
        ];
        others.into_iter().flatten().min()
    }

    fn fds(&self, _wait_for: &mut dyn FnMut(RawFd, bool)) {}

    fn on_ready(&mut self, _fd: RawFd, _revents: i16, _now: i64, _out: &mut Vec<u8>) {}

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns.filter(|_| !self.over) else {
            return;
        };
        if !self.connected && now >= t0 + self.session.connect_ns {
            self.connected = true;
            self.say("connected", now, "", out);
            self.state.changed_ns = now;
            self.send(now, out);
        }
        while let Some(message) = self.sends.take_due(t0, now, out) {
            self.change(message, out);
        }
        while self.connected && now >= self.state.next_ns {
            self.send(self.state.next_ns, out);
        }
        if now >= t0 + self.session.disconnect_ns {
            self.leave(now, out);
        }
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        self.leave(now, out);
    }

    fn totals(&self) -> Totals {
        let pending = u64::from(self.state.open.is_some());
        Totals {
            scheduled: self.sends.scheduled(),
            pending,
            ..self.counts
        }
    }

    fn connected(&self) -> bool {
        self.connected
    }
}
