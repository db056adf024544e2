//! Implements the TCP server: accepts any number of connections behind one epoll descriptor, receives
//! messages and answers requests.

use super::frames;
use super::http;
use super::http2;
use super::wire::{self, Wire};
use crate::clock;
use crate::os::{self, Res};
use crate::payload::{self, Identity, Purpose};
use crate::proto::Totals;
use crate::records;
use crate::roles::broker_client::tls::{Acceptor, Channel};
use crate::roles::peers;
use crate::roles::socket::{self, Marks};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most connections that wait to be accepted, since many clients may connect at once.
const WAITING_CONNECTIONS: i32 = 4096;
/// The most bytes of unsent replies of a connection; beyond that the server stops reading from it, and
/// received requests wait.
const BACKLOG_BYTES: usize = 262_144;

/// The settings of all connections.
pub struct Settings {
    pub nodelay: bool,
    /// Whether messages are requests of HTTP.
    pub http: bool,
    pub tls: Option<Acceptor>,
}

/// The protocol of a connection.
enum Spoken {
    /// HTTP, and these first bytes do not yet tell its version.
    Unknown(Vec<u8>),
    Messages(Wire),
    Http2(Box<http2::Server>),
}

struct Connection {
    socket: TcpStream,
    tls: Option<Channel>,
    spoken: Spoken,
    output: Vec<u8>,
    /// True if `wire` may hold messages that wait for space in the output.
    held: bool,
    interest: i32,
}

pub struct Server {
    listener: TcpListener,
    epoll: OwnedFd,
    settings: Settings,
    connections: BTreeMap<RawFd, Connection>,
    chunk: Vec<u8>,
    pub counts: Totals,
    /// The reason why the server accepts no further connection; None while it does.
    pub error: Option<String>,
}

impl Server {
    pub fn bind(port: u16, settings: Settings, marks: Marks, ipv6: bool) -> Res<Self> {
        let fail = |e: io::Error| format!("listen: port {port}: {e}; choose another");
        let listener = TcpListener::bind((socket::any(ipv6), port)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        socket::mark(&listener, marks).map_err(fail)?; // connections inherit the marks
        // SAFETY: the arguments are plain numbers. A second call of listen() changes the backlog.
        os::check(unsafe { libc::listen(listener.as_raw_fd(), WAITING_CONNECTIONS) })
            .map_err(fail)?;
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map_err(fail)?;
        let server = Self {
            listener,
            epoll,
            settings,
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
        // SAFETY: the array has room for 64 events, and the call does not wait.
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
                    // Another attempt would fail at once, in a busy loop.
                    let listener = self.listener.as_raw_fd();
                    self.error = Some(format!("accepts no further connection: {e}"));
                    return self.watch(libc::EPOLL_CTL_DEL, listener, 0).unwrap_or(());
                }
            }
        }
    }

    fn keep(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(self.settings.nodelay)?;
        let tls = self.settings.tls.as_ref().map(Acceptor::begin).transpose();
        let (fd, interest) = (socket.as_raw_fd(), libc::EPOLLIN);
        self.watch(libc::EPOLL_CTL_ADD, fd, interest)?;
        self.connections.insert(
            fd,
            Connection {
                socket,
                tls: tls.map_err(io::Error::other)?,
                spoken: Spoken::new(self.settings.http),
                output: Vec::new(),
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
            let Ok(plain) = connection.decrypt(&self.chunk[..n]) else {
                self.counts.foreign += 1;
                return false;
            };
            let Connection { spoken, output, .. } = connection;
            let mut taker = Taker {
                endpoint,
                now,
                counts: &mut self.counts,
                out,
            };
            if spoken.feed(&plain, output, &mut taker).is_err() {
                self.counts.foreign += 1;
                return false;
            }
            connection.held = connection.output.len() >= BACKLOG_BYTES;
        }
        connection.write();
        if connection.spoken.closes() && !connection.held && connection.all_left() {
            connection.close();
            return false;
        }
        let wanted = connection.wanted();
        if wanted != connection.interest {
            connection.interest = wanted;
            return self.watch(libc::EPOLL_CTL_MOD, fd, wanted).is_ok();
        }
        true
    }
}

/// Takes messages for a server: its endpoint, the time, its counts, and its records.
struct Taker<'a> {
    endpoint: &'a str,
    now: i64,
    counts: &'a mut Totals,
    out: &'a mut Vec<u8>,
}

impl Taker<'_> {
    /// Counts and records a message; returns its identity, None for one that is foreign.
    fn take(&mut self, message: &[u8]) -> Option<Identity> {
        let ours =
            |m: &Identity| m.purpose != Purpose::Reply && m.reply_bytes as usize <= frames::LONGEST;
        let Some(identity) = payload::read(message).filter(ours) else {
            self.counts.foreign += 1;
            return None;
        };
        self.counts.received += 1;
        let (flow, seq) = (identity.flow, identity.seq);
        records::received(self.out, flow, seq, self.endpoint, 0, self.now, false);
        Some(identity)
    }
}

/// Returns the reply to a message; an empty one for a message that wants none.
fn reply(identity: &Identity) -> Vec<u8> {
    let mut body = Vec::new();
    if identity.purpose == Purpose::Request {
        peers::reply(identity, &mut body);
    }
    body
}

impl Spoken {
    fn new(http: bool) -> Self {
        if http {
            Self::Unknown(Vec::new())
        } else {
            Self::Messages(Wire::new(false))
        }
    }

    fn closes(&self) -> bool {
        match self {
            Self::Unknown(_) => false,
            Self::Messages(wire) => wire.closes(),
            Self::Http2(server) => server.closes,
        }
    }

    /// Takes the messages that the bytes complete and answers them, until the output is full; the others
    /// wait for the next call. Returns an error for bytes that are not of the protocol.
    fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>, taker: &mut Taker<'_>) -> Res<()> {
        match self {
            Self::Unknown(first) => {
                first.extend_from_slice(bytes);
                let compared = first.len().min(http2::PREFACE.len());
                if first[..compared] != http2::PREFACE[..compared] {
                    let first = std::mem::take(first);
                    *self = Self::Messages(Wire::new(true));
                    self.feed(&first, output, taker)
                } else if compared == http2::PREFACE.len() {
                    let first = std::mem::take(first);
                    *self = Self::Http2(Box::new(http2::Server::new()));
                    self.feed(&first, output, taker)
                } else {
                    Ok(())
                }
            }
            Self::Messages(wire) => {
                let http = matches!(wire, Wire::Http(_));
                wire.feed_while(bytes, |message| {
                    match taker.take(message) {
                        Some(identity) if http => http::answer(&reply(&identity), output),
                        Some(identity) if identity.purpose == Purpose::Request => {
                            frames::append(output, |out| peers::reply(&identity, out));
                        }
                        None if http => http::refuse(output),
                        _ => {}
                    }
                    output.len() < BACKLOG_BYTES
                })
            }
            Self::Http2(server) => {
                server.feed(bytes)?;
                server.drain(output);
                while output.len() < BACKLOG_BYTES
                    && let Some(request) = server.next()?
                {
                    let answer = taker.take(&request.body).map(|identity| reply(&identity));
                    server.answer(request, answer)?;
                    server.drain(output);
                }
                server.drain(output);
                Ok(())
            }
        }
    }
}

impl Connection {
    /// Returns the content of received bytes; an error if they violate TLS.
    fn decrypt<'a>(&mut self, bytes: &'a [u8]) -> Res<Cow<'a, [u8]>> {
        let Some(channel) = &mut self.tls else {
            return Ok(bytes.into());
        };
        let mut plain = Vec::new();
        let done = channel.read(bytes, &mut plain);
        channel.flush(self.socket.as_raw_fd()); // an answer of the handshake, or an alert
        done.map(|()| plain.into())
    }

    /// Writes as much output as the socket accepts; the next read finds a broken connection.
    fn write(&mut self) {
        wire::send(self.socket.as_raw_fd(), self.tls.as_mut(), &mut self.output);
    }

    /// Returns whether all output has left.
    fn all_left(&self) -> bool {
        let encrypted = self.tls.as_ref().is_some_and(|tls| tls.wants_write(false));
        self.output.is_empty() && !encrypted
    }

    fn close(&mut self) {
        if let Some(channel) = &mut self.tls {
            channel.close(self.socket.as_raw_fd());
        }
    }

    fn wanted(&self) -> i32 {
        match self.output.len() {
            // The socket is writable at once, so the server handles the held messages after the other
            // connections.
            _ if self.held => libc::EPOLLOUT,
            0 if !self.all_left() => libc::EPOLLIN | libc::EPOLLOUT,
            0 => libc::EPOLLIN,
            n if n < BACKLOG_BYTES => libc::EPOLLIN | libc::EPOLLOUT,
            _ => libc::EPOLLOUT,
        }
    }
}
