//! The side that takes streams: each frame is known by APPID, svID and smpCnt.

use super::counting::Counting;
use super::frame::{self, ETHERTYPE, Stream};
use crate::clock;
use crate::os::Res;
use crate::proto::{Item, Session, Totals};
use crate::records;
use crate::roles::Role;
use crate::roles::iec61850::Receivers;
use serde::Deserialize;
use std::os::fd::RawFd;

#[derive(Debug, Deserialize)]
pub struct Spec {
    /// Its number in records.
    flow: u32,
    /// When its first sample is due, from t0.
    start_ns: i64,
    interface: String,
    #[serde(flatten)]
    stream: Stream,
}

pub struct Subscriber {
    session: Session,
    receivers: Receivers,
    opened_ns: i64,
    taken: Taken,
    t0_ns: Option<i64>,
    listening: bool,
}

/// What is known of the streams.
struct Taken {
    endpoint: String,
    streams: Vec<(Spec, Counting)>,
    counts: Totals,
}

impl Taken {
    /// The record of one frame, unless it is of no stream that was asked for.
    fn take(&mut self, bytes: &[u8], t0: i64, now: i64, out: &mut Vec<u8>) -> Option<()> {
        let seen = frame::read(bytes)?;
        let (spec, counting) = self.streams.iter_mut().find(|(spec, _)| {
            spec.stream.to.appid == seen.appid && spec.stream.sv_id.as_bytes() == seen.sv_id
        })?;
        let Stream {
            conf_rev,
            rate,
            asdus,
            ..
        } = spec.stream;
        let fits = seen.conf_rev == u64::from(conf_rev)
            && seen.asdus == asdus
            && seen.first < rate
            && seen.first.is_multiple_of(asdus);
        let place = u64::from(seen.first / asdus);
        let number = if fits {
            counting.number(place, now - t0 - spec.start_ns)?
        } else {
            return None;
        };
        records::received(out, spec.flow, number, &self.endpoint, 0, now, false);
        self.counts.received += 1;
        Some(())
    }
}

impl Subscriber {
    pub fn new(item: Item, specs: Vec<Spec>) -> Res<Self> {
        specs.iter().try_for_each(|spec| spec.stream.check())?;
        let session = item.software.session;
        let wanted = specs
            .iter()
            .map(|spec| (spec.interface.as_str(), spec.stream.to.group));
        let receivers = Receivers::open(ETHERTYPE, wanted)?;
        let counted = |spec: Spec| {
            let counting = Counting::new(spec.stream.frames_per_s());
            (spec, counting)
        };
        Ok(Self {
            receivers,
            opened_ns: clock::lab_ns(),
            taken: Taken {
                endpoint: session.endpoint.clone(),
                streams: specs.into_iter().map(counted).collect(),
                counts: Totals::default(),
            },
            session,
            t0_ns: None,
            listening: false,
        })
    }

    fn say(&self, what: &str, at_ns: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, at_ns, detail);
    }
}

impl Role for Subscriber {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn deadline(&self) -> Option<i64> {
        self.t0_ns.filter(|_| !self.listening)
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        self.receivers.fds(wait_for);
    }

    fn on_ready(&mut self, fd: RawFd, _revents: i16, _now: i64, out: &mut Vec<u8>) {
        let t0 = self.t0_ns;
        let taken = &mut self.taken;
        self.receivers.receive(fd, &mut |bytes| {
            let known = t0.and_then(|t0| taken.take(bytes, t0, clock::lab_ns(), out));
            taken.counts.foreign += u64::from(known.is_none());
        });
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        if self.t0_ns.is_some_and(|t0| now >= t0) && !self.listening {
            self.listening = true;
            self.say("listening", self.opened_ns, "", out);
        }
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        let mut open = Vec::new();
        self.receivers.fds(&mut |fd, _| open.push(fd));
        open.iter()
            .for_each(|fd| self.on_ready(*fd, libc::POLLIN, now, out));
        if let Some(text) = self.receivers.overrun() {
            self.say("failed", now, &text, out);
        }
        if self.listening {
            self.say("disconnected", now, "as planned", out);
        }
        self.listening = false;
    }

    fn totals(&self) -> Totals {
        self.taken.counts
    }

    fn connected(&self) -> bool {
        self.listening
    }
}
