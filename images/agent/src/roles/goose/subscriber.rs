//! Implements the GOOSE subscriber: records a message with sqNum 0 as an arrival and retransmissions as its
//! copies, and detects streams whose messages have stopped.

use super::frame::{self, ETHERTYPE, Seen, Stream};
use super::publisher::BEGINNING;
use crate::clock;
use crate::os::Res;
use crate::proto::Item;
use crate::records;
use crate::roles::Role;
use crate::roles::iec61850::Receivers;
use crate::roles::iec61850::subscriber::{Streams, Subscriber};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Spec {
    /// The number of the flow in records.
    flow: u32,
    /// The publisher's name in records.
    publisher: String,
    interface: String,
    #[serde(flatten)]
    stream: Stream,
}

/// One stream. `lives_ns` is the time until which its last message is valid; None before the first message,
/// and once the stream has been silent for longer.
struct Watched {
    spec: Spec,
    lives_ns: Option<i64>,
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

    /// Records the message of a frame, and after a silence also that the stream is connected. Returns true
    /// for a message, false for the initial state, which is no message, and None if the frame's time to live
    /// is out of range.
    fn take(&mut self, seen: &Seen, endpoint: &str, now: i64, out: &mut Vec<u8>) -> Option<bool> {
        let lives_ns = i64::try_from(seen.time_allowed_to_live)
            .ok()?
            .checked_mul(1_000_000)?;
        if self.lives_ns.is_none() {
            records::connection(out, endpoint, "connected", now, "", &self.spec.publisher);
        }
        self.lives_ns = Some(now.saturating_add(lives_ns));
        let number = seen.st_num.checked_sub(u64::from(BEGINNING) + 1);
        if let Some(seq) = number {
            let copy = seen.sq_num != 0;
            records::received(out, self.spec.flow, seq, endpoint, 0, now, copy);
        }
        Some(number.is_some())
    }
}

/// All streams of one subscriber.
struct Watch(Vec<Watched>);

pub fn subscriber(item: Item, specs: Vec<Spec>) -> Res<Box<dyn Role>> {
    let wanted = specs
        .iter()
        .map(|spec| (spec.interface.as_str(), spec.stream.to.group));
    let receivers = Receivers::open(ETHERTYPE, wanted)?;
    let watched = |spec| Watched {
        spec,
        lives_ns: None,
    };
    let watch = Watch(specs.into_iter().map(watched).collect());
    let session = item.software.session;
    Ok(Box::new(Subscriber::new(session, receivers, watch)))
}

impl Streams for Watch {
    fn take(
        &mut self,
        bytes: &[u8],
        _t0_ns: Option<i64>,
        endpoint: &str,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let seen = frame::read(bytes)?;
        let one = self.0.iter_mut().find(|one| one.is(&seen))?;
        one.take(&seen, endpoint, clock::lab_ns(), out)
    }

    fn deadline(&self) -> Option<i64> {
        self.0.iter().filter_map(|one| one.lives_ns).min()
    }

    /// Records the streams whose last message is no longer valid as disconnected.
    fn on_time(&mut self, endpoint: &str, now: i64, out: &mut Vec<u8>) {
        for one in &mut self.0 {
            if one.lives_ns.is_some_and(|until| now >= until) {
                one.lives_ns = None;
                let (why, peer) = ("timeAllowedToLive is over", &one.spec.publisher);
                records::connection(out, endpoint, "disconnected", now, why, peer);
            }
        }
    }
}
