//! Which of the launcher's descriptors a new node copies: not those that the launcher holds for its nodes, one each.
//!
//! A fork copies the table of descriptors, and the child closes all but two: with thousands of nodes that was a
//! quarter of what making another took. So a new node shares the table, until it takes the low part of it alone.

use crate::os;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// From here on: what is held for nodes.
const HELD: RawFd = 512;

/// The same descriptor among those that are held; where there is no room for it, where it was.
pub fn held(fd: OwnedFd) -> OwnedFd {
    // SAFETY: the descriptor is open; the new one is nobody else's.
    unsafe {
        match libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HELD) {
            -1 => fd,
            moved => OwnedFd::from_raw_fd(moved),
        }
    }
}

/// Whether a child that begins with these may share the table.
pub fn low(needed: &[RawFd]) -> bool {
    needed.iter().all(|fd| *fd < HELD)
}

/// In a child that shares the table: from now on it has a copy of the low part, and nothing of the rest.
pub fn part() -> io::Result<()> {
    // SAFETY: plain numbers.
    os::check(unsafe {
        libc::close_range(
            HELD as libc::c_uint,
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

    /// A thread shares the table as a new node does.
    #[test]
    fn who_parts_keeps_the_low_ones_and_takes_none_from_the_other() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = held(theirs.into());
        let (below, above) = (ours.as_raw_fd(), theirs.as_raw_fd());
        assert!(low(&[below]) && !low(&[below, above]));
        let there = std::thread::spawn(move || {
            part().unwrap();
            (is_open(below), is_open(above))
        });
        assert_eq!(there.join().unwrap(), (true, false));
        assert!(is_open(below) && is_open(above), "they are still open here");
    }
}
