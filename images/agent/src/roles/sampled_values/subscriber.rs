//! Implements the subscriber of sampled values: it finds each frame's stream by APPID and svID and the
//! frame's number by smpCnt, and records the frame.

use super::counting::Counting;
use super::frame::{self, ETHERTYPE, Stream};
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
    /// The flow's number in records.
    flow: u32,
    /// The time of the stream's first sample, as an offset from t0.
    start_ns: i64,
    interface: String,
    #[serde(flatten)]
    stream: Stream,
}

/// A subscriber's streams, each with the counter that numbers its frames.
struct Counted(Vec<(Spec, Counting)>);

pub fn subscriber(item: Item, specs: Vec<Spec>) -> Res<Box<dyn Role>> {
    specs.iter().try_for_each(|spec| spec.stream.check())?;
    let wanted = specs
        .iter()
        .map(|spec| (spec.interface.as_str(), spec.stream.to.group));
    let receivers = Receivers::open(ETHERTYPE, wanted)?;
    let counted = |spec: Spec| {
        let counting = Counting::new(spec.stream.frames_per_s());
        (spec, counting)
    };
    let streams = Counted(specs.into_iter().map(counted).collect());
    let session = item.software.session;
    Ok(Box::new(Subscriber::new(session, receivers, streams)))
}

impl Streams for Counted {
    fn take(
        &mut self,
        bytes: &[u8],
        t0_ns: Option<i64>,
        endpoint: &str,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let (t0, now) = (t0_ns?, clock::lab_ns());
        let seen = frame::read(bytes)?;
        let (spec, counting) = self.0.iter_mut().find(|(spec, _)| {
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
        records::received(out, spec.flow, number, endpoint, 0, now, false);
        Some(true)
    }
}
