//! Wraps epoll, which reports the ready descriptors among many; the cost of a call grows with the number of
//! ready ones.

use super::{check, own};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most descriptors that one call of `ready` returns; the next call returns the others.
const MOST: usize = 1024;

pub struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        let fd = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Self { fd })
    }

    /// Returns the descriptor, which is readable while `ready` has something to return.
    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Waits for input on `fd`, and with `write` also for space in its buffer; replaces an earlier wait on
    /// `fd`. `ready` returns `owner` with the events of `fd`. The call also works for a new descriptor that
    /// has the number of a closed one.
    pub fn watch(&self, fd: RawFd, write: bool, owner: u32) -> io::Result<()> {
        match self.control(libc::EPOLL_CTL_MOD, fd, write, owner) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.control(libc::EPOLL_CTL_ADD, fd, write, owner)
            }
            done => done,
        }
    }

    /// Stops waiting for `fd`; does nothing if `fd` is closed, since the kernel has stopped already.
    pub fn forget(&self, fd: RawFd) -> io::Result<()> {
        match self.control(libc::EPOLL_CTL_DEL, fd, false, 0) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EBADF)) => Ok(()),
            done => done,
        }
    }

    fn control(&self, what: libc::c_int, fd: RawFd, write: bool, owner: u32) -> io::Result<()> {
        let events = libc::EPOLLIN | if write { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: u64::from(owner) << 32 | u64::from(fd as u32),
        };
        // SAFETY: event is valid during the call.
        check(unsafe { libc::epoll_ctl(self.raw(), what, fd, &raw mut event) }).map(drop)
    }

    /// Returns the owner, descriptor and events (as poll numbers them) of up to `MOST` ready descriptors;
    /// does not wait.
    pub fn ready(&self) -> io::Result<Vec<(u32, RawFd, i16)>> {
        let mut events: Vec<libc::epoll_event> = Vec::with_capacity(MOST);
        // SAFETY: the buffer has space for MOST events, and the call has written the first `n`.
        let n = unsafe {
            let n = libc::epoll_wait(self.raw(), events.as_mut_ptr(), MOST as libc::c_int, 0);
            events.set_len(n.max(0) as usize);
            n
        };
        match check(n) {
            Ok(_) => Ok(events.iter().map(split).collect()),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }
}

/// Returns owner, descriptor and events of an entry; epoll's bits of input, output, error and hang-up are
/// those of poll.
fn split(event: &libc::epoll_event) -> (u32, RawFd, i16) {
    let (data, events) = (event.u64, event.events);
    ((data >> 32) as u32, data as u32 as RawFd, events as i16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os;
    use std::os::unix::net::UnixStream;

    #[test]
    fn ready_descriptors_come_with_their_owner() {
        let epoll = Epoll::new().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let fd = ours.as_raw_fd();
        epoll.watch(fd, false, 7).unwrap();
        assert_eq!(epoll.ready().unwrap(), []);
        epoll.watch(fd, true, 7).unwrap();
        assert_eq!(epoll.ready().unwrap(), [(7, fd, libc::POLLOUT)]);
        os::write(theirs.as_raw_fd(), b"a").unwrap();
        epoll.watch(fd, false, 8).unwrap();
        assert_eq!(epoll.ready().unwrap(), [(8, fd, libc::POLLIN)]);
        drop(theirs);
        let (_, _, events) = epoll.ready().unwrap()[0];
        assert_eq!(events & libc::POLLHUP, libc::POLLHUP);
        epoll.forget(fd).unwrap();
        assert_eq!(epoll.ready().unwrap(), []);
        epoll.forget(fd).unwrap();
    }

    #[test]
    fn a_new_descriptor_may_have_the_number_of_a_closed_one() {
        let epoll = Epoll::new().unwrap();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let fd = ours.as_raw_fd();
        epoll.watch(fd, false, 1).unwrap();
        drop(ours);
        epoll.forget(fd).unwrap();
        let (again, theirs) = UnixStream::pair().unwrap();
        os::write(theirs.as_raw_fd(), b"a").unwrap();
        let number = again.as_raw_fd();
        epoll.watch(number, false, 1).unwrap();
        assert_eq!(epoll.ready().unwrap(), [(1, number, libc::POLLIN)]);
    }
}
