//! Implements the transmit queues of a station: a hardware queue, and a software queue before it for frames
//! of low priority ("Implementing Multiple Transmit Queues" in a paper on switched Ethernet in substations).
//! It reads no clock and no device.

use serde::Deserialize;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// All frames go into the hardware queue, first come, first served, as with a standard driver.
    Direct,
    /// A frame of the software queue moves to the hardware queue whenever that is empty ("moderate").
    WhenEmpty,
    /// A frame of the software queue moves whenever a frame of high priority has been placed in the hardware
    /// queue ("strict").
    AfterHigh,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub arrived: u64,
    pub dropped: u64,
    pub sent: u64,
    /// The number of moves of frames from the software queue to the hardware queue.
    pub moved: u64,
}

pub struct Queues<P> {
    policy: Policy,
    /// The most frames of each of the two queues; moved frames do not count.
    limit: usize,
    hardware: VecDeque<P>,
    software: VecDeque<P>,
    counters: Counters,
}

impl<P> Queues<P> {
    pub fn new(policy: Policy, limit: usize) -> Self {
        Self {
            policy,
            limit,
            hardware: VecDeque::new(),
            software: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub fn waiting(&self) -> usize {
        self.hardware.len() + self.software.len()
    }

    /// Adds a frame, or drops and counts it if its queue is full.
    pub fn push(&mut self, high: bool, frame: P) {
        self.counters.arrived += 1;
        let direct = high || self.policy == Policy::Direct;
        let queue = if direct {
            &mut self.hardware
        } else {
            &mut self.software
        };
        if queue.len() >= self.limit {
            self.counters.dropped += 1;
            return;
        }
        queue.push_back(frame);
        if high && self.policy == Policy::AfterHigh {
            self.advance();
        }
    }

    /// Takes the next frame to send, when the last frame is on the wire; None if the policy selects no frame.
    /// With `AfterHigh` that is possible while frames of low priority wait.
    pub fn pop(&mut self) -> Option<P> {
        if self.hardware.is_empty() && self.policy == Policy::WhenEmpty {
            self.advance();
        }
        let frame = self.hardware.pop_front()?;
        self.counters.sent += 1;
        Some(frame)
    }

    fn advance(&mut self) {
        if let Some(frame) = self.software.pop_front() {
            self.hardware.push_back(frame);
            self.counters.moved += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the frames in the order in which they are sent, if all arrive at once; "h" frames have high
    /// priority.
    fn order(policy: Policy, frames: &str) -> String {
        let mut queues = Queues::new(policy, 100);
        for (number, frame) in frames.chars().enumerate() {
            queues.push(frame == 'h', format!("{frame}{number}"));
        }
        std::iter::from_fn(|| queues.pop()).collect()
    }

    #[test]
    fn a_standard_driver_is_fair() {
        assert_eq!(order(Policy::Direct, "llhl"), "l0l1h2l3");
    }

    #[test]
    fn low_frames_move_when_the_hardware_queue_is_empty() {
        assert_eq!(order(Policy::WhenEmpty, "llhlh"), "h2h4l0l1l3");
    }

    #[test]
    fn one_low_frame_moves_behind_each_high_one() {
        assert_eq!(
            order(Policy::AfterHigh, "llhlhl"),
            "h2l0h4l1",
            "two more wait for a high one"
        );
        assert_eq!(order(Policy::AfterHigh, "lll"), "");
        assert_eq!(
            order(Policy::AfterHigh, "hl"),
            "h0",
            "it came after the high one"
        );
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let mut queues = Queues::new(Policy::WhenEmpty, 2);
        (0..3).for_each(|number| queues.push(false, number));
        (3..6).for_each(|number| queues.push(true, number));
        assert_eq!((queues.counters().dropped, queues.waiting()), (2, 4));
    }

    proptest! {
        #[test]
        fn every_frame_is_accounted_for_and_each_priority_keeps_its_order(
            arrivals in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..200),
            strict: bool,
        ) {
            let policy = if strict { Policy::AfterHigh } else { Policy::WhenEmpty };
            let mut queues = Queues::new(policy, 1000);
            let mut left = Vec::new();
            for (number, (high, served)) in arrivals.iter().enumerate() {
                queues.push(*high, (*high, number));
                if *served {
                    left.extend(queues.pop());
                }
            }
            left.extend(std::iter::from_fn(|| queues.pop()));
            let counters = queues.counters();
            prop_assert_eq!(counters.arrived, counters.sent + counters.dropped + queues.waiting() as u64);
            for class in [true, false] {
                let of: Vec<usize> = left.iter().filter(|l| l.0 == class).map(|l| l.1).collect();
                prop_assert!(of.windows(2).all(|w| w[0] < w[1]), "of one priority in order");
            }
            if strict {
                let highs = left.iter().filter(|l| l.0).count();
                prop_assert!(left.len() - highs <= highs, "one low frame for each high one");
            } else {
                prop_assert_eq!(queues.waiting(), 0);
            }
        }
    }
}
