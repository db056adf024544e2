//! Computes the expected number of ticks up to a time, and the time of a tick, from a rate that is
//! constant piece by piece. A tick is a time at which messages of a schedule are due.

use crate::os::Res;
use crate::proto::Rate;

/// A piece of the rate: `per_s` ticks a second from `from_s` on; `count` ticks are expected before it.
#[derive(Clone, Copy)]
struct Piece {
    from_s: f64,
    count: f64,
    per_s: f64,
}

pub struct Pieces {
    pieces: Vec<Piece>,
    /// The index of the present piece; calls must come in the order of time.
    at: usize,
    /// The time in seconds that `advance` has reached.
    reached_s: f64,
}

/// The highest rate: one tick per nanosecond.
const MOST_PER_S: f64 = 1e9;

pub fn check(rates: &[Rate]) -> Res<()> {
    if rates.first().is_none_or(|r| r.from_ns != 0) {
        return Err("schedule.rates: must begin at 0 ns; write the rate at the start".to_owned());
    }
    for pair in rates.windows(2) {
        let (before, after) = (pair[0].from_ns, pair[1].from_ns);
        if after <= before {
            return Err(format!(
                "schedule.rates: {after} ns comes after {before} ns; order them by time"
            ));
        }
    }
    match rates
        .iter()
        .find(|r| !(0.0..=MOST_PER_S).contains(&r.per_s))
    {
        Some(bad) => Err(format!(
            "schedule.rates: {} a second is out of range; write 0 to {MOST_PER_S}",
            bad.per_s
        )),
        None => Ok(()),
    }
}

impl Pieces {
    pub fn new(rates: &[Rate]) -> Self {
        let mut pieces: Vec<Piece> = Vec::with_capacity(rates.len());
        for rate in rates {
            let from_s = rate.from_ns as f64 / 1e9;
            let count = pieces
                .last()
                .map_or(0.0, |p| p.count + (from_s - p.from_s) * p.per_s);
            pieces.push(Piece {
                from_s,
                count,
                per_s: rate.per_s,
            });
        }
        Self {
            pieces,
            at: 0,
            reached_s: 0.0,
        }
    }

    /// Returns the number of ticks that are expected before a time; 0 before the first piece.
    pub fn expected(&self, seconds: f64) -> f64 {
        let piece = self.pieces.iter().rev().find(|p| p.from_s <= seconds);
        piece.map_or(0.0, |p| p.count + (seconds - p.from_s) * p.per_s)
    }

    /// Returns the time at which `count` ticks are expected; successive counts must not decrease. A tick on
    /// the border of two pieces belongs to the later one. None if the count is never reached.
    pub fn when(&mut self, count: f64) -> Option<f64> {
        while self
            .pieces
            .get(self.at + 1)
            .is_some_and(|next| next.count <= count)
        {
            self.at += 1;
        }
        let piece = self.pieces.get(self.at).filter(|p| p.per_s > 0.0)?;
        Some(piece.from_s + (count - piece.count) / piece.per_s)
    }

    /// Returns the time at which `gap` more ticks are expected than at the last result; None if that is never
    /// reached. Adds times and not counts, so that with one rate the results equal those of a process of that
    /// rate to the last digit.
    pub fn advance(&mut self, mut gap: f64) -> Option<f64> {
        loop {
            let piece = *self.pieces.get(self.at)?;
            let time_s = self.reached_s + gap / piece.per_s;
            let Some(next) = self.pieces.get(self.at + 1) else {
                return (piece.per_s > 0.0).then(|| {
                    self.reached_s = time_s;
                    time_s
                });
            };
            if time_s < next.from_s {
                self.reached_s = time_s;
                return Some(time_s);
            }
            gap -= (next.from_s - self.reached_s) * piece.per_s;
            self.reached_s = next.from_s;
            self.at += 1;
        }
    }
}
