//! Waits for many roles at once: by epoll for their descriptors, and in one ordered set for their deadlines.
//! So the cost of a wake-up grows with the number of roles that have work, not with all roles.

use super::Armed;
use crate::os::Res;
use crate::os::epoll::Epoll;
use std::collections::BTreeSet;
use std::os::fd::RawFd;

/// A node with at least this many roles waits in this way. For fewer roles a poll set costs less, and labs of
/// equal size keep their system calls.
pub const MANY: usize = 256;

pub struct Watch {
    epoll: Epoll,
    /// The descriptors and the time that each role waits for, by its index.
    known: Vec<Known>,
    due: BTreeSet<(i64, usize)>,
    connected: u64,
    clients: u64,
}

#[derive(Default)]
struct Known {
    fds: Vec<RawFd>,
    due_ns: Option<i64>,
    connected: bool,
    counted: bool,
}

impl Watch {
    pub fn new() -> Res<Self> {
        Ok(Self {
            epoll: Epoll::new().map_err(|e| format!("epoll: {e}"))?,
            known: Vec::new(),
            due: BTreeSet::new(),
            connected: 0,
            clients: 0,
        })
    }

    pub fn raw(&self) -> RawFd {
        self.epoll.raw()
    }

    /// Returns the earliest deadline of a role, in Unix nanoseconds; None if none has one.
    pub fn deadline(&self) -> Option<i64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns how many roles that are clients are connected, and how many there are.
    pub fn clients(&self) -> (u64, u64) {
        (self.connected, self.clients)
    }

    /// Registers the descriptors and the time for which the role `index` now waits. Call this after each call
    /// of a role that may change them, before another role opens a descriptor, which may get the number of a
    /// closed one.
    pub fn update(&mut self, index: usize, armed: &Armed) -> Res<()> {
        if self.known.len() <= index {
            self.known.resize_with(index + 1, Known::default);
        }
        let (epoll, known) = (&self.epoll, &mut self.known[index]);
        let owner = u32::try_from(index).map_err(|_| format!("{index}: too many roles"))?;
        let before = std::mem::take(&mut known.fds);
        let mut failed = None;
        armed.role.fds(&mut |fd, write| {
            known.fds.push(fd);
            if let Err(e) = epoll.watch(fd, write, owner) {
                failed = Some(e);
            }
        });
        for fd in before.into_iter().filter(|fd| !known.fds.contains(fd)) {
            if let Err(e) = epoll.forget(fd) {
                failed = Some(e);
            }
        }
        if let Some(e) = failed {
            return Err(format!("epoll: {e}"));
        }
        let connected = !armed.listens && armed.role.connected();
        self.connected += u64::from(connected);
        self.connected -= u64::from(known.connected);
        known.connected = connected;
        self.clients += u64::from(!armed.listens && !known.counted);
        known.counted = true;
        self.plan(index, armed.role.deadline());
        Ok(())
    }

    fn plan(&mut self, index: usize, due_ns: Option<i64>) {
        let before = std::mem::replace(&mut self.known[index].due_ns, due_ns);
        if before != due_ns {
            before.map(|at| self.due.remove(&(at, index)));
            due_ns.map(|at| self.due.insert((at, index)));
        }
    }

    /// Makes a role due at `now`, whatever its deadline.
    pub fn wake(&mut self, index: usize, now: i64) {
        let earlier = self.known[index].due_ns.map_or(now, |at| at.min(now));
        self.plan(index, Some(earlier));
    }

    /// Returns the index, descriptor and events of ready descriptors.
    pub fn ready(&self) -> Res<Vec<(usize, RawFd, i16)>> {
        let found = self.epoll.ready().map_err(|e| format!("epoll: {e}"))?;
        Ok(found
            .into_iter()
            .map(|(owner, fd, events)| (owner as usize, fd, events))
            .collect())
    }

    /// Removes and returns the roles that are due at `now`, in the order of their deadlines. `update` adds
    /// each of them again.
    pub fn take_due(&mut self, now: i64) -> Vec<usize> {
        let mut found = Vec::new();
        while let Some((at, index)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, index));
            self.known[index].due_ns = None;
            found.push(index);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os;
    use crate::proto::Totals;
    use crate::roles::Role;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    struct Fake {
        socket: Option<UnixStream>,
        due_ns: Option<i64>,
    }

    impl Role for Fake {
        fn go(&mut self, _t0_ns: i64) {}
        fn deadline(&self) -> Option<i64> {
            self.due_ns
        }
        fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
            if let Some(socket) = &self.socket {
                wait_for(socket.as_raw_fd(), false);
            }
        }
        fn on_ready(&mut self, _fd: RawFd, _revents: i16, _now: i64, _out: &mut Vec<u8>) {}
        fn on_time(&mut self, _now: i64, _out: &mut Vec<u8>) {}
        fn finish(&mut self, _now: i64, _out: &mut Vec<u8>) {}
        fn totals(&self) -> Totals {
            Totals::default()
        }
        fn connected(&self) -> bool {
            self.socket.is_some()
        }
    }

    fn armed(socket: Option<UnixStream>, due_ns: Option<i64>) -> Armed {
        Armed {
            role: Box::new(Fake { socket, due_ns }),
            listens: false,
        }
    }

    #[test]
    fn due_roles_come_in_the_order_of_their_deadlines_and_once() {
        let mut watch = Watch::new().unwrap();
        for (i, at) in [Some(30), None, Some(10), Some(20)].into_iter().enumerate() {
            watch.update(i, &armed(None, at)).unwrap();
        }
        assert_eq!(watch.deadline(), Some(10));
        assert_eq!(watch.take_due(20), [2, 3]);
        assert!(watch.take_due(20).is_empty());
        watch.wake(1, 25);
        watch.wake(0, 25);
        assert_eq!(watch.deadline(), Some(25));
        assert_eq!(watch.take_due(25), [0, 1]);
        assert_eq!(watch.deadline(), None);
        watch.update(2, &armed(None, Some(5))).unwrap();
        watch.update(2, &armed(None, Some(40))).unwrap();
        assert_eq!(watch.deadline(), Some(40));
    }

    #[test]
    fn sockets_that_are_replaced_are_watched_and_clients_counted() {
        let mut watch = Watch::new().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let first = armed(Some(ours), None);
        watch.update(0, &first).unwrap();
        watch.update(1, &armed(None, None)).unwrap();
        assert_eq!(watch.clients(), (1, 2));
        os::write(theirs.as_raw_fd(), b"a").unwrap();
        assert_eq!(watch.ready().unwrap().len(), 1);
        drop(first);
        watch.update(0, &armed(None, None)).unwrap();
        assert_eq!(watch.clients(), (0, 2));
        let (again, theirs) = UnixStream::pair().unwrap();
        let fd = again.as_raw_fd();
        let second = armed(Some(again), None);
        watch.update(1, &second).unwrap();
        os::write(theirs.as_raw_fd(), b"a").unwrap();
        assert_eq!(watch.ready().unwrap(), [(1, fd, libc::POLLIN)]);
        assert_eq!(watch.clients(), (1, 2));
    }
}
