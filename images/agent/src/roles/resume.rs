//! Resumes a sender's schedule after its machine has restarted: decides which scheduled messages are still to
//! be sent.

use crate::proto::ResumePoint;

/// The treatment of a scheduled message after the restart.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message is sent.
    Send,
    /// The records already have the message's outcome.
    Recorded,
    /// The message was due before the machine ended and has no record, so its outcome is unknown.
    Unknown,
    /// The message fell due while the machine was off.
    Missed,
}

impl ResumePoint {
    /// Returns the fate of message `seq`, which was scheduled at `offset` from t0.
    pub fn fate(&self, seq: u64, offset: i64) -> Fate {
        if seq < self.next && !self.open.contains(&seq) {
            Fate::Recorded
        } else if offset < self.ended_ns {
            Fate::Unknown
        } else if offset < self.begins_ns {
            Fate::Missed
        } else {
            Fate::Send
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_one_fate() {
        let resume = ResumePoint {
            next: 5,
            open: vec![3],
            ended_ns: 700,
            begins_ns: 900,
        };
        let fates: Vec<Fate> = (0..10)
            .map(|seq| resume.fate(seq, seq as i64 * 100))
            .collect();
        use Fate::{Missed, Recorded, Send, Unknown};
        assert_eq!(
            fates,
            [
                Recorded, Recorded, Recorded, Unknown, Recorded, Unknown, Unknown, Missed, Missed,
                Send
            ]
        );
    }
}
