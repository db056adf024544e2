//! Implements the subscriber of an IEC 61850 protocol: it receives from the start, and counts frames of
//! unknown streams as foreign.

use super::Receivers;
use crate::clock;
use crate::proto::{Session, Totals};
use crate::roles::Role;
use std::os::fd::RawFd;

/// The streams that a subscriber receives, all of one protocol (GOOSE or sampled values).
pub trait Streams {
    /// Records the message of a frame. Returns whether the frame carries a message; None for a frame of an
    /// unknown stream or without a valid content. `t0_ns` is None before `go`.
    fn take(
        &mut self,
        bytes: &[u8],
        t0_ns: Option<i64>,
        endpoint: &str,
        out: &mut Vec<u8>,
    ) -> Option<bool>;

    /// Returns when to call `on_time` next; None if nothing is planned.
    fn deadline(&self) -> Option<i64> {
        None
    }

    /// Detects streams whose frames are missing.
    fn on_time(&mut self, _endpoint: &str, _now: i64, _out: &mut Vec<u8>) {}
}

pub struct Subscriber<S> {
    session: Session,
    receivers: Receivers,
    opened_ns: i64,
    streams: S,
    t0_ns: Option<i64>,
    listening: bool,
    counts: Totals,
}

impl<S: Streams> Subscriber<S> {
    pub fn new(session: Session, receivers: Receivers, streams: S) -> Self {
        Self {
            session,
            receivers,
            opened_ns: clock::lab_ns(),
            streams,
            t0_ns: None,
            listening: false,
            counts: Totals::default(),
        }
    }
}

impl<S: Streams> Role for Subscriber<S> {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        if self.listening {
            self.streams.deadline()
        } else {
            Some(t0)
        }
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        self.receivers.fds(wait_for);
    }

    fn on_ready(&mut self, fd: RawFd, _revents: i16, _now: i64, out: &mut Vec<u8>) {
        let (streams, counts) = (&mut self.streams, &mut self.counts);
        let (t0_ns, endpoint) = (self.t0_ns, &self.session.endpoint);
        self.receivers.receive(
            fd,
            &mut |bytes| match streams.take(bytes, t0_ns, endpoint, out) {
                Some(message) => counts.received += u64::from(message),
                None => counts.foreign += 1,
            },
        );
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        if self.t0_ns.is_some_and(|t0| now >= t0) && !self.listening {
            self.listening = true;
            self.session.record("listening", self.opened_ns, "", out);
        }
        self.streams.on_time(&self.session.endpoint, now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        let mut open = Vec::new();
        self.receivers.fds(&mut |fd, _| open.push(fd));
        open.iter()
            .for_each(|fd| self.on_ready(*fd, libc::POLLIN, now, out));
        if let Some(text) = self.receivers.overrun() {
            self.session.record("failed", now, &text, out);
        }
        if self.listening {
            self.session.record("disconnected", now, "as planned", out);
        }
        self.listening = false;
    }

    fn totals(&self) -> Totals {
        self.counts
    }

    fn connected(&self) -> bool {
        self.listening
    }
}
