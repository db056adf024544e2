//! Implements the GOOSE publisher: each event changes the state, which the publisher sends and
//! retransmits.

use super::curve::Curve;
use super::frame::{self, Content, Moment, Stream};
use crate::clock;
use crate::os::Res;
use crate::proto::Item;
use crate::records::{Message, Outcome};
use crate::roles::Role;
use crate::roles::iec61850::Sender;
use crate::roles::iec61850::publisher::{self, Outlet, Publisher, only_flow};
use crate::roles::sends::Sends;
use serde::Deserialize;

/// stNum of a publisher's initial state; the first event has the next one.
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

struct Events {
    spec: Spec,
    state: State,
}

/// The present state of the publisher, and the number of messages that carried it.
struct State {
    st_num: u32,
    sq_num: u32,
    changed_ns: i64,
    /// Number of messages with this state that were sent so far.
    sent: usize,
    next_ns: i64,
    /// The event that led to this state, until its retransmission curve is complete or the next event occurs.
    open: Option<(Message, Outcome)>,
}

pub fn publisher(item: Item, spec: Spec) -> Res<Box<dyn Role>> {
    spec.curve.check()?;
    let (session, flow, resume) = only_flow(item, "of events")?;
    let sends = Sends::with_own_encoding(flow, &session, resume)?;
    let sender = Sender::open(&spec.interface)?;
    let state = State {
        st_num: BEGINNING,
        sq_num: 1, // 0 marks a change
        changed_ns: 0,
        sent: 0,
        next_ns: 0,
        open: None,
    };
    let events = Events { spec, state };
    Ok(Box::new(Publisher::new(session, sender, sends, events)))
}

impl Events {
    /// Sends the present state, and sets the time of the next retransmission, which counts from `due_ns`.
    /// Records the event once its retransmission curve is complete.
    fn send(&mut self, outlet: &mut Outlet, due_ns: i64, out: &mut Vec<u8>) {
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
        let frame = frame::encode(outlet.sender.address(), stream, content, &now);
        let (outcome, error) = outlet.sender.send(&frame);
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
            // The event gets the best outcome of all copies of its message.
            *known = (*known).min(outcome);
        }
        if let Some(text) = error {
            outlet.session.record("failed", at, &text, out);
        }
        if self.spec.curve.is_over(self.state.sent) {
            publisher::Stream::close(self, outlet, out);
        }
    }

    fn change(&mut self, outlet: &mut Outlet, message: Message, out: &mut Vec<u8>) {
        publisher::Stream::close(self, outlet, out);
        let due_ns = message.scheduled_ns;
        self.state = State {
            st_num: BEGINNING + 1 + message.seq as u32,
            sq_num: 0,
            changed_ns: due_ns,
            sent: 0,
            next_ns: 0,
            open: Some((message, Outcome::Dropped)),
        };
        self.send(outlet, due_ns, out);
    }
}

impl publisher::Stream for Events {
    const SENDS_AT_THE_END: bool = false;

    fn begin(&mut self, outlet: &mut Outlet, now: i64, out: &mut Vec<u8>) {
        self.state.changed_ns = now;
        self.send(outlet, now, out);
    }

    fn next_ns(&self) -> Option<i64> {
        Some(self.state.next_ns)
    }

    fn send_due(&mut self, outlet: &mut Outlet, t0_ns: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(message) = outlet.sends.take_due(t0_ns, now, out) {
            self.change(outlet, message, out);
        }
        while now >= self.state.next_ns {
            self.send(outlet, self.state.next_ns, out);
        }
    }

    /// Records the outcome of the last event, unless it was recorded before.
    fn close(&mut self, outlet: &mut Outlet, out: &mut Vec<u8>) {
        if let Some((message, outcome)) = self.state.open.take() {
            outlet.record(&message, outcome, out);
        }
    }

    fn pending(&self) -> u64 {
        u64::from(self.state.open.is_some())
    }
}
