//! Reads the counters of an HTB qdisc's classes, and changes their rates without disturbing queued packets;
//! names and layout: linux/pkt_sched.h.

use super::{
    HEADER, Netlink, QdiscCounters, TCA_STATS2, align, attribute, i32_at, put, qdisc, request,
};
use crate::os::Res;

const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TCMSG: usize = 20;
/// Length of struct tc_htb_opt: two tc_ratespec of 12 bytes (rate last), buffer, cbuffer, quantum, level,
/// prio.
const PARMS: usize = 44;
const LINKLAYER_ETHERNET: u8 = 1;
/// The kernel's tick in nanoseconds, the unit of bucket sizes (net/pkt_sched.h: PSCHED_SHIFT 6).
const TICK_NS: u64 = 64;

/// A class of an HTB qdisc; rates in bits per second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HtbClass {
    pub index: i32,
    pub handle: u32,
    pub parent: u32,
    pub rate_bps: u64,
    pub ceil_bps: u64,
    pub counters: QdiscCounters,
    parms: Vec<u8>,
}

impl Netlink {
    /// Returns all HTB classes of an interface.
    pub fn htb_classes(&mut self, index: i32) -> Res<Vec<HtbClass>> {
        let mut wanted = [0u8; TCMSG];
        wanted[4..8].copy_from_slice(&index.to_ne_bytes());
        let mut found = Vec::new();
        self.dump(RTM_GETTCLASS, &wanted, |body| found.extend(class(body)))?;
        Ok(found)
    }

    /// Changes rate and ceiling of a class, in bits per second, rounded down to whole bytes per second; keeps
    /// the bucket sizes in bytes.
    pub fn set_htb_rates(&mut self, class: &HtbClass, rate_bps: u64, ceil_bps: u64) -> Res<()> {
        let mut body = vec![0u8; 4];
        body.extend(class.index.to_ne_bytes());
        body.extend(class.handle.to_ne_bytes());
        body.extend(class.parent.to_ne_bytes());
        body.extend([0u8; 4]);
        put(&mut body, TCA_KIND, b"htb\0");
        let mut options = Vec::new();
        put(
            &mut options,
            TCA_HTB_PARMS,
            &changed(class, rate_bps, ceil_bps),
        );
        put(&mut body, TCA_OPTIONS, &options);
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        let message = request(RTM_NEWTCLASS, flags, 0, &body);
        debug_assert_eq!(message.len(), align(HEADER + body.len()));
        self.acknowledged(&message)
            .map_err(|e| format!("class {:x}: rate {rate_bps} bit/s: {e}", class.handle))
    }
}

pub(super) fn class(body: &[u8]) -> Option<HtbClass> {
    let attributes = body.get(TCMSG..)?;
    if attribute(attributes, TCA_KIND)? != b"htb\0" {
        return None;
    }
    let parms = attribute(attribute(attributes, TCA_OPTIONS)?, TCA_HTB_PARMS)?;
    if parms.len() < PARMS {
        return None;
    }
    let rate = |at: usize| 8 * u64::from(i32_at(parms, at) as u32);
    Some(HtbClass {
        index: i32_at(body, 4),
        handle: i32_at(body, 8) as u32,
        parent: i32_at(body, 12) as u32,
        rate_bps: rate(8),
        ceil_bps: rate(20),
        counters: qdisc(attribute(attributes, TCA_STATS2).unwrap_or(&[])),
        parms: parms.to_vec(),
    })
}

fn changed(class: &HtbClass, rate_bps: u64, ceil_bps: u64) -> Vec<u8> {
    let mut parms = class.parms.clone();
    for (at, bucket, old, new) in [
        (0, 24, class.rate_bps, rate_bps),
        (12, 28, class.ceil_bps, ceil_bps),
    ] {
        let bytes_per_s = u32::try_from((new / 8).max(1)).unwrap_or(u32::MAX);
        parms[at + 1] = LINKLAYER_ETHERNET; // an explicit link layer needs no rate table
        parms[at + 8..at + 12].copy_from_slice(&bytes_per_s.to_ne_bytes());
        let ticks = u64::from(i32_at(&parms, bucket) as u32);
        let held = ticks * TICK_NS * (old / 8); // bytes, times 10^9
        let ticks = held / u64::from(bytes_per_s) / TICK_NS;
        let ticks = u32::try_from(ticks.max(1)).unwrap_or(u32::MAX);
        parms[bucket..bucket + 4].copy_from_slice(&ticks.to_ne_bytes());
    }
    parms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class of 1 Mbit/s with a bucket of 1,600 B (12.8 ms), as `tc class show` prints it.
    fn one_megabit() -> HtbClass {
        let mut parms = vec![0u8; PARMS];
        for (at, bucket) in [(0, 24), (12, 28)] {
            parms[at + 8..at + 12].copy_from_slice(&125_000u32.to_ne_bytes());
            parms[bucket..bucket + 4].copy_from_slice(&200_000u32.to_ne_bytes());
        }
        parms[32..36].copy_from_slice(&1518u32.to_ne_bytes());
        HtbClass {
            index: 1,
            handle: 0x3_0010,
            parent: 0x3_0001,
            rate_bps: 1_000_000,
            ceil_bps: 1_000_000,
            counters: QdiscCounters::default(),
            parms,
        }
    }

    #[test]
    fn buckets_hold_as_many_bytes_at_another_rate() {
        let parms = changed(&one_megabit(), 500_000, 2_000_000);
        assert_eq!(i32_at(&parms, 8), 62_500);
        assert_eq!(i32_at(&parms, 20), 250_000);
        assert_eq!(i32_at(&parms, 24), 400_000, "25.6 ms at half the rate");
        assert_eq!(i32_at(&parms, 28), 100_000);
        assert_eq!(i32_at(&parms, 32), 1518, "the quantum stays");
        assert_eq!(parms[1], LINKLAYER_ETHERNET);
    }

    #[test]
    fn a_class_of_another_kind_is_none() {
        let mut body = vec![0u8; TCMSG];
        put(&mut body, TCA_KIND, b"drr\0");
        assert_eq!(class(&body), None);
        assert_eq!(class(&[0; 3]), None);
    }
}
