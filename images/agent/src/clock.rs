//! The lab's clock: Unix time at the launcher's start plus CLOCK_MONOTONIC since, so it never steps.

use std::sync::OnceLock;

static OFFSET: OnceLock<i64> = OnceLock::new();

fn read(clock: libc::clockid_t) -> i64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: ts is a valid timespec; these clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec * 1_000_000_000 + ts.tv_nsec
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn mono_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds, the clock of the kernel's packet timestamps.
pub fn real_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// Unix time minus CLOCK_MONOTONIC, fixed by the first call (the launcher's start; forks inherit it).
pub fn offset_ns() -> i64 {
    *OFFSET.get_or_init(|| real_ns() - mono_ns())
}

/// The lab's time now, in Unix nanoseconds.
pub fn lab_ns() -> i64 {
    offset_ns() + mono_ns()
}
