//! Implements the receive queues of a station: one for each priority. One of three algorithms selects the
//! next frame ("Multiple Receive Queues and Adjustable Priority" in a paper on switched Ethernet in
//! substations). It reads no clock and no device.

use serde::Deserialize;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// All frames share one queue, as without priorities.
    One,
    /// Algorithm A takes the first frame of the highest queue that is not empty.
    Strict,
    /// Algorithm B works as A; in addition, after `promote_after` frames the first frame of each queue moves
    /// up by one queue.
    Promoting,
    /// Algorithm C takes one frame of the highest lower queue that is not empty after each frame of the
    /// highest queue; otherwise it takes only frames of the highest queue.
    Alternating,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub arrived: u64,
    pub dropped: u64,
    pub taken: u64,
    /// The number of moves of frames to the next higher queue.
    pub promoted: u64,
}

pub struct Queues<P> {
    algorithm: Algorithm,
    promote_after: u32,
    /// The most frames of each queue; promoted frames do not count.
    limit: usize,
    /// The highest first.
    queues: Vec<VecDeque<P>>,
    /// The number of frames taken since the last promotion.
    since: u32,
    /// The flag LOW of algorithm C.
    low: bool,
    counters: Counters,
}

impl<P> Queues<P> {
    /// Returns empty queues; `count` is their number, at least 1.
    pub fn new(algorithm: Algorithm, promote_after: u32, limit: usize, count: usize) -> Self {
        let count = if algorithm == Algorithm::One {
            1
        } else {
            count
        };
        Self {
            algorithm,
            promote_after,
            limit,
            queues: (0..count.max(1)).map(|_| VecDeque::new()).collect(),
            since: 0,
            low: false,
            counters: Counters::default(),
        }
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Adds a frame to queue `place` (0 is the highest), or drops and counts it if that queue is full.
    pub fn push(&mut self, place: usize, frame: P) {
        self.counters.arrived += 1;
        let last = self.queues.len() - 1;
        let queue = &mut self.queues[place.min(last)];
        if queue.len() < self.limit {
            queue.push_back(frame);
        } else {
            self.counters.dropped += 1;
        }
    }

    /// Takes the next frame; None if the algorithm selects no frame. With algorithm C that is possible while
    /// frames wait in lower queues.
    pub fn pop(&mut self) -> Option<P> {
        if self.algorithm == Algorithm::Promoting && self.since >= self.promote_after {
            self.since = 0;
            self.promote();
        }
        let highest = self.queues.iter().position(|queue| !queue.is_empty())?;
        if self.algorithm == Algorithm::Alternating {
            if self.low {
                self.low = false;
            } else if highest == 0 {
                self.low = true;
            } else {
                return None;
            }
        }
        self.since += 1;
        self.counters.taken += 1;
        self.queues[highest].pop_front()
    }

    /// Moves the first frame of each queue to the end of the next higher queue; each frame moves by one queue
    /// at most.
    fn promote(&mut self) {
        for place in 1..self.queues.len() {
            if let Some(frame) = self.queues[place].pop_front() {
                self.queues[place - 1].push_back(frame);
                self.counters.promoted += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the order in which the frames of three queues leave; a frame is (queue, number).
    fn order(
        algorithm: Algorithm,
        promote_after: u32,
        of_queues: [usize; 3],
    ) -> Vec<(usize, usize)> {
        let mut queues = Queues::new(algorithm, promote_after, 1000, 3);
        for (place, count) in of_queues.into_iter().enumerate() {
            (0..count).for_each(|number| queues.push(place, (place, number)));
        }
        std::iter::from_fn(|| queues.pop()).collect()
    }

    #[test]
    fn a_takes_the_highest_first() {
        let left = order(Algorithm::Strict, 1, [2, 1, 2]);
        assert_eq!(left, [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]);
    }

    #[test]
    fn b_lets_each_queue_rise_after_a_number_of_frames() {
        let left = order(Algorithm::Promoting, 2, [4, 2, 2]);
        // After two frames (1,0) moves behind the other frames of queue 0, and (2,0) to the end of queue 1.
        // After two more, (1,1) and (2,1) move up, and then (2,0).
        assert_eq!(
            left,
            [
                (0, 0),
                (0, 1),
                (0, 2),
                (0, 3),
                (1, 0),
                (1, 1),
                (2, 0),
                (2, 1)
            ]
        );
        let mut queues = Queues::new(Algorithm::Promoting, 2, 1000, 2);
        let mut left = Vec::new();
        queues.push(1, "low");
        for _ in 0..8 {
            queues.push(0, "high");
            queues.push(0, "high");
            left.extend(queues.pop());
        }
        assert!(
            left.contains(&"low"),
            "a flood does not keep it for ever: {left:?}"
        );
        assert_eq!(queues.counters().promoted, 1);
    }

    #[test]
    fn c_takes_one_more_after_each_of_the_highest() {
        assert_eq!(
            order(Algorithm::Alternating, 1, [1, 2, 1]),
            [(0, 0), (1, 0)],
            "then it waits for the highest queue"
        );
        assert_eq!(
            order(Algorithm::Alternating, 1, [3, 2, 0]),
            [(0, 0), (0, 1), (0, 2), (1, 0)],
            "the one more is of the highest that is not empty"
        );
        let mut queues = Queues::new(Algorithm::Alternating, 1, 10, 2);
        queues.push(1, "low");
        assert_eq!(queues.pop(), None);
        queues.push(0, "high");
        assert_eq!(
            (queues.pop(), queues.pop(), queues.pop()),
            (Some("high"), Some("low"), None)
        );
        queues.push(0, "high");
        assert_eq!(
            (queues.pop(), queues.pop()),
            (Some("high"), None),
            "nothing waits"
        );
        queues.push(1, "low");
        assert_eq!(
            queues.pop(),
            Some("low"),
            "the flag stands until a frame comes"
        );
    }

    #[test]
    fn one_queue_keeps_the_order_of_arrival() {
        let mut queues = Queues::new(Algorithm::One, 1, 2, 3);
        queues.push(2, "first");
        queues.push(0, "second");
        queues.push(0, "too many");
        assert_eq!(
            (queues.pop(), queues.pop(), queues.pop()),
            (Some("first"), Some("second"), None)
        );
        assert_eq!(queues.counters().dropped, 1);
    }

    proptest! {
        #[test]
        fn every_frame_is_accounted_for_and_queues_keep_their_order(
            arrivals in proptest::collection::vec((0..3usize, any::<bool>()), 0..200),
            kind in 0..4u8,
            limit in 1..20usize,
        ) {
            let algorithm = [Algorithm::One, Algorithm::Strict, Algorithm::Promoting, Algorithm::Alternating];
            let mut queues = Queues::new(algorithm[usize::from(kind)], 3, limit, 3);
            let mut left = Vec::new();
            for (number, (place, served)) in arrivals.iter().enumerate() {
                queues.push(*place, (*place, number));
                if *served {
                    left.extend(queues.pop());
                }
            }
            left.extend(std::iter::from_fn(|| queues.pop()));
            let counters = queues.counters();
            prop_assert_eq!(counters.taken, left.len() as u64);
            prop_assert_eq!(counters.arrived, counters.taken + counters.dropped + queues.waiting() as u64);
            for place in 0..3 {
                let of: Vec<usize> = left.iter().filter(|l| l.0 == place).map(|l| l.1).collect();
                prop_assert!(of.windows(2).all(|w| w[0] < w[1]), "of one priority in order");
            }
            if algorithm[usize::from(kind)] != Algorithm::Alternating {
                prop_assert_eq!(queues.waiting(), 0);
            }
        }
    }
}
