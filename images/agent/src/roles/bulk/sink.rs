//! Implements the receiver of bulk transfers: it accepts TCP connections and UDP datagrams on one port, and
//! counts bytes by flow.

use super::Progress;
use crate::clock;
use crate::os::{self, Res};
use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload, Purpose};
use crate::roles::{datagrams, socket};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

const CHUNK: usize = 262_144;
/// The most reads in a row, so that a fast flow does not keep the node from other work.
const AT_ONCE: usize = 64;

struct Connection {
    socket: TcpStream,
    /// The beginning of the header that identifies the flow, while it is incomplete.
    head: Vec<u8>,
    flow: Option<u32>,
    /// The number of bytes received before the header was complete.
    unassigned: u64,
}

#[derive(Default)]
struct Count {
    bytes: u64,
    /// Number of datagrams received, and the highest sequence number plus one; None for TCP.
    datagrams: Option<(u64, u64)>,
    recorded: u64,
}

pub struct Sink {
    listener: TcpListener,
    /// Whether the receiver accepts further connections.
    open: bool,
    /// The reason why the receiver accepts no further connections; None if it does, or once the role has
    /// recorded the reason.
    pub error: Option<String>,
    udp: UdpSocket,
    pub bound_ns: i64,
    connections: BTreeMap<RawFd, Connection>,
    flows: BTreeMap<u32, Count>,
    pub foreign: u64,
    chunk: Vec<u8>,
}

impl Sink {
    pub fn bind(port: u16, ipv6: bool) -> Res<Self> {
        let fail = |e: io::Error| format!("listen: port {port}: {e}; choose another");
        let listener = TcpListener::bind((socket::any(ipv6), port)).map_err(fail)?;
        let port = listener.local_addr().map_err(fail)?.port();
        let udp = datagrams::bound(port, ipv6).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self {
            listener,
            open: true,
            error: None,
            udp,
            bound_ns: clock::lab_ns(),
            connections: BTreeMap::new(),
            flows: BTreeMap::new(),
            foreign: 0,
            chunk: Vec::new(),
        })
    }

    #[cfg(test)]
    pub fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    pub fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if self.open {
            wait_for(self.listener.as_raw_fd(), false);
        }
        wait_for(self.udp.as_raw_fd(), false);
        self.connections.keys().for_each(|fd| wait_for(*fd, false));
    }

    /// Receives from a ready descriptor or accepts connections; returns true when a connection has ended.
    pub fn on_ready(&mut self, fd: RawFd) -> bool {
        self.chunk.resize(CHUNK, 0);
        if fd == self.udp.as_raw_fd() {
            self.take_datagrams();
        } else if let Some(connection) = self.connections.get_mut(&fd) {
            if !connection.read(&mut self.chunk, &mut self.flows, &mut self.foreign) {
                self.connections.remove(&fd);
                return true;
            }
        } else if fd == self.listener.as_raw_fd() {
            loop {
                let next = self.listener.accept().map(|(socket, _)| socket);
                if !self.take_in(next) {
                    break;
                }
            }
        }
        false
    }

    /// Takes over an accepted connection; returns false when there is none left, or when an error makes the
    /// receiver accept no further ones.
    pub(super) fn take_in(&mut self, accepted: io::Result<TcpStream>) -> bool {
        let accepted = accepted.and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        match accepted {
            Ok(socket) => {
                let connection = Connection {
                    head: Vec::new(),
                    flow: None,
                    unassigned: 0,
                    socket,
                };
                self.connections
                    .insert(connection.socket.as_raw_fd(), connection);
                true
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => false,
            Err(e) if e.kind() == ErrorKind::ConnectionAborted => true,
            Err(e) => {
                // Another attempt would fail at once, in a busy loop.
                self.open = false;
                self.error = Some(format!("accepts no further connection: {e}"));
                false
            }
        }
    }

    fn take_datagrams(&mut self) {
        for _ in 0..AT_ONCE {
            let Ok(n) = self.udp.recv(&mut self.chunk) else {
                return;
            };
            let Some(identity) = ours(&self.chunk[..n]) else {
                self.foreign += 1;
                continue;
            };
            let count = self.flows.entry(identity.flow).or_default();
            let (got, end) = count.datagrams.unwrap_or_default();
            count.bytes += n as u64;
            count.datagrams = Some((got + 1, end.max(identity.seq + 1)));
        }
    }

    /// Returns a text if the kernel has dropped datagrams because the socket's buffer was full, else None.
    pub fn overrun(&self) -> Option<String> {
        datagrams::overrun(&self.udp)
    }

    pub fn has_progress(&self) -> bool {
        self.flows
            .values()
            .any(|count| count.bytes != count.recorded)
    }

    /// Returns the progress of each flow that has received data since the last call.
    pub fn take_progress(&mut self) -> Vec<(u32, Progress)> {
        let moved = self
            .flows
            .iter_mut()
            .filter(|(_, count)| count.bytes != count.recorded);
        moved
            .map(|(flow, count)| {
                count.recorded = count.bytes;
                let progress = Progress {
                    bytes: count.bytes,
                    packets: count.datagrams.map(|(got, _)| got),
                    // A duplicate raises the count and so hides one loss.
                    lost: count.datagrams.map(|(got, end)| end.saturating_sub(got)),
                    ..Progress::default()
                };
                (*flow, progress)
            })
            .collect()
    }
}

fn ours(bytes: &[u8]) -> Option<Identity> {
    Bytes
        .read(bytes)
        .filter(|identity| identity.purpose == Purpose::Stream)
}

impl Connection {
    /// Reads from the connection and counts its bytes for its flow; returns false if the connection has
    /// ended. Also returns false if it does not begin with a flow's header; it then counts as foreign.
    fn read(
        &mut self,
        chunk: &mut [u8],
        flows: &mut BTreeMap<u32, Count>,
        foreign: &mut u64,
    ) -> bool {
        for _ in 0..AT_ONCE {
            let n = match os::read(self.socket.as_raw_fd(), chunk) {
                Ok(0) => return false,
                Ok(n) => n,
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            };
            self.unassigned += n as u64;
            if self.flow.is_none() {
                let missing = Bytes.smallest() - self.head.len();
                self.head.extend_from_slice(&chunk[..n.min(missing)]);
                if self.head.len() < Bytes.smallest() {
                    continue;
                }
                self.flow = ours(&self.head).map(|identity| identity.flow);
            }
            let Some(flow) = self.flow else {
                *foreign += 1;
                return false;
            };
            flows.entry(flow).or_default().bytes += std::mem::take(&mut self.unassigned);
        }
        true
    }
}
