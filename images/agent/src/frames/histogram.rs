//! Counts latencies in buckets whose width grows with the value. Adding a value takes constant time, so
//! that a million can be added in a second.

/// The number of buckets between a value and its double, which gives a relative resolution of 1/64.
const STEPS: usize = 64;
const BITS: u32 = STEPS.trailing_zeros();

#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    pub total: u64,
    pub sum_ns: i128,
    pub lowest_ns: Option<u64>,
    pub highest_ns: u64,
}

impl Histogram {
    pub fn add(&mut self, ns: u64) {
        let index = index(ns);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.sum_ns += i128::from(ns);
        self.lowest_ns = Some(self.lowest_ns.map_or(ns, |low| low.min(ns)));
        self.highest_ns = self.highest_ns.max(ns);
    }

    /// Returns the non-empty buckets: their smallest value, the first value above them, and the count.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        filled.map(|(i, n)| (low(i), low(i + 1), *n)).collect()
    }
}

fn index(ns: u64) -> usize {
    if ns < STEPS as u64 {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - BITS;
    (shift as usize) * STEPS + (ns >> shift) as usize
}

fn low(index: usize) -> u64 {
    if index < 2 * STEPS {
        return index as u64;
    }
    let shift = index / STEPS - 1;
    ((index % STEPS + STEPS) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_is_in_its_bucket(ns in 0u64..1 << 50) {
            let (from, to) = (low(index(ns)), low(index(ns) + 1));
            prop_assert!(from <= ns && ns < to);
            prop_assert!((to - from) as f64 <= (from as f64 / STEPS as f64).max(1.0));
        }

        #[test]
        fn counts_and_sums_are_those_of_the_values(values in proptest::collection::vec(0u64..1 << 40, 1..200)) {
            let mut h = Histogram::default();
            values.iter().for_each(|v| h.add(*v));
            prop_assert_eq!(h.buckets().iter().map(|b| b.2).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(h.sum_ns, values.iter().map(|v| i128::from(*v)).sum::<i128>());
            prop_assert_eq!(h.lowest_ns, values.iter().min().copied());
            prop_assert_eq!(Some(h.highest_ns), values.iter().max().copied());
        }
    }
}
