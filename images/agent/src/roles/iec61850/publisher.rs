//! Implements the publisher of an IEC 61850 protocol: it connects and disconnects at the times of its
//! session, and sends in between.

use super::Sender;
use crate::os::Res;
use crate::proto::{Flow, Item, ResumePoint, Session, Totals};
use crate::records::{Message, Outcome};
use crate::roles::Role;
use crate::roles::earliest;
use crate::roles::sends::Sends;
use std::os::fd::RawFd;

/// Sends the messages of one protocol; a publisher calls these functions.
pub trait Stream {
    /// True if `finish` still sends the messages that are due by then.
    const SENDS_AT_THE_END: bool;

    /// Handles the start of the session: the publisher has connected.
    fn begin(&mut self, _outlet: &mut Outlet, _now: i64, _out: &mut Vec<u8>) {}
    /// Returns when to send something other than a new message, in Unix nanoseconds; None if nothing is
    /// planned.
    fn next_ns(&self) -> Option<i64> {
        None
    }
    /// Sends all messages that are due by `now`.
    fn send_due(&mut self, outlet: &mut Outlet, t0_ns: i64, now: i64, out: &mut Vec<u8>);
    /// Records the outcome of open messages.
    fn close(&mut self, _outlet: &mut Outlet, _out: &mut Vec<u8>) {}
    /// Returns the number of messages that are sent but not recorded yet.
    fn pending(&self) -> u64 {
        0
    }
}

/// A publisher's socket, schedule and counts.
pub struct Outlet {
    pub sender: Sender,
    pub sends: Sends,
    pub session: Session,
    counts: Totals,
}

impl Outlet {
    /// Counts a message and records its outcome.
    pub fn record(&mut self, message: &Message, outcome: Outcome, out: &mut Vec<u8>) {
        self.counts.sent += u64::from(outcome == Outcome::Sent);
        self.counts.dropped += u64::from(outcome == Outcome::Dropped);
        self.sends.record(out, message, 0, outcome);
    }
}

pub struct Publisher<S> {
    outlet: Outlet,
    stream: S,
    t0_ns: Option<i64>,
    connected: bool,
    over: bool,
}

/// Returns session, flow and resume point of a publisher's item, which must have exactly one flow; `what`
/// describes it in the error.
pub fn only_flow(item: Item, what: &str) -> Res<(Session, Flow, Option<ResumePoint>)> {
    let [flow]: [_; 1] = item
        .flows
        .try_into()
        .map_err(|flows: Vec<_>| format!("flows: {}; a publisher has one {what}", flows.len()))?;
    let resume = item.resume.get(&flow.number).cloned();
    Ok((item.software.session, flow, resume))
}

impl<S: Stream> Publisher<S> {
    pub fn new(session: Session, sender: Sender, sends: Sends, stream: S) -> Self {
        let counts = Totals::default();
        Self {
            outlet: Outlet {
                sender,
                sends,
                session,
                counts,
            },
            stream,
            t0_ns: None,
            connected: false,
            over: false,
        }
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.outlet.sends.stop();
        self.stream.close(&mut self.outlet, out);
        if self.connected {
            self.outlet
                .session
                .record("disconnected", now, "as planned", out);
        }
        (self.connected, self.over) = (false, true);
    }
}

impl<S: Stream> Role for Publisher<S> {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns.filter(|_| !self.over)?;
        let Outlet { session, sends, .. } = &self.outlet;
        if !self.connected {
            return Some(t0 + session.connect_ns);
        }
        let end = Some(t0 + session.disconnect_ns);
        let message = sends.next_ns().map(|at| t0 + at);
        earliest([end, message, self.stream.next_ns()])
    }

    fn fds(&self, _wait_for: &mut dyn FnMut(RawFd, bool)) {}

    fn on_ready(&mut self, _fd: RawFd, _revents: i16, _now: i64, _out: &mut Vec<u8>) {}

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns.filter(|_| !self.over) else {
            return;
        };
        if !self.connected && now >= t0 + self.outlet.session.connect_ns {
            self.connected = true;
            self.outlet.session.record("connected", now, "", out);
            self.stream.begin(&mut self.outlet, now, out);
        }
        if self.connected {
            self.stream.send_due(&mut self.outlet, t0, now, out);
        }
        if now >= t0 + self.outlet.session.disconnect_ns {
            self.leave(now, out);
        }
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns.filter(|_| S::SENDS_AT_THE_END) {
            self.stream.send_due(&mut self.outlet, t0, now, out);
        }
        self.leave(now, out);
    }

    fn totals(&self) -> Totals {
        Totals {
            scheduled: self.outlet.sends.scheduled(),
            pending: self.stream.pending(),
            ..self.outlet.counts
        }
    }

    fn connected(&self) -> bool {
        self.connected
    }
}
