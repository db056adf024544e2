//! The side that takes states: each change once, its copies as copies, and a stream that fell silent.

use super::frame::{self, ETHERTYPE, Seen, Stream};
use super::publisher::BEGINNING;
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
    /// Who publishes it, in records.
    publisher: String,
    interface: String,
    #[serde(flatten)]
    stream: Stream,
}

/// One stream, and until when its last message is good.
struct Watched {
    spec: Spec,
    lives_ns: Option<i64>,
}

pub struct Subscriber {
    session: Session,
    receivers: Receivers,
    opened_ns: i64,
    watched: Vec<Watched>,
    t0_ns: Option<i64>,
    listening: bool,
    counts: Totals,
}

impl Watched {
    fn is(&self, seen: &Seen) -> bool {
        let Stream {
            to,
            gocb_ref,
            conf_rev,
        } = &self.spec.stream;
        to.appid == seen.appid
            && gocb_ref.as_bytes() == seen.gocb_ref
            && u64::from(*conf_rev) == seen.conf_rev
    }

    /// Writes down a message; the state in which a publisher begins is none.
    fn take(&mut self, seen: &Seen, endpoint: &str, now: i64, out: &mut Vec<u8>) -> Option<()> {
        let lives_ns = i64::try_from(seen.time_allowed_to_live)
            .ok()?
            .checked_mul(1_000_000)?;
        if self.lives_ns.is_none() {
            records::connection(out, endpoint, "connected", now, "", &self.spec.publisher);
        }
        self.lives_ns = Some(now.saturating_add(lives_ns));
        if let Some(seq) = seen.st_num.checked_sub(u64::from(BEGINNING) + 1) {
            let copy = seen.sq_num != 0;
            records::received(out, self.spec.flow, seq, endpoint, 0, now, copy);
        }
        Some(())
    }
}

impl Subscriber {
    pub fn new(item: Item, specs: Vec<Spec>) -> Res<Self> {
        let session = item.software.session;
        let wanted = specs
            .iter()
            .map(|spec| (spec.interface.as_str(), spec.stream.to.group));
        Ok(Self {
            receivers: Receivers::open(ETHERTYPE, wanted)?,
            opened_ns: clock::lab_ns(),
            watched: specs
                .into_iter()
                .map(|spec| Watched {
                    spec,
                    lives_ns: None,
                })
                .collect(),
            session,
            t0_ns: None,
            listening: false,
            counts: Totals::default(),
        })
    }

    fn say(&self, what: &str, at_ns: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, at_ns, detail);
    }

    /// Streams whose last message is no longer good are lost until the next one.
    fn expire(&mut self, now: i64, out: &mut Vec<u8>) {
        for one in &mut self.watched {
            if one.lives_ns.is_some_and(|until| now >= until) {
                one.lives_ns = None;
                let (why, peer) = ("timeAllowedToLive is over", &one.spec.publisher);
                records::connection(out, &self.session.endpoint, "disconnected", now, why, peer);
            }
        }
    }
}

impl Role for Subscriber {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        if !self.listening {
            return Some(t0);
        }
        self.watched.iter().filter_map(|one| one.lives_ns).min()
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        self.receivers.fds(wait_for);
    }

    fn on_ready(&mut self, fd: RawFd, _revents: i16, _now: i64, out: &mut Vec<u8>) {
        let Self {
            receivers,
            watched,
            counts,
            session,
            ..
        } = self;
        receivers.receive(fd, &mut |bytes| {
            let seen = frame::read(bytes);
            let known = seen.and_then(|seen| {
                let one = watched.iter_mut().find(|one| one.is(&seen))?;
                one.take(&seen, &session.endpoint, clock::lab_ns(), out)
            });
            counts.received += u64::from(known.is_some());
            counts.foreign += u64::from(known.is_none());
        });
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        if self.t0_ns.is_some_and(|t0| now >= t0) && !self.listening {
            self.listening = true;
            self.say("listening", self.opened_ns, "", out);
        }
        self.expire(now, out);
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
        self.counts
    }

    fn connected(&self) -> bool {
        self.listening
    }
}
