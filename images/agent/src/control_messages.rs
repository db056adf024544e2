//! Exchanges control messages between gateways and senders: one line of JSON each over TCP.

use crate::clock;
use crate::os::Res;
use crate::roles::socket::{self, Marks};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// An attempt to connect that takes longer than this is abandoned.
const TIMEOUT_NS: i64 = 5_000_000_000;
/// The least time between two attempts to connect.
const RETRY_NS: i64 = 1_000_000_000;
/// The longest accepted line; a longer one comes from a foreign program.
const LONGEST: usize = 65_536;

/// Receives lines of JSON from any number of peers, which may keep their connections open.
pub struct Inbox {
    listener: TcpListener,
    peers: Vec<Peer>,
}

struct Peer {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Inbox {
    pub fn open(port: u16) -> Res<Self> {
        let wrong = |e: io::Error| format!("listen: port {port}: {e}; choose another");
        let listener = TcpListener::bind(("::", port))
            .or_else(|_| TcpListener::bind(("0.0.0.0", port)))
            .map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        Ok(Self {
            listener,
            peers: Vec::new(),
        })
    }

    pub fn fds(&self) -> Vec<RawFd> {
        let peers = self.peers.iter().map(|p| p.stream.as_raw_fd());
        std::iter::once(self.listener.as_raw_fd())
            .chain(peers)
            .collect()
    }

    /// Accepts new connections, and returns all complete messages that have arrived; a malformed line becomes
    /// an error. Forgets peers that closed the connection or have sent 64 KiB without a newline.
    pub fn take<T: DeserializeOwned>(&mut self) -> Vec<Res<T>> {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.peers.push(Peer {
                    stream,
                    read: Vec::new(),
                });
            }
        }
        let mut found = Vec::new();
        self.peers.retain_mut(|peer| {
            let open = peer.fill();
            while let Some(line) = peer.line() {
                let parsed = serde_json::from_slice(&line);
                found.push(parsed.map_err(|e| format!("{}: {e}", String::from_utf8_lossy(&line))));
            }
            open && peer.read.len() < LONGEST
        });
        found
    }
}

impl Peer {
    /// Reads the bytes that have arrived; returns false once the peer has closed the connection.
    fn fill(&mut self) -> bool {
        let mut part = [0u8; 4096];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(n) => self.read.extend(&part[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.read.iter().position(|b| *b == b'\n')?;
        let mut line: Vec<u8> = self.read.drain(..=end).collect();
        line.pop();
        Some(line)
    }
}

/// Sends the latest state to a neighbour, and sends it again after every reconnection. No call blocks.
pub struct Outbox {
    pub to: SocketAddr,
    stream: Option<TcpStream>,
    /// The state to send, as a line of JSON; empty before the first `set`.
    latest: String,
    unsent: Vec<u8>,
    /// Time of the last attempt to connect, in nanoseconds of the monotonic clock.
    begun_ns: i64,
}

impl Outbox {
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            stream: None,
            latest: String::new(),
            unsent: Vec::new(),
            begun_ns: i64::MIN / 2,
        }
    }

    /// Replaces the state to send; `send` sends it if it differs from the previous one. Returns an error if
    /// the message has no JSON form.
    pub fn set(&mut self, message: &impl Serialize) -> Res<()> {
        let line = serde_json::to_string(message).map_err(|e| e.to_string())? + "\n";
        if line != self.latest {
            if self.stream.is_some() {
                self.unsent.extend(line.as_bytes());
            }
            self.latest = line;
        }
        Ok(())
    }

    /// Returns the descriptor to poll for writing; None while nothing waits to be sent.
    pub fn fd(&self) -> Option<RawFd> {
        let stream = self.stream.as_ref().filter(|_| !self.unsent.is_empty());
        stream.map(AsRawFd::as_raw_fd)
    }

    /// Sends as much as the connection accepts: a changed state, or the latest state on a new connection,
    /// which it opens if there is none, at most once a second. Returns true once a state is completely sent,
    /// and an error if the connection failed.
    pub fn send(&mut self) -> Res<bool> {
        let sent = self.proceed();
        if sent.is_err() {
            self.stream = None;
        }
        sent.map_err(|e| format!("{}: {e}", self.to))
    }

    fn proceed(&mut self) -> io::Result<bool> {
        let now = clock::mono_ns();
        let open = |s: &TcpStream| !socket::established(s) || !is_closed(s);
        self.stream = self.stream.take().filter(open);
        if self.stream.is_none() && !self.latest.is_empty() && now - self.begun_ns >= RETRY_NS {
            self.begun_ns = now;
            self.unsent = self.latest.clone().into_bytes();
            let (address, port) = (self.to.ip(), self.to.port());
            self.stream = Some(socket::connect(address, port, true, Marks::default())?);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(false);
        };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        let in_time = now - self.begun_ns < TIMEOUT_NS && self.unsent.len() < LONGEST;
        if !socket::established(stream) {
            let late = io::Error::from(ErrorKind::TimedOut);
            return if in_time { Ok(false) } else { Err(late) };
        }
        let pending = !self.unsent.is_empty();
        while !self.unsent.is_empty() {
            match stream.write(&self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(pending)
    }
}

/// Returns true if the connection is readable or has failed. Neighbours send nothing over it, so this means
/// that the neighbour has closed it.
fn is_closed(stream: &TcpStream) -> bool {
    !matches!(stream.peek(&mut [0u8; 1]), Err(e) if e.kind() == ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn inbox(port: u16) -> (Inbox, SocketAddr) {
        let inbox = Inbox::open(port).unwrap();
        let port = inbox.listener.local_addr().unwrap().port();
        (inbox, SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Calls `send` until a state is completely sent or the connection fails.
    fn sent(outbox: &mut Outbox) -> Res<bool> {
        for _ in 0..1500 {
            match outbox.send() {
                Ok(false) => std::thread::sleep(Duration::from_millis(2)),
                other => return other,
            }
        }
        Ok(false)
    }

    fn until(inbox: &mut Inbox, count: usize) -> Vec<Res<Value>> {
        let mut found = Vec::new();
        for _ in 0..500 {
            found.extend(inbox.take());
            if found.len() >= count {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        found
    }

    #[test]
    fn messages_arrive_and_malformed_lines_are_errors() {
        let (mut inbox, at) = inbox(0);
        let mut outbox = Outbox::new(at);
        assert_eq!(outbox.send(), Ok(false), "nothing is set yet");
        outbox.set(&json!({"flow": "a", "bps": 5})).unwrap();
        assert_eq!(sent(&mut outbox), Ok(true));
        assert_eq!(until(&mut inbox, 1), [Ok(json!({"flow": "a", "bps": 5}))]);
        outbox.set(&json!({"flow": "a", "bps": 5})).unwrap();
        assert_eq!(outbox.send(), Ok(false), "the state is unchanged");
        let mut stranger = TcpStream::connect(at).unwrap();
        stranger.write_all(b"GET / HTTP/1.0\n{\"half\"").unwrap();
        let received = until(&mut inbox, 1);
        assert!(
            received[0]
                .as_ref()
                .unwrap_err()
                .starts_with("GET / HTTP/1.0: expected")
        );
        assert_eq!(inbox.peers.len(), 2);
        drop(stranger);
        until(&mut inbox, 1);
        assert_eq!(inbox.peers.len(), 1);
    }

    #[test]
    fn a_reconnected_neighbour_receives_the_present_state() {
        let (mut first, at) = inbox(0);
        let mut outbox = Outbox::new(at);
        outbox.set(&json!(1)).unwrap();
        assert_eq!(sent(&mut outbox), Ok(true));
        assert_eq!(until(&mut first, 1), [Ok(json!(1))]);
        drop(first);
        outbox.set(&json!(2)).unwrap();
        assert!(sent(&mut outbox).is_err(), "nobody listens");
        let (mut second, _) = inbox(at.port());
        outbox.set(&json!(3)).unwrap();
        assert_eq!(sent(&mut outbox), Ok(true));
        assert_eq!(until(&mut second, 1), [Ok(json!(3))]);
        second.peers.clear();
        assert_eq!(sent(&mut outbox), Ok(true), "it is sent again");
        assert_eq!(until(&mut second, 1), [Ok(json!(3))]);
    }

    #[test]
    fn an_unanswered_connection_does_not_block() {
        // A listener with a full backlog does not answer, like a node that is gone.
        let full = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = full.local_addr().unwrap();
        // SAFETY: a listening socket.
        unsafe { libc::listen(full.as_raw_fd(), 0) };
        let _taken: Vec<_> = (0..4)
            .filter_map(|_| socket::connect(at.ip(), at.port(), true, Marks::default()).ok())
            .collect();
        let mut outbox = Outbox::new(at);
        outbox.set(&json!(1)).unwrap();
        let began = clock::mono_ns();
        assert_eq!(outbox.send(), Ok(false));
        assert!(outbox.fd().is_some());
        assert!(clock::mono_ns() - began < 100_000_000);
        outbox.begun_ns -= TIMEOUT_NS;
        assert!(outbox.send().unwrap_err().ends_with("timed out"));
    }
}
