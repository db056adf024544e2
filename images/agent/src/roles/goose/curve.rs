//! Computes the retransmission curve of a GOOSE state: retransmissions follow soon after a change, then at
//! growing intervals (IEC 61850-8-1, 18.1.2.5).

use crate::os::Res;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Curve {
    /// The intervals after a change, in order. The standard names them T1, T1, T2, T3 ...
    pub retransmit_ns: Vec<i64>,
    /// The interval between messages after the last of `retransmit_ns`. The standard names it T0.
    pub stable_ns: i64,
    /// The field timeAllowedToLive of messages; 0: twice the interval to the next message.
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

    /// Returns the interval after the message with number `copies` (from 0) since the change.
    pub fn wait_ns(&self, copies: usize) -> i64 {
        self.retransmit_ns
            .get(copies)
            .copied()
            .unwrap_or(self.stable_ns)
    }

    /// Returns timeAllowedToLive of the message with number `copies` (from 0) since the change, in
    /// milliseconds: the configured one, or twice the interval after that message, rounded up.
    pub fn lives_ms(&self, copies: usize) -> u32 {
        if self.time_allowed_to_live_ms != 0 {
            return self.time_allowed_to_live_ms;
        }
        let twice = 2 * self.wait_ns(copies);
        u32::try_from(twice.unsigned_abs().div_ceil(1_000_000)).unwrap_or(u32::MAX)
    }

    /// Returns whether the curve is complete after this many messages, so that the stable interval applies.
    pub fn is_over(&self, messages: usize) -> bool {
        messages > self.retransmit_ns.len()
    }
}
