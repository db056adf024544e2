//! Computes when a sender sends: a pure function of (schedule, seed), which yields one tick after another. A
//! tick is a moment at which one message or one burst is due.
//!
//! The integral of the rate from the scenario's start gives the expected number of ticks. Tick k of a stream
//! falls where that integral reaches k plus the sender's phase (periodic), k (together), or the k-th arrival
//! of a unit-rate Poisson process. Senders with a rate of their own draw different processes and phases. The
//! senders of a shared stream draw the same process, and a hash of (seed, k) selects the sender of tick k,
//! so their parts are disjoint and complete without communication.

mod pieces;

use crate::os::Res;
use crate::proto::{Arrivals, Schedule, StreamKind};
use pieces::Pieces;

/// Mixes the bits of a number by the finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit
/// affects every output bit.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn draw(seed: u64, stream: u64, k: u64) -> u64 {
    mix(mix(seed ^ mix(stream)) ^ k)
}

/// Returns the index of the sender of tick `k` of a shared stream, in 0 to `count` - 1.
pub fn owner(seed: u64, k: u64, count: u64) -> u64 {
    // The high half of a product has a negligible bias, in contrast to a remainder.
    ((u128::from(draw(seed, 1, k)) * u128::from(count.max(1))) >> 64) as u64
}

/// Converts random bits to a number that is uniform in (0, 1].
fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Returns number `k` of a stream of random numbers, uniform in (0, 1]; equal arguments give equal numbers.
pub fn uniform(seed: u64, stream: u64, k: u64) -> f64 {
    unit(draw(seed, stream, k))
}

/// Returns an error for a burst of 0, and for rates that are out of range or do not begin at 0 in order of
/// time.
pub fn check(schedule: &Schedule) -> Res<()> {
    if schedule.burst == 0 {
        return Err("schedule.burst: 0 messages per tick send nothing; write 1 or more".to_owned());
    }
    pieces::check(&schedule.rates)
}

/// The ticks of one sender, in order, as nanoseconds from the scenario's start.
pub struct Ticks {
    spec: Schedule,
    pieces: Pieces,
    from_ns: i64,
    until_ns: i64,
    k: u64,
    /// The number of messages of the next tick that are still to be taken.
    left: u32,
    next: Option<i64>,
}

impl Ticks {
    /// Creates the ticks in [from_ns, until_ns), in ns from the scenario's start; skips earlier ticks.
    pub fn new(spec: Schedule, from_ns: i64, until_ns: i64) -> Self {
        let pieces = Pieces::new(&spec.rates);
        let left = spec.burst;
        let mut ticks = Self {
            spec,
            pieces,
            from_ns,
            until_ns,
            k: 0,
            left,
            next: None,
        };
        ticks.skip_to_start();
        ticks.next = ticks.find();
        ticks
    }

    /// Returns the time of the next message without consuming the message; None after the last one.
    pub fn peek(&self) -> Option<i64> {
        self.next
    }

    /// Consumes the next message if it is due by `now_ns` and returns its time; all messages of a burst have
    /// the time of their tick.
    pub fn take_due(&mut self, now_ns: i64) -> Option<i64> {
        let due = self.next.filter(|t| *t <= now_ns)?;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.spec.burst;
            self.next = self.find();
        }
        Some(due)
    }

    /// Ends the ticks: no further message follows.
    pub fn stop(&mut self) {
        self.next = None;
        self.until_ns = i64::MIN;
    }

    /// Sets k by arithmetic to the first tick after `from_ns` or at most two ticks before it; does nothing
    /// for Poisson arrivals, which depend on all earlier ones.
    fn skip_to_start(&mut self) {
        if self.spec.arrivals != Arrivals::Poisson && self.from_ns > 0 {
            let k = self.pieces.expected(self.from_ns as f64 / 1e9);
            self.k = (k as u64).saturating_sub(2);
        }
    }

    fn find(&mut self) -> Option<i64> {
        loop {
            let at = self.step().filter(|at| *at < self.until_ns)?;
            let mine = match self.spec.kind {
                StreamKind::Own => true,
                StreamKind::Shared => {
                    owner(self.spec.seed, self.k - 1, self.spec.count) == self.spec.index
                }
            };
            if mine && at >= self.from_ns {
                return Some(at);
            }
        }
    }

    /// Returns the time of tick k in ns and advances k; None if the rates never reach it.
    fn step(&mut self) -> Option<i64> {
        let k = self.k;
        self.k += 1;
        let seconds = match self.spec.arrivals {
            Arrivals::Poisson => {
                let gap = -unit(draw(self.spec.seed, self.stream(), k)).ln();
                self.pieces.advance(gap)?
            }
            Arrivals::Periodic | Arrivals::Together => self.pieces.when(k as f64 + self.phase())?,
        };
        Some((seconds * 1e9) as i64)
    }

    /// Returns the number of the random stream: the same for all senders of a shared schedule, otherwise a
    /// different one for each sender.
    fn stream(&self) -> u64 {
        match self.spec.kind {
            StreamKind::Shared => 2,
            StreamKind::Own => 3 + self.spec.index,
        }
    }

    /// Returns the phase of the ticks of a sender with its own rate, in periods: random for periodic
    /// arrivals, otherwise 0.
    fn phase(&self) -> f64 {
        match (self.spec.kind, self.spec.arrivals) {
            (StreamKind::Own, Arrivals::Periodic) => {
                1.0 - unit(draw(self.spec.seed, 4, self.spec.index))
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
