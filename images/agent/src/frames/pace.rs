//! Computes which frames of an open-loop trial are due, regardless of when earlier ones were sent.

/// The times at which the frames of a trial are due, as a pure function of the elapsed time.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Frames per second; None: back to back, all due at once.
    rate_fps: Option<f64>,
    count: u32,
}

impl Pace {
    pub fn new(rate_fps: f64, count: u32) -> Self {
        let rate_fps = (rate_fps > 0.0).then_some(rate_fps);
        Self { rate_fps, count }
    }

    /// Returns the number of frames, the first included, that are due `passed_ns` after the first; at most
    /// the frames of the trial.
    pub fn due(&self, passed_ns: i64) -> u32 {
        let Some(rate) = self.rate_fps else {
            return self.count;
        };
        let due = (passed_ns.max(0) as f64 * rate / 1e9).floor() + 1.0;
        due.min(f64::from(self.count)) as u32
    }

    /// Returns the time at which frame `seq` is due, in nanoseconds after the first; 0 if back to back.
    pub fn at_ns(&self, seq: u32) -> i64 {
        self.rate_fps
            .map_or(0, |rate| (f64::from(seq) * 1e9 / rate).ceil() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_is_due_at_its_time_and_not_much_before(rate in 1.0f64..2e7, seq in 0u32..100_000_000) {
            let pace = Pace::new(rate, u32::MAX);
            let at = pace.at_ns(seq);
            prop_assert!(pace.due(at) > seq);
            if at > 2 {
                prop_assert!(pace.due(at - 2) <= seq);
            }
        }
    }

    #[test]
    fn no_more_than_there_are() {
        assert_eq!(Pace::new(1e6, 10).due(i64::MAX / 4), 10);
        assert_eq!(Pace::new(0.0, 10).due(0), 10);
        assert_eq!(Pace::new(100.0, 10).due(0), 1);
    }
}
