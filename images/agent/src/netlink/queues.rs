//! Parses the counters of queues below a link's root qdisc: each band's queue, with ECN-marked packets, and
//! CAKE's tins.

use super::{QdiscCounters, TCA_STATS2, attribute, i32_at, qdisc, u64_at};

/// The attribute with the statistics that only this kind of qdisc has (linux/gen_stats.h).
const TCA_STATS_APP: u16 = 4;
/// The attribute with the name of the qdisc's kind (linux/rtnetlink.h).
pub const TCA_KIND: u16 = 1;
/// TCA_CAKE_STATS_TIN_STATS; the constants below are the TCA_CAKE_TIN_STATS_* of linux/pkt_sched.h.
const CAKE_TINS: u16 = 10;
const TIN_PACKETS: u16 = 2;
const TIN_BYTES: u16 = 3;
const TIN_DROPPED: u16 = 4;
const TIN_MARKED: u16 = 8;
const TIN_WAITING_PACKETS: u16 = 10;
const TIN_WAITING_BYTES: u16 = 11;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCounters {
    pub queue: QdiscCounters,
    pub marked: u64, // by ECN
}

/// Returns the counters in a qdisc's attributes: of the whole qdisc, or of one of its tins, which are
/// numbered from 1. `marked_at` is the offset in bytes of the 32 bits that count the packets marked by ECN,
/// in a whole qdisc's own statistics; None: the qdisc marks no packets. Absent counters are 0.
pub fn class(attributes: &[u8], tin: Option<u16>, marked_at: Option<u16>) -> ClassCounters {
    let stats = attribute(attributes, TCA_STATS2).unwrap_or(&[]);
    let own = attribute(stats, TCA_STATS_APP).unwrap_or(&[]);
    if let Some(tin) = tin {
        let tins = attribute(own, CAKE_TINS).unwrap_or(&[]);
        return in_tin(attribute(tins, tin).unwrap_or(&[]));
    }
    ClassCounters {
        queue: qdisc(stats),
        marked: marked_at.map_or(0, |at| u32_at(own, usize::from(at))),
    }
}

/// Returns the counters of a tin. The kernel counts dropped packets among a tin's packets; they are
/// subtracted here, but their bytes are not, since the kernel does not report them.
fn in_tin(tin: &[u8]) -> ClassCounters {
    let small = |kind| u32_at(attribute(tin, kind).unwrap_or(&[]), 0);
    let dropped = small(TIN_DROPPED);
    ClassCounters {
        queue: QdiscCounters {
            bytes: u64_at(attribute(tin, TIN_BYTES).unwrap_or(&[]), 0),
            packets: small(TIN_PACKETS).saturating_sub(dropped),
            dropped,
            overlimits: 0,
            backlog_bytes: small(TIN_WAITING_BYTES),
            backlog_packets: small(TIN_WAITING_PACKETS),
        },
        marked: small(TIN_MARKED),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(i32_at(bytes, at) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut found = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        found.extend(kind.to_ne_bytes());
        found.extend(value);
        found.resize(found.len().div_ceil(4) * 4, 0);
        found
    }

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_ne_bytes()).collect()
    }

    #[test]
    fn marks_are_where_the_request_says_in_the_statistics_of_the_kind() {
        let app = with(TCA_STATS_APP, &words(&[1, 2, 3, 77]));
        let shown = with(TCA_STATS2, &app);
        assert_eq!(class(&shown, None, Some(12)).marked, 77);
        assert_eq!(class(&shown, None, Some(16)).marked, 0);
        assert_eq!(class(&shown, None, None).marked, 0);
    }

    #[test]
    fn a_tin_is_found_by_its_number() {
        let tin = |packets: u32, marked: u32| {
            [
                with(TIN_PACKETS, &words(&[packets])),
                with(TIN_BYTES, &(u64::from(packets) * 100).to_ne_bytes()),
                with(TIN_DROPPED, &words(&[2])),
                with(TIN_MARKED, &words(&[marked])),
            ]
            .concat()
        };
        let tins = [with(1, &tin(5, 0)), with(2, &tin(9, 4))].concat();
        let app = with(TCA_STATS_APP, &with(CAKE_TINS, &tins));
        let cake = [with(TCA_KIND, b"cake\0"), with(TCA_STATS2, &app)].concat();
        let second = class(&cake, Some(2), None);
        assert_eq!(
            (second.queue.packets, second.queue.bytes, second.marked),
            (7, 900, 4)
        );
        assert_eq!(class(&cake, Some(3), None), ClassCounters::default());
    }
}
