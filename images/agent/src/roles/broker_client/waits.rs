//! Computes the waits before new attempts to connect: with a back-off they grow with each failed attempt, and
//! a seeded jitter spreads the clients.

use crate::schedule::uniform;
use serde::Deserialize;

const STREAM: u64 = 5; // stream of the seed's random numbers; the schedule has 1 to 4

/// The back-off in a client's `spec`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Backoff {
    /// The factor by which a wait is longer than the one before it.
    factor: f64,
    /// The longest wait, before the jitter.
    limit_ns: i64,
    /// Each wait is longer or shorter by up to this share.
    jitter: f64,
    seed: u64,
}

/// The waits of one client.
pub struct Waits {
    /// The wait after the loss of a connection; 0: never reconnect.
    first_ns: i64,
    backoff: Option<Backoff>,
    /// Number of waits since the last accepted login.
    attempts: i32,
    drawn: u64,
}

impl Waits {
    pub fn new(first_ns: i64, backoff: Option<Backoff>) -> Self {
        Self {
            first_ns,
            backoff,
            attempts: 0,
            drawn: 0,
        }
    }

    /// Returns the next wait in nanoseconds; None if the client never reconnects.
    pub fn take_next(&mut self) -> Option<i64> {
        if self.first_ns == 0 {
            return None;
        }
        let Some(backoff) = self.backoff else {
            return Some(self.first_ns);
        };
        let grown = self.first_ns as f64 * backoff.factor.powi(self.attempts);
        let wait = grown.min(backoff.limit_ns as f64);
        let side = 2.0 * uniform(backoff.seed, STREAM, self.drawn) - 1.0;
        self.attempts = self.attempts.saturating_add(1);
        self.drawn += 1;
        Some((wait * (1.0 + backoff.jitter * side)) as i64)
    }

    /// Makes the next wait the shortest again, since the broker has accepted the login.
    pub fn accepted(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn waits(jitter: f64, seed: u64) -> Waits {
        let backoff = Backoff {
            factor: 2.0,
            limit_ns: 5 * SECOND,
            jitter,
            seed,
        };
        Waits::new(SECOND, Some(backoff))
    }

    fn take(waits: &mut Waits, count: usize) -> Vec<i64> {
        (0..count).filter_map(|_| waits.take_next()).collect()
    }

    #[test]
    fn waits_double_up_to_the_limit_and_start_again_after_a_login() {
        let mut waits = waits(0.0, 1);
        let seconds: Vec<i64> = take(&mut waits, 5).iter().map(|w| w / SECOND).collect();
        assert_eq!(seconds, [1, 2, 4, 5, 5]);
        waits.accepted();
        assert_eq!(waits.take_next(), Some(SECOND));
        assert_eq!(take(&mut waits, 10_000).last(), Some(&(5 * SECOND)));
    }

    #[test]
    fn jitter_is_the_seeds_and_within_its_share() {
        let ours = take(&mut waits(0.2, 7), 200);
        assert_eq!(ours, take(&mut waits(0.2, 7), 200));
        assert_ne!(ours, take(&mut waits(0.2, 8), 200));
        let bounds = 4 * SECOND..=6 * SECOND;
        assert!(
            ours[3..].iter().all(|wait| bounds.contains(wait)),
            "{ours:?}"
        );
        let shorter = ours[3..].iter().filter(|wait| **wait < 5 * SECOND).count();
        assert!(
            (60..140).contains(&shorter),
            "{shorter} of 197 waits are shorter"
        );
    }

    #[test]
    fn without_a_backoff_all_waits_are_equal_and_zero_is_never() {
        assert_eq!(take(&mut Waits::new(SECOND, None), 3), [SECOND; 3]);
        assert_eq!(Waits::new(0, None).take_next(), None);
    }
}
