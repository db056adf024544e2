//! When a publisher sends: a pure function of (schedule, seed), asked for one tick after the other.
//!
//! Tick k of a stream stands at k / rate after the scenario's start (periodic) or at the k-th arrival of a
//! Poisson process that all clients draw alike. In a shared stream a hash of (seed, k) picks the one client that
//! sends it, so the clients' parts are disjoint and complete without a word between them.

use crate::proto::{Arrivals, Schedule, StreamKind};

/// Finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn draw(seed: u64, stream: u64, k: u64) -> u64 {
    mix(mix(seed ^ mix(stream)) ^ k)
}

/// The client that sends tick `k` of a shared stream.
pub fn owner(seed: u64, k: u64, count: u64) -> u64 {
    // The high half of a product instead of a remainder: no bias worth naming.
    ((u128::from(draw(seed, 1, k)) * u128::from(count.max(1))) >> 64) as u64
}

/// Uniform in (0, 1].
fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// The ticks of one client, in order; offsets in nanoseconds from the scenario's start.
pub struct Ticks {
    spec: Schedule,
    from_ns: i64,
    until_ns: i64,
    k: u64,
    poisson_s: f64,
    next: Option<i64>,
}

impl Ticks {
    /// Ticks in [from_ns, until_ns); those before belong to nobody.
    pub fn new(spec: Schedule, from_ns: i64, until_ns: i64) -> Self {
        let mut ticks = Self {
            spec,
            from_ns,
            until_ns,
            k: 0,
            poisson_s: 0.0,
            next: None,
        };
        ticks.skip_to_start();
        ticks.next = ticks.find();
        ticks
    }

    /// The next tick, without taking it.
    pub fn peek(&self) -> Option<i64> {
        self.next
    }

    /// Takes the next tick if it is due.
    pub fn take_due(&mut self, now_ns: i64) -> Option<i64> {
        let due = self.next.filter(|t| *t <= now_ns)?;
        self.next = self.find();
        Some(due)
    }

    /// No more ticks.
    pub fn stop(&mut self) {
        self.next = None;
        self.until_ns = i64::MIN;
    }

    /// Periodic ticks can be counted without walking through them.
    fn skip_to_start(&mut self) {
        if self.spec.arrivals == Arrivals::Periodic && self.from_ns > 0 {
            let k = self.from_ns as f64 / 1e9 * self.spec.rate_per_s;
            self.k = (k as u64).saturating_sub(2);
        }
    }

    fn find(&mut self) -> Option<i64> {
        if self.spec.rate_per_s <= 0.0 {
            return None;
        }
        loop {
            let at = self.step();
            if at >= self.until_ns {
                return None;
            }
            let mine = match self.spec.kind {
                StreamKind::Own => true,
                StreamKind::Shared => {
                    owner(self.spec.seed, self.k - 1, self.spec.count) == self.spec.index
                }
            };
            if mine && at >= self.from_ns {
                return Some(at);
            }
        }
    }

    /// Time of tick k, and on to the next k.
    fn step(&mut self) -> i64 {
        let k = self.k;
        self.k += 1;
        let seconds = match self.spec.arrivals {
            Arrivals::Periodic => (k as f64 + self.phase()) / self.spec.rate_per_s,
            Arrivals::Poisson => {
                self.poisson_s -=
                    unit(draw(self.spec.seed, self.stream(), k)).ln() / self.spec.rate_per_s;
                self.poisson_s
            }
        };
        (seconds * 1e9) as i64
    }

    /// A shared stream is one stream; clients of their own each have another.
    fn stream(&self) -> u64 {
        match self.spec.kind {
            StreamKind::Shared => 2,
            StreamKind::Own => 3 + self.spec.index,
        }
    }

    /// Clients with a rate of their own do not send in step.
    fn phase(&self) -> f64 {
        match self.spec.kind {
            StreamKind::Shared => 0.0,
            StreamKind::Own => 1.0 - unit(draw(self.spec.seed, 4, self.spec.index)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(
        kind: StreamKind,
        arrivals: Arrivals,
        rate: f64,
        seed: u64,
        index: u64,
        count: u64,
    ) -> Schedule {
        Schedule {
            kind,
            rate_per_s: rate,
            seed,
            index,
            count,
            arrivals,
        }
    }

    fn all(mut ticks: Ticks) -> Vec<i64> {
        std::iter::from_fn(|| ticks.take_due(i64::MAX)).collect()
    }

    #[test]
    fn periodic_stream_of_one_client_is_evenly_spaced() {
        let s = spec(StreamKind::Shared, Arrivals::Periodic, 100.0, 7, 0, 1);
        let got = all(Ticks::new(s, 0, 50_000_000));
        assert_eq!(got, [0, 10_000_000, 20_000_000, 30_000_000, 40_000_000]);
    }

    #[test]
    fn nothing_is_taken_before_it_is_due() {
        let s = spec(StreamKind::Shared, Arrivals::Periodic, 10.0, 7, 0, 1);
        let mut ticks = Ticks::new(s, 50_000_000, i64::MAX);
        assert_eq!(ticks.take_due(99_999_999), None);
        assert_eq!(ticks.take_due(100_000_000), Some(100_000_000));
        assert_eq!(ticks.peek(), Some(200_000_000));
        ticks.stop();
        assert_eq!(ticks.take_due(i64::MAX), None);
    }

    #[test]
    fn owners_are_spread_evenly() {
        let mut hits = [0u32; 10];
        (0..10_000).for_each(|k| hits[owner(42, k, 10) as usize] += 1);
        // 1000 expected each, standard deviation 30: five of them.
        assert!(hits.iter().all(|h| (850..=1150).contains(h)), "{hits:?}");
    }

    #[test]
    fn poisson_has_the_rate_and_the_spread_asked_for() {
        let s = spec(StreamKind::Own, Arrivals::Poisson, 100.0, 3, 5, 1);
        let got = all(Ticks::new(s, 0, 100_000_000_000));
        // 10,000 expected, standard deviation 100.
        assert!((9_500..=10_500).contains(&got.len()), "{}", got.len());
        let gaps: Vec<f64> = got.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!(
            (0.9..1.1).contains(&(var.sqrt() / mean)),
            "coefficient of variation {}",
            var.sqrt() / mean
        );
    }

    proptest! {
        #[test]
        fn shared_parts_are_disjoint_and_complete(
            seed: u64, count in 1u64..20, rate in 0.5f64..500.0, poisson: bool, until_ms in 1i64..3000,
        ) {
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Periodic };
            let until = until_ms * 1_000_000;
            let whole = all(Ticks::new(spec(StreamKind::Shared, arrivals, rate, seed, 0, 1), 0, until));
            let mut parts: Vec<i64> = (0..count)
                .flat_map(|i| all(Ticks::new(spec(StreamKind::Shared, arrivals, rate, seed, i, count), 0, until)))
                .collect();
            parts.sort_unstable();
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn a_late_client_has_the_ticks_of_an_early_one_from_then_on(
            seed: u64, index in 0u64..5, rate in 1.0f64..200.0, from_ms in 0i64..2000, own: bool, poisson: bool,
        ) {
            let kind = if own { StreamKind::Own } else { StreamKind::Shared };
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Periodic };
            let s = || spec(kind, arrivals, rate, seed, index, 5);
            let (from, until) = (from_ms * 1_000_000, 3_000_000_000);
            let late = all(Ticks::new(s(), from, until));
            let early: Vec<i64> = all(Ticks::new(s(), 0, until)).into_iter().filter(|t| *t >= from).collect();
            prop_assert_eq!(late, early);
        }

        #[test]
        fn own_rate_gives_the_expected_count(seed: u64, index: u64, rate in 1.0f64..100.0) {
            let got = all(Ticks::new(spec(StreamKind::Own, Arrivals::Periodic, rate, seed, index % 1000, 1), 0, 10_000_000_000));
            prop_assert!((got.len() as f64 - rate * 10.0).abs() <= 1.0, "{} at {}", got.len(), rate);
        }
    }
}
