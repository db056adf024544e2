//! Draws how long connections last, for clients that come and go at times drawn by a seed of their own.

use crate::schedule::uniform;
use serde::Deserialize;

const STREAM: u64 = 6; // stream of the seed's random numbers; waits have 5

/// The settings of a client that comes and goes, in its `spec`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Lives {
    /// The mean time from an accepted login to the planned end of the connection.
    mean_ns: i64,
    /// True if the times are exponentially distributed; false if each is the mean.
    drawn: bool,
    /// The time from a planned end to the next attempt to connect.
    away_ns: i64,
    /// The share of connections that end without the protocol's last message (DISCONNECT).
    abrupt: f64,
    seed: u64,
}

/// The planned end of one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct End {
    pub at_ns: i64,
    pub abrupt: bool,
    /// The time after the end at which the client connects again.
    pub away_ns: i64,
}

/// The connections of one client, one after the other.
pub struct Churn {
    lives: Lives,
    count: u64,
}

impl Churn {
    pub fn new(lives: Lives) -> Self {
        Self { lives, count: 0 }
    }

    /// Returns the planned end of a connection whose login was accepted at `now`.
    pub fn take_next(&mut self, now: i64) -> End {
        let Lives {
            mean_ns,
            drawn,
            away_ns,
            abrupt,
            seed,
        } = self.lives;
        let draw = |place: u64| uniform(seed, STREAM, 2 * self.count + place);
        let lasts = if drawn {
            -(1.0 - draw(0)).ln() * mean_ns as f64
        } else {
            mean_ns as f64
        };
        let end = End {
            at_ns: now + (lasts as i64).max(1),
            abrupt: draw(1) < abrupt,
            away_ns,
        };
        self.count += 1;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn ends(drawn: bool, abrupt: f64, seed: u64, count: usize) -> Vec<End> {
        let lives = Lives {
            mean_ns: 10 * SECOND,
            drawn,
            away_ns: SECOND,
            abrupt,
            seed,
        };
        let mut churn = Churn::new(lives);
        (0..count).map(|_| churn.take_next(0)).collect()
    }

    #[test]
    fn drawn_lives_are_the_seeds_and_have_their_mean() {
        let ours = ends(true, 0.25, 7, 10_000);
        assert_eq!(ours, ends(true, 0.25, 7, 10_000));
        assert_ne!(ours, ends(true, 0.25, 8, 10_000));
        let mean = ours.iter().map(|end| end.at_ns as f64).sum::<f64>() / 1e4;
        assert!((mean / SECOND as f64 - 10.0).abs() < 0.4, "{mean}");
        let longer = ours.iter().filter(|end| end.at_ns > 10 * SECOND).count();
        assert!(
            (3_400..3_960).contains(&longer),
            "{longer}: exponential has 3,679"
        );
        let abrupt = ours.iter().filter(|end| end.abrupt).count();
        assert!((2_300..2_700).contains(&abrupt), "{abrupt}");
    }

    #[test]
    fn lives_that_are_not_drawn_are_equal() {
        let ours = ends(false, 0.0, 7, 5);
        assert!(
            ours.iter()
                .all(|end| end.at_ns == 10 * SECOND && !end.abrupt)
        );
        assert!(ends(false, 1.0, 7, 5).iter().all(|end| end.abrupt));
    }
}
