//! Implements the TCP server: accepts any number of connections behind one epoll descriptor, receives
//! messages and answers requests.

use super::frames::{self, Frames};
use crate::clock;
use crate::os::{self, Res};
use crate::payload::{self, Identity, Purpose};
use crate::proto::Totals;
use crate::records;
use crate::roles::peers;
use crate::roles::socket::{self, Marks};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most connections that wait to be accepted, since many clients may connect at once.
const WAITING_CONNECTIONS: i32 = 4096;
/// The most bytes of unsent replies of a connection; beyond that the server stops reading from it, and
/// received requests wait.
const BACKLOG_BYTES: usize = 262_144;

struct Connection {
    socket: TcpStream,
    frames: Frames,
    output: Vec<u8>,
    /// Whether `frames` may hold messages that wait for space in the output.
    held: bool,
    interest: i32,
}

pub struct Server {
    listener: TcpListener,
    epoll: OwnedFd,
    nodelay: bool,
    connections: BTreeMap<RawFd, Connection>,
    chunk: Vec<u8>,
    pub counts: Totals,
    /// The reason why the server accepts no further connection; None while it does.
    pub error: Option<String>,
}

impl Server {
    pub fn bind(port: u16, nodelay: bool, marks: Marks, ipv6: bool) -> Res<Self> {
        let fail = |e: io::Error| format!("listen: port {port}: {e}; choose another");
        let listener = TcpListener::bind((socket::any(ipv6), port)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        socket::mark(&listener, marks).map_err(fail)?; // connections inherit the marks
        // SAFETY: plain numbers. A second listen() changes the backlog.
        os::check(unsafe { libc::listen(listener.as_raw_fd(), WAITING_CONNECTIONS) })
            .map_err(fail)?;
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map_err(fail)?;
        let server = Self {
            listener,
            epoll,
            nodelay,
            connections: BTreeMap::new(),
            chunk: Vec::new(),
            counts: Totals::default(),
            error: None,
        };
        server
            .watch(
                libc::EPOLL_CTL_ADD,
                server.listener.as_raw_fd(),
                libc::EPOLLIN,
            )
            .map_err(fail)?;
        Ok(server)
    }

    /// Returns the epoll descriptor, which is readable when a connection can be accepted or served.
    pub fn raw(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    #[cfg(test)]
    pub fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// Returns the number of bytes of unsent replies on all connections.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.connections.values().map(|c| c.output.len()).sum()
    }

    fn watch(&self, op: i32, fd: RawFd, interest: i32) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest as u32,
            u64: fd as u64,
        };
        // SAFETY: event is valid; epoll and fd are open.
        os::check(unsafe { libc::epoll_ctl(self.raw(), op, fd, &mut event) }).map(drop)
    }

    pub fn on_ready(&mut self, endpoint: &str, out: &mut Vec<u8>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: room for 64 events; the call does not wait.
        let n = unsafe { libc::epoll_wait(self.raw(), events.as_mut_ptr(), 64, 0) };
        for event in &events[..n.max(0) as usize] {
            let fd = event.u64 as RawFd;
            if fd == self.listener.as_raw_fd() {
                self.accept();
            } else if !self.serve(fd, event.events as i32, endpoint, out) {
                // Dropping the last descriptor also removes it from the epoll set.
                self.connections.remove(&fd);
            }
        }
    }

    fn accept(&mut self) {
        loop {
            let accepted = self
                .listener
                .accept()
                .and_then(|(socket, _)| self.keep(socket));
            match accepted {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(e) => {
                    // A retry would fail again at once, in a busy loop.
                    let listener = self.listener.as_raw_fd();
                    self.error = Some(format!("accepts no further connection: {e}"));
                    return self.watch(libc::EPOLL_CTL_DEL, listener, 0).unwrap_or(());
                }
            }
        }
    }

    fn keep(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(self.nodelay)?;
        let (fd, interest) = (socket.as_raw_fd(), libc::EPOLLIN);
        self.watch(libc::EPOLL_CTL_ADD, fd, interest)?;
        let (frames, output) = (Frames::default(), Vec::new());
        self.connections.insert(
            fd,
            Connection {
                socket,
                frames,
                output,
                held: false,
                interest,
            },
        );
        Ok(())
    }

    /// Receives messages of a connection and sends its replies; returns false when it has ended, or if a
    /// message is too long, which counts as foreign.
    fn serve(&mut self, fd: RawFd, events: i32, endpoint: &str, out: &mut Vec<u8>) -> bool {
        let Some(connection) = self.connections.get_mut(&fd) else {
            return true;
        };
        let readable = events & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) != 0;
        let mut n = 0;
        if readable {
            self.chunk.resize(65_536, 0);
            n = match os::read(fd, &mut self.chunk) {
                Ok(0) => return false,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
                Err(_) => return false,
            };
        }
        if n > 0 || connection.held {
            let now = clock::lab_ns();
            let Connection { frames, output, .. } = connection;
            let fed = frames.feed_while(&self.chunk[..n], |message| {
                take(message, endpoint, now, &mut self.counts, output, out);
                output.len() < BACKLOG_BYTES
            });
            if fed.is_err() {
                self.counts.foreign += 1;
                return false;
            }
            connection.held = connection.output.len() >= BACKLOG_BYTES;
        }
        connection.write();
        let wanted = connection.wanted();
        if wanted != connection.interest {
            connection.interest = wanted;
            return self.watch(libc::EPOLL_CTL_MOD, fd, wanted).is_ok();
        }
        true
    }
}

fn take(
    message: &[u8],
    endpoint: &str,
    now: i64,
    counts: &mut Totals,
    output: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let ours =
        |m: &Identity| m.purpose != Purpose::Reply && m.reply_bytes as usize <= frames::LONGEST;
    let Some(identity) = payload::read(message).filter(ours) else {
        counts.foreign += 1;
        return;
    };
    counts.received += 1;
    records::received(out, identity.flow, identity.seq, endpoint, 0, now, false);
    if identity.purpose == Purpose::Request {
        frames::append(output, |out| peers::reply(&identity, out));
    }
}

impl Connection {
    fn write(&mut self) {
        while !self.output.is_empty() {
            // The next read finds a broken connection.
            let Ok(n) = os::write(self.socket.as_raw_fd(), &self.output) else {
                return;
            };
            self.output.drain(..n);
        }
    }

    fn wanted(&self) -> i32 {
        match self.output.len() {
            // Writable at once, so held messages continue after others had their turn.
            _ if self.held => libc::EPOLLOUT,
            0 => libc::EPOLLIN,
            n if n < BACKLOG_BYTES => libc::EPOLLIN | libc::EPOLLOUT,
            _ => libc::EPOLLOUT,
        }
    }
}
