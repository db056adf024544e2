//! The side that sends: by the clock, one patched frame after the other.

use super::frame::{Content, Stream, Template};
use crate::clock;
use crate::os::Res;
use crate::proto::{Item, Session, Totals};
use crate::records::{self, Outcome};
use crate::roles::Role;
use crate::roles::iec61850::Sender;
use crate::roles::sends::Sends;
use serde::Deserialize;
use std::os::fd::RawFd;

#[derive(Debug, Deserialize)]
pub struct Spec {
    interface: String,
    #[serde(flatten)]
    stream: Stream,
    #[serde(flatten)]
    content: Content,
}

pub struct Publisher {
    session: Session,
    sender: Sender,
    template: Template,
    sends: Sends,
    t0_ns: Option<i64>,
    connected: bool,
    over: bool,
    counts: Totals,
}

impl Publisher {
    pub fn new(item: Item, spec: Spec) -> Res<Self> {
        spec.stream.check()?;
        let session = item.software.session;
        let [flow]: [_; 1] = item.flows.try_into().map_err(|flows: Vec<_>| {
            format!("flows: {}; a publisher has one stream", flows.len())
        })?;
        let earlier = item.earlier.get(&flow.number).cloned();
        if flow.start_ns % 1_000_000_000 != 0 {
            return Err(format!(
                "flow {}: start_ns: {}: smpCnt begins with a second; begin with one",
                flow.number, flow.start_ns
            ));
        }
        let sender = Sender::open(&spec.interface)?;
        Ok(Self {
            template: Template::new(sender.address(), &spec.stream, &spec.content),
            sends: Sends::of_own_encoding(flow, &session, earlier)?,
            sender,
            session,
            t0_ns: None,
            connected: false,
            over: false,
            counts: Totals::default(),
        })
    }

    fn say(&self, what: &str, at_ns: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, at_ns, detail);
    }

    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(mut message) = self.sends.take_due(t0, now, out) {
            let (outcome, trouble) = self.sender.send(self.template.fill(message.seq));
            let at = clock::lab_ns();
            if outcome == Outcome::Sent {
                (message.sent_ns, message.attempts) = (at, 1);
                self.counts.sent += 1;
            }
            self.counts.dropped += u64::from(outcome == Outcome::Dropped);
            self.sends.write_down(out, &message, 0, outcome);
            if let Some(text) = trouble {
                self.say("failed", at, &text, out);
            }
        }
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.sends.stop();
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
        let session = if self.connected {
            self.session.disconnect_ns
        } else {
            self.session.connect_ns
        };
        Some(t0 + self.sends.next_ns().map_or(session, |at| at.min(session)))
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
        }
        self.send_due(t0, now, out);
        if now >= t0 + self.session.disconnect_ns {
            self.leave(now, out);
        }
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.send_due(t0, now, out);
        }
        self.leave(now, out);
    }

    fn totals(&self) -> Totals {
        Totals {
            scheduled: self.sends.scheduled(),
            ..self.counts
        }
    }

    fn connected(&self) -> bool {
        self.connected
    }
}
