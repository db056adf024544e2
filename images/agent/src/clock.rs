//! Reads the lab's clock: Unix time at the launcher's start plus the time that has passed since on
//! CLOCK_MONOTONIC, so that the clock never steps.

use std::sync::atomic::{AtomicI64, Ordering};

const UNKNOWN: i64 = i64::MIN;
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
    let offset = real_ns() - mono_ns();
    OFFSET.store(offset, Ordering::Relaxed);
    offset
}

/// Returns the lab's time in Unix nanoseconds.
pub fn lab_ns() -> i64 {
    offset_ns() + mono_ns()
}
