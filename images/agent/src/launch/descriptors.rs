//! Keeps the launcher's per-node descriptors out of the table that a new node copies.
//!
//! A fork copies the whole descriptor table, and the child closes all but two. With thousands of nodes that
//! took a quarter of the time to create another. So a new node first shares the table, then copies its low
//! part only.

use crate::os;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The lowest number of the launcher's per-node descriptors.
const HIGH: RawFd = 512;

/// Moves a descriptor to the high part of the table, from number 512 on, and returns it; keeps its number if
/// that part is full.
pub fn move_high(fd: OwnedFd) -> OwnedFd {
    // SAFETY: the descriptor is open; no other owner has the new one.
    unsafe {
        match libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) {
            -1 => fd,
            moved => OwnedFd::from_raw_fd(moved),
        }
    }
}

/// Returns true if all these descriptors lie in the low part, below 512, so that a child that needs them may
/// share the table.
pub fn all_low(needed: &[RawFd]) -> bool {
    needed.iter().all(|fd| *fd < HIGH)
}

/// Ends the sharing of the parent's descriptor table: this process gets its own copy of the table's low part,
/// without the high part.
pub fn unshare_low() -> io::Result<()> {
    // SAFETY: plain numbers.
    os::check(unsafe {
        libc::close_range(
            HIGH as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_UNSHARE as libc::c_int,
        )
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn is_open(fd: RawFd) -> bool {
        // SAFETY: plain numbers.
        unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
    }

    /// The test uses a thread, which shares the table as a new node does.
    #[test]
    fn a_child_keeps_low_descriptors_and_closes_none_of_the_parents() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = move_high(theirs.into());
        let (below, above) = (ours.as_raw_fd(), theirs.as_raw_fd());
        assert!(all_low(&[below]) && !all_low(&[below, above]));
        let there = std::thread::spawn(move || {
            unshare_low().unwrap();
            (is_open(below), is_open(above))
        });
        assert_eq!(there.join().unwrap(), (true, false));
        assert!(is_open(below) && is_open(above), "they are still open here");
    }
}
