//! A sender whose machine ended and began anew: the schedule goes on as if nothing had been, the books take up
//! where the records of the life before end.

use crate::proto::Earlier;

/// What is to be done with a scheduled message.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// This life sends it.
    Ours,
    /// It stands in the records.
    Recorded,
    /// It was on its way when the machine ended; nobody knows how far.
    Unknown,
    /// It was due while the machine was off.
    Missed,
}

impl Earlier {
    /// The fate of message `seq`, scheduled at `offset` from t0.
    pub fn fate(&self, seq: u64, offset: i64) -> Fate {
        if seq < self.next && !self.open.contains(&seq) {
            Fate::Recorded
        } else if offset < self.ended_ns {
            Fate::Unknown
        } else if offset < self.begins_ns {
            Fate::Missed
        } else {
            Fate::Ours
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_one_fate() {
        let earlier = Earlier {
            next: 5,
            open: vec![3],
            ended_ns: 700,
            begins_ns: 900,
        };
        let fates: Vec<Fate> = (0..10)
            .map(|seq| earlier.fate(seq, seq as i64 * 100))
            .collect();
        use Fate::{Missed, Ours, Recorded, Unknown};
        assert_eq!(
            fates,
            [
                Recorded, Recorded, Recorded, Unknown, Recorded, Unknown, Unknown, Missed, Missed,
                Ours
            ]
        );
    }
}
