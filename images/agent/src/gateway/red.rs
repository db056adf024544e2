//! Implements random early detection (Floyd and Jacobson 1993): drops arriving packets with a probability
//! that rises with the mean queue length. It reads no clock: times are arguments.

use crate::schedule;
use serde::Deserialize;

/// The stream of the seed's random numbers.
const STREAM: u64 = 1;

#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The mean number of waiting packets from which packets are dropped.
    pub min_packets: f64,
    /// The mean number of waiting packets from which all packets are dropped.
    pub max_packets: f64,
    /// The probability of a drop where the mean reaches `max_packets`.
    pub probability: f64,
    /// The weight of the present queue in the mean.
    pub weight: f64,
    pub seed: u64,
}

pub struct Red {
    settings: Settings,
    average: f64,
    /// Packets since the last drop, while the mean is between the thresholds.
    since_drop: u64,
    /// The time at which the queue became empty; None while packets wait.
    empty_ns: Option<i64>,
    arrivals: u64,
}

impl Red {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            average: 0.0,
            since_drop: 0,
            empty_ns: Some(0),
            arrivals: 0,
        }
    }

    /// Notes that the last waiting packet has left.
    pub fn emptied(&mut self, now_ns: i64) {
        self.empty_ns.get_or_insert(now_ns);
    }

    /// Returns whether to drop a packet that arrives while `waiting` others wait. `packet_ns` is the time
    /// that sending this packet takes: while the queue was empty, the mean fell as if such packets had passed.
    pub fn drops(&mut self, waiting: u64, now_ns: i64, packet_ns: i64) -> bool {
        let Settings {
            min_packets: min,
            max_packets: max,
            probability,
            weight,
            seed,
        } = self.settings;
        if let Some(since) = self.empty_ns.take().filter(|_| waiting == 0) {
            let passed = (now_ns - since).max(0) as f64 / packet_ns.max(1) as f64;
            self.average *= (1.0 - weight).powf(passed);
        } else {
            self.average += weight * (waiting as f64 - self.average);
        }
        self.arrivals += 1;
        if self.average < min {
            self.since_drop = 0;
            return false;
        }
        self.since_drop += 1;
        let raw = probability * (self.average - min) / (max - min);
        let spread = raw / (1.0 - (self.since_drop - 1) as f64 * raw);
        let certain = self.average >= max || !(0.0..1.0).contains(&spread);
        let dropped = certain || schedule::uniform(seed, STREAM, self.arrivals) <= spread;
        if dropped {
            self.since_drop = 0;
            if waiting == 0 {
                self.empty_ns = Some(now_ns);
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(weight: f64) -> Red {
        Red::new(Settings {
            min_packets: 5.0,
            max_packets: 15.0,
            probability: 0.1,
            weight,
            seed: 7,
        })
    }

    fn dropped(waiting: u64, arrivals: usize) -> usize {
        let mut red = red(1.0);
        (0..arrivals).filter(|_| red.drops(waiting, 0, 1)).count()
    }

    #[test]
    fn drops_begin_at_the_lower_threshold_and_are_certain_at_the_upper_one() {
        assert_eq!(dropped(4, 1000), 0);
        assert_eq!(dropped(15, 1000), 1000);
    }

    #[test]
    fn the_share_of_drops_is_that_of_the_paper() {
        // Drops are spread evenly: with the raw probability p the distance is uniform on 1 to 1/p, so its
        // mean is (1 + 1/p) / 2.
        for (waiting, raw) in [(10, 0.05), (14, 0.09)] {
            let distance = 20_000.0 / dropped(waiting, 20_000) as f64;
            let wanted = (1.0 + 1.0 / raw) / 2.0;
            assert!(
                (distance / wanted - 1.0).abs() < 0.05,
                "{waiting}: {distance} against {wanted}"
            );
        }
    }

    #[test]
    fn the_mean_follows_slowly_and_a_burst_passes() {
        let mut red = red(0.002);
        assert!(
            (0..20).all(|waiting| !red.drops(waiting, 0, 1)),
            "the mean is still below"
        );
        assert!(red.average > 0.0 && red.average < 1.0);
    }

    #[test]
    fn the_mean_falls_while_the_queue_is_empty() {
        let mut red = red(0.1);
        for _ in 0..100 {
            red.drops(12, 0, 1_000_000);
        }
        assert!(red.average > 11.9);
        red.emptied(5_000_000);
        red.emptied(9_000_000);
        assert!(!red.drops(0, 25_000_000, 1_000_000));
        let wanted = 12.0 * 0.9f64.powi(20);
        assert!(
            (red.average - wanted).abs() < 0.01,
            "20 packets from the first of both"
        );
    }

    #[test]
    fn equal_seeds_drop_the_same_packets() {
        let of = |seed| {
            let mut red = red(1.0);
            red.settings.seed = seed;
            (0..200).map(|_| red.drops(12, 0, 1)).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
