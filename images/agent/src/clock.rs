//! Reads the lab's clock: Unix time at the launcher's start plus the time that has passed since on
//! CLOCK_MONOTONIC, so that the clock never steps.

use std::sync::atomic::{AtomicI64, Ordering};

const UNKNOWN: i64 = i64::MIN;
const LOOKS: usize = 5;
static OFFSET: AtomicI64 = AtomicI64::new(UNKNOWN);

fn read(clock: libc::clockid_t) -> i64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: ts is a valid timespec; these clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec * 1_000_000_000 + ts.tv_nsec
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub fn mono_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns CLOCK_REALTIME in nanoseconds, the clock of the kernel's packet timestamps.
pub fn real_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns Unix time minus CLOCK_MONOTONIC in nanoseconds, as the first call or the last `rebase` fixed it;
/// forked processes inherit the value.
pub fn offset_ns() -> i64 {
    match OFFSET.load(Ordering::Relaxed) {
        UNKNOWN => rebase(),
        known => known,
    }
}

/// Sets CLOCK_REALTIME to Unix time `ns`.
pub fn set_real_ns(ns: i64) -> std::io::Result<()> {
    let time = libc::timespec {
        tv_sec: ns.div_euclid(1_000_000_000),
        tv_nsec: ns.rem_euclid(1_000_000_000),
    };
    // SAFETY: time is a valid timespec.
    crate::os::check(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) }).map(drop)
}

/// Recomputes, stores and returns Unix time minus CLOCK_MONOTONIC in nanoseconds. Needed after the clock of a
/// VM was set, before anything uses the old offset.
pub fn rebase() -> i64 {
    let offset = quickest(mono_ns, real_ns);
    OFFSET.store(offset, Ordering::Relaxed);
    offset
}

/// Returns `wall` minus `mono` from the quickest of LOOKS readings of both. A single reading is wrong by as long
/// as another program takes the core between its two clocks.
fn quickest(mut mono: impl FnMut() -> i64, mut wall: impl FnMut() -> i64) -> i64 {
    let looks = (0..LOOKS).map(|_| {
        let (before, wall, after) = (mono(), wall(), mono());
        (after - before, wall - after)
    });
    looks.min().map_or(0, |(_, offset)| offset)
}

/// Returns the lab's time in Unix nanoseconds.
pub fn lab_ns() -> i64 {
    offset_ns() + mono_ns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn an_interrupted_reading_does_not_move_the_offset() {
        for interrupted in 0..3 * LOOKS {
            let (now, readings) = (Cell::new(0), Cell::new(0));
            let mono = || {
                let wait = if readings.get() == interrupted {
                    1_000_000
                } else {
                    50
                };
                now.set(now.get() + wait);
                readings.set(readings.get() + 1);
                now.get()
            };
            let offset = quickest(mono, || mono() + 7_000_000_000);
            assert_eq!(
                offset,
                7_000_000_000 - 50,
                "reading {interrupted} was interrupted"
            );
        }
    }
}
