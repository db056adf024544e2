//! Accounts for every frame of a trial at the receiver: received once, duplicated, reordered, corrupted or
//! lost.

use super::frame;
use super::histogram::Histogram;
use serde_json::{Value, json};

pub struct Account {
    trial: u16,
    /// One bit for each frame of the trial, set once the frame has arrived.
    seen: Vec<u64>,
    count: u32,
    received: u64,
    duplicates: u64,
    reordered: u64,
    corrupted: u64,
    /// The number of frames that belong to another trial or have a number outside this trial.
    foreign: u64,
    /// Frames that seem to have arrived before they were sent, because the clocks of the nodes differ.
    early: u64,
    highest: Option<u32>,
    first_ns: i64,
    last_ns: i64,
    latency: Histogram,
    /// Latency of the tagged frame, number `count` / 2 (RFC 2544, 26.2); None before it arrives.
    tagged_ns: Option<i64>,
}

impl Account {
    /// Creates an account for frames 0 to `count` - 1 of a trial.
    pub fn new(trial: u16, count: u32) -> Self {
        Self {
            trial,
            seen: vec![0; count.div_ceil(64) as usize],
            count,
            received: 0,
            duplicates: 0,
            reordered: 0,
            corrupted: 0,
            foreign: 0,
            early: 0,
            highest: None,
            first_ns: 0,
            last_ns: 0,
            latency: Histogram::default(),
            tagged_ns: None,
        }
    }

    /// Counts a frame that arrived at `at_ns`: as corrupted without a valid stamp, as foreign with another
    /// trial or number, as duplicate if it arrived before, else as received. Only a received frame counts for
    /// reordering, times and latency.
    pub fn take(&mut self, at_ns: i64, bytes: &[u8]) {
        let Some(stamp) = frame::read(bytes) else {
            self.corrupted += 1;
            return;
        };
        if stamp.trial != self.trial || stamp.seq >= self.count {
            self.foreign += 1;
            return;
        }
        let (word, bit) = ((stamp.seq / 64) as usize, 1u64 << (stamp.seq % 64));
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.received += 1;
        if self.highest.is_some_and(|h| stamp.seq < h) {
            self.reordered += 1;
        }
        self.highest = self.highest.max(Some(stamp.seq));
        if self.received == 1 {
            self.first_ns = at_ns;
        }
        self.last_ns = at_ns;
        self.time(stamp, at_ns - stamp.sent_ns);
    }

    fn time(&mut self, stamp: frame::Stamp, latency_ns: i64) {
        if stamp.seq == self.count / 2 {
            self.tagged_ns = Some(latency_ns);
        }
        if latency_ns < 0 {
            self.early += 1;
        }
        self.latency.add(latency_ns.max(0) as u64);
    }

    /// Reduces the number of expected frames to `count`, the number of sent frames, if that is less.
    pub fn sent(&mut self, count: u32) {
        self.count = self.count.min(count);
    }

    /// Returns true if at least as many frames have arrived as are expected.
    pub fn complete(&self) -> bool {
        self.received >= u64::from(self.count)
    }

    /// Returns the counts and latencies as the fields of the answer to `collect`.
    pub fn report(&self) -> Value {
        json!({
            "received": self.received,
            "duplicates": self.duplicates,
            "reordered": self.reordered,
            "corrupted": self.corrupted,
            "foreign": self.foreign,
            "early": self.early,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "tagged_ns": self.tagged_ns,
            "latency": {
                "min_ns": self.latency.lowest_ns,
                "max_ns": self.latency.lowest_ns.map(|_| self.latency.highest_ns),
                "sum_ns": self.latency.sum_ns as f64,
                "buckets": self.latency.buckets(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Stamp;
    use proptest::prelude::*;

    fn bytes(trial: u16, seq: u32, sent_ns: i64) -> Vec<u8> {
        let mut bytes = frame::template(64, [2; 6], [4; 6]);
        frame::stamp(
            &mut bytes,
            Stamp {
                trial,
                seq,
                sent_ns,
            },
        );
        bytes
    }

    proptest! {
        #[test]
        fn every_arrival_counts_once(arrivals in proptest::collection::vec(0u32..150, 0..400)) {
            let mut account = Account::new(3, 100);
            for (i, seq) in arrivals.iter().enumerate() {
                account.take(1000 + i as i64, &bytes(3, *seq, i as i64));
            }
            let inside: std::collections::BTreeSet<_> = arrivals.iter().filter(|s| **s < 100).collect();
            let report = account.report();
            prop_assert_eq!(report["received"].as_u64(), Some(inside.len() as u64));
            let booked = ["received", "duplicates", "foreign", "corrupted"].map(|k| report[k].as_u64().unwrap_or(0));
            prop_assert_eq!(booked.iter().sum::<u64>(), arrivals.len() as u64);
            let firsts = arrivals.iter().enumerate().filter(|(i, s)| **s < 100 && !arrivals[..*i].contains(s));
            let mut highest = None;
            let late = firsts.filter(|(_, s)| { let late = highest > Some(**s); highest = highest.max(Some(**s)); late });
            prop_assert_eq!(report["reordered"].as_u64(), Some(late.count() as u64));
        }
    }

    #[test]
    fn other_trials_and_changed_frames_are_no_receptions() {
        let mut account = Account::new(3, 10);
        account.take(5, &bytes(4, 1, 0));
        let mut changed = bytes(3, 1, 0);
        changed[45] ^= 1;
        account.take(5, &changed);
        let report = account.report();
        assert_eq!(
            (
                &report["foreign"],
                &report["corrupted"],
                &report["received"]
            ),
            (&json!(1), &json!(1), &json!(0))
        );
        assert!(!account.complete());
    }

    #[test]
    fn the_frame_in_the_middle_is_tagged() {
        let mut account = Account::new(1, 11);
        for seq in 0..11 {
            account.take(100 + i64::from(seq) * 2, &bytes(1, seq, i64::from(seq)));
        }
        assert!(account.complete());
        assert_eq!(account.report()["tagged_ns"], json!(105));
        assert_eq!(account.report()["latency"]["max_ns"], json!(110));
    }
}
