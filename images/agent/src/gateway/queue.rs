//! Implements a queue that several flows share, with a limit for each flow: earliest deadline first, or
//! first in, first out, on request with random early detection. It reads no clock and no device: time and
//! packets are arguments.

use super::red::{self, Red};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Earliest deadline first; packets of one flow with equal deadlines stay in order.
    Edf,
    Fifo,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets dropped because their flow had reached its limit.
    pub overflowed: u64,
    /// Packets dropped because their deadline passed while they waited.
    pub expired: u64,
    /// Packets dropped on arrival by random early detection.
    pub early: u64,
    pub waiting: u64,
    pub waiting_bytes: u64,
}

pub struct Queue<P> {
    order: Order,
    drops_late: bool,
    /// The most waiting packets of each flow.
    limit: u64,
    /// Waiting packets in the order of departure: by deadline (0 for FIFO), then by arrival.
    waiting: BTreeMap<(i64, u64), Waiting<P>>,
    /// Number of waiting packets by flow; a port identifies a flow.
    of_flow: BTreeMap<u16, u64>,
    arrivals: u64,
    counters: Counters,
    red: Option<Red>,
}

struct Waiting<P> {
    flow: u16,
    deadline_ns: i64,
    bytes: u64,
    packet: P,
}

impl<P> Queue<P> {
    pub fn new(order: Order, drops_late: bool, limit: u64, red: Option<red::Settings>) -> Self {
        Self {
            order,
            drops_late,
            limit,
            waiting: BTreeMap::new(),
            of_flow: BTreeMap::new(),
            arrivals: 0,
            counters: Counters::default(),
            red: red.map(Red::new),
        }
    }

    /// Returns whether random early detection drops a packet that arrives now, and counts the drop. The
    /// caller does not pass a dropped packet to `push`. `packet_ns` is the time that sending the packet
    /// takes.
    pub fn drops_early(&mut self, now_ns: i64, packet_ns: i64) -> bool {
        let waiting = self.counters.waiting;
        let red = self.red.as_mut();
        let drops = red.is_some_and(|red| red.drops(waiting, now_ns, packet_ns));
        self.counters.early += u64::from(drops);
        drops
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Adds a packet, or drops and counts it if its flow has reached its limit. `deadline_ns` is on the same
    /// clock as the time of `pop`.
    pub fn push(&mut self, flow: u16, deadline_ns: i64, bytes: u64, packet: P) {
        let of_flow = self.of_flow.entry(flow).or_default();
        if *of_flow >= self.limit {
            self.counters.overflowed += 1;
            return;
        }
        *of_flow += 1;
        self.counters.waiting += 1;
        self.counters.waiting_bytes += bytes;
        self.arrivals += 1;
        let first = match self.order {
            Order::Edf => deadline_ns,
            Order::Fifo => 0,
        };
        let waiting = Waiting {
            flow,
            deadline_ns,
            bytes,
            packet,
        };
        self.waiting.insert((first, self.arrivals), waiting);
    }

    /// Removes the next packet, and returns its length in bytes and the packet; None if the queue is
    /// empty. If `drops_late`, it drops and counts the packets before it whose deadline has passed.
    pub fn pop(&mut self, now_ns: i64) -> Option<(u64, P)> {
        while let Some((_, waiting)) = self.waiting.pop_first() {
            *self.of_flow.entry(waiting.flow).or_default() -= 1;
            self.counters.waiting -= 1;
            self.counters.waiting_bytes -= waiting.bytes;
            if self.waiting.is_empty() {
                self.red.iter_mut().for_each(|red| red.emptied(now_ns));
            }
            if !self.drops_late || waiting.deadline_ns >= now_ns {
                return Some((waiting.bytes, waiting.packet));
            }
            self.counters.expired += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates arrivals as (slot, flow), in order. Packets of flows 0 to 3 may wait for 1, 4, 16 and 64
    /// slots.
    fn arrivals() -> impl Strategy<Value = Vec<(i64, u16)>> {
        proptest::collection::vec((0..3i64, 0..4u16), 0..80).prop_map(|steps| {
            let mut at = 0;
            let place = |(step, flow)| {
                at += step;
                (at, flow)
            };
            steps.into_iter().map(place).collect()
        })
    }

    fn deadline(at: i64, flow: u16) -> i64 {
        at + 4i64.pow(u32::from(flow))
    }

    /// Serves one packet in each slot; returns (slot, flow, arrival, deadline) of each packet that leaves.
    fn served(
        order: Order,
        drops_late: bool,
        limit: u64,
        arrivals: &[(i64, u16)],
    ) -> (Vec<(i64, u16, usize, i64)>, Counters) {
        let mut queue = Queue::new(order, drops_late, limit, None);
        let (mut next, mut left) = (0, Vec::new());
        for slot in 0.. {
            while next < arrivals.len() && arrivals[next].0 <= slot {
                let (at, flow) = arrivals[next];
                queue.push(
                    flow,
                    deadline(at, flow),
                    100,
                    (flow, next, deadline(at, flow)),
                );
                next += 1;
            }
            match queue.pop(slot) {
                Some((100, (flow, arrival, deadline))) => {
                    left.push((slot, flow, arrival, deadline))
                }
                Some((bytes, _)) => panic!("{bytes} bytes left of 100"),
                None if next == arrivals.len() => break,
                None => {}
            }
        }
        (left, queue.counters())
    }

    proptest! {
        #[test]
        fn edf_is_never_later_than_the_latest_of_fifo(arrivals in arrivals()) {
            let latest = |order| {
                let (left, counters) = served(order, false, 1000, &arrivals);
                assert_eq!(left.len(), arrivals.len());
                assert_eq!(counters, Counters::default(), "nothing is dropped and nothing is left");
                left.iter().map(|(slot, _, _, deadline)| slot - deadline).max()
            };
            prop_assert!(latest(Order::Edf) <= latest(Order::Fifo), "EDF is optimal for packets of one length");
        }

        #[test]
        fn a_flow_stays_in_order_and_within_its_limit(arrivals in arrivals(), limit in 1..6u64, late: bool) {
            for order in [Order::Edf, Order::Fifo] {
                let (left, counters) = served(order, late, limit, &arrivals);
                for flow in 0..4 {
                    let of_flow: Vec<usize> = left.iter().filter(|l| l.1 == flow).map(|l| l.2).collect();
                    prop_assert!(of_flow.windows(2).all(|w| w[0] < w[1]));
                }
                let gone = counters.overflowed + counters.expired;
                prop_assert_eq!(left.len() as u64 + gone, arrivals.len() as u64, "every packet is accounted for");
                prop_assert_eq!((counters.waiting, counters.waiting_bytes), (0, 0));
                if late {
                    prop_assert!(left.iter().all(|(slot, _, _, deadline)| slot <= deadline), "who leaves is in time");
                } else {
                    prop_assert_eq!(counters.expired, 0);
                }
                if order == Order::Fifo {
                    prop_assert!(left.windows(2).all(|w| w[0].2 < w[1].2));
                }
            }
        }

        #[test]
        fn the_earliest_deadline_leaves_first(deadlines in proptest::collection::vec(0..50i64, 1..60)) {
            let mut queue = Queue::new(Order::Edf, false, 1000, None);
            for (arrival, at) in deadlines.iter().enumerate() {
                queue.push(0, *at, 1, (*at, arrival));
            }
            let left: Vec<_> = std::iter::from_fn(|| queue.pop(0)).map(|(_, packet)| packet).collect();
            let mut sorted = left.clone();
            sorted.sort_unstable();
            prop_assert_eq!(left, sorted);
        }
    }

    #[test]
    fn an_urgent_packet_overtakes_others() {
        let mut queue = Queue::new(Order::Edf, true, 2, None);
        for (flow, deadline_ns, packet) in [
            (1, 900, "a"),
            (1, 950, "b"),
            (1, 960, "c"),
            (2, 100, "urgent"),
            (2, 120, "late"),
        ] {
            queue.push(flow, deadline_ns, 1, packet);
        }
        assert_eq!(queue.pop(90), Some((1, "urgent")));
        assert_eq!(queue.pop(130), Some((1, "a")), "one was too late");
        let counters = queue.counters();
        assert_eq!(
            (counters.overflowed, counters.expired, counters.waiting),
            (1, 1, 1)
        );
    }

    #[test]
    fn early_drops_keep_a_long_queue_short_and_are_counted() {
        let settings = red::Settings {
            min_packets: 5.0,
            max_packets: 15.0,
            probability: 0.1,
            weight: 0.1,
            seed: 3,
        };
        let longest = |red| {
            let mut queue = Queue::new(Order::Fifo, false, 1000, red);
            let mut longest = 0;
            for slot in 0..2000 {
                for packet in 0..2 {
                    if !queue.drops_early(slot, 1) {
                        queue.push(1, slot, 1, packet);
                    }
                }
                longest = longest.max(queue.counters().waiting);
                queue.pop(slot);
            }
            (longest, queue.counters().early, queue.counters().overflowed)
        };
        let (longest_without, none, overflowed) = longest(None);
        assert_eq!((longest_without, none), (1000, 0));
        assert!(overflowed > 900, "two arrive where one leaves");
        let (longest_with, early, overflowed) = longest(Some(settings));
        assert!(longest_with < 40, "{longest_with}");
        assert_eq!(overflowed, 0);
        assert!((1900..2000).contains(&early), "{early}");
    }
}
