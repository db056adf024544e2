//! Determines a frame's number in its stream: smpCnt alone gives only the frame's place within a second.

/// After a silence of at least this length, the clock determines the second of a frame; otherwise the
/// previous frames do.
const SILENCE_NS: i64 = 500_000_000;
/// The longest time by which a frame may seem to arrive before it was sent, since clocks differ.
const AHEAD_NS: i64 = 100_000_000;
/// The lowest rate, in frames a second, at which the previous frames determine the second of a frame. At a
/// lower rate a frame's place in its second does not distinguish the next frame from a copy of the last
/// one, so the clock alone determines the second.
const FEWEST: u64 = 4;

pub struct Counting {
    frames_per_s: u64,
    /// The number of the newest frame, and its arrival time.
    newest: Option<(u64, i64)>,
}

impl Counting {
    pub fn new(frames_per_s: u64) -> Self {
        Self {
            frames_per_s,
            newest: None,
        }
    }

    /// Returns a frame's number in its stream. `at_ns` is its arrival after the stream's start, and `place`
    /// its number within its second. Returns None if the stream cannot have sent the frame yet. Without a
    /// silence before the frame, the number is the one nearest to the newest frame's, so delays may exceed a
    /// second. After a silence it is the highest number that can have been sent, so numbers stay right after
    /// an outage of any length.
    pub fn number(&mut self, place: u64, at_ns: i64) -> Option<u64> {
        let fps = self.frames_per_s;
        let flowing = self
            .newest
            .filter(|(_, at)| fps >= FEWEST && at_ns - at < SILENCE_NS);
        let number = match flowing {
            Some((newest, _)) => {
                let ahead = (place + fps - newest % fps) % fps;
                if ahead <= fps / 2 {
                    newest + ahead
                } else {
                    (newest + ahead).checked_sub(fps)?
                }
            }
            None => {
                let ticks =
                    i128::from(at_ns.checked_add(AHEAD_NS)?) * i128::from(fps) / 1_000_000_000;
                let sent = u64::try_from(ticks).ok()?;
                sent.checked_sub((sent % fps + fps - place) % fps)?
            }
        };
        self.newest = Some((self.newest.map_or(number, |(n, _)| n.max(number)), at_ns));
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    /// Checks that frames get their numbers if each frame has a delay of its own.
    fn counted(
        fps: u64,
        frames: impl Iterator<Item = (u64, i64)>,
    ) -> Result<(), (u64, Option<u64>)> {
        let mut counting = Counting::new(fps);
        for (seq, delay_ns) in frames {
            let at = (seq as i128 * i128::from(SECOND) / i128::from(fps)) as i64 + delay_ns;
            let found = counting.number(seq % fps, at);
            if found != Some(seq) {
                return Err((seq, found));
            }
        }
        Ok(())
    }

    #[test]
    fn a_delay_may_grow_beyond_a_second() {
        let grows = (0..20_000u64).map(|seq| (seq, seq as i64 * 200_000)); // up to 4 s
        assert_eq!(counted(4000, grows), Ok(()));
    }

    #[test]
    fn no_frame_precedes_the_beginning() {
        assert_eq!(Counting::new(4000).number(3999, 0), None);
        assert_eq!(Counting::new(4000).number(0, -SECOND), None);
    }

    #[test]
    fn a_copy_has_its_original_s_number() {
        let mut counting = Counting::new(4000);
        for at in [0, 1000] {
            assert_eq!(counting.number(7, SECOND + at), Some(4007));
        }
    }

    proptest! {
        #[test]
        fn any_outage_loses_no_count(
            fps in 1u64..15_000, outage_s in 0u64..100_000, more in 0u64..15_000, delay_ns in 0i64..900_000_000,
        ) {
            let after = 2 * fps + outage_s * fps + more;
            let frames = (0..2 * fps).step_by((fps as usize / 50).max(1)).chain(after..after + 3);
            prop_assert_eq!(counted(fps, frames.map(|seq| (seq, delay_ns))), Ok(()));
        }

        #[test]
        fn frames_may_overtake_one_another(
            fps in 100u64..15_000, delays in proptest::collection::vec(0i64..200_000_000, 500),
        ) {
            let mut frames: Vec<(i64, u64, i64)> = delays.iter().zip(0u64..)
                .map(|(delay, seq)| (seq as i64 * SECOND / fps as i64 + delay, seq, *delay)).collect();
            frames.sort_unstable();
            prop_assert_eq!(counted(fps, frames.into_iter().map(|(_, seq, delay)| (seq, delay))), Ok(()));
        }
    }
}
