//! The retransmission curve of a state: soon after a change, then at growing intervals (IEC 61850-8-1, 18.1.2.5).

use crate::os::Res;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Curve {
    /// Intervals after a change, in order: T1, T1, T2, T3 ...
    pub retransmit_ns: Vec<i64>,
    /// The interval from then on: T0.
    pub stable_ns: i64,
    /// The messages' timeAllowedToLive; 0: twice the interval to the next message.
    pub time_allowed_to_live_ms: u32,
}

impl Curve {
    pub fn check(&self) -> Res<()> {
        match self
            .retransmit_ns
            .iter()
            .chain([&self.stable_ns])
            .find(|wait| **wait <= 0)
        {
            Some(wait) => Err(format!(
                "spec: an interval of {wait} ns is too short; write more than 0"
            )),
            None => Ok(()),
        }
    }

    /// The interval after message number `copies` since the change.
    pub fn wait_ns(&self, copies: usize) -> i64 {
        self.retransmit_ns
            .get(copies)
            .copied()
            .unwrap_or(self.stable_ns)
    }

    /// timeAllowedToLive of a message, in milliseconds.
    pub fn lives_ms(&self, copies: usize) -> u32 {
        if self.time_allowed_to_live_ms != 0 {
            return self.time_allowed_to_live_ms;
        }
        let twice = 2 * self.wait_ns(copies);
        u32::try_from(twice.unsigned_abs().div_ceil(1_000_000)).unwrap_or(u32::MAX)
    }

    /// Whether the curve is complete after this many messages.
    pub fn is_over(&self, messages: usize) -> bool {
        messages > self.retransmit_ns.len()
    }
}
