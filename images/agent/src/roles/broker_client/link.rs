//! Implements a client's link to its broker: keeps its state and its socket, with TLS if the settings have
//! it, and records the steps of its session.

use super::delivery::Delivery;
use super::lives::{Churn, End, Lives};
use super::tls::{Channel, Settings, Tls};
use super::waits::{Backoff, Waits};
use crate::os::{self, Res};
use crate::payload::Identity;
use crate::proto::{Session, Totals};
use crate::records;
use crate::roles::socket::{self, Marks};
use serde::Deserialize;
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// The settings of the broker and of reconnection in a client's `spec`.
#[derive(Debug, Clone, Deserialize)]
pub struct Broker {
    broker: String,
    port: u16,
    /// Delay before a new attempt to connect; 0: never reconnect.
    reconnect_ns: i64,
    #[serde(default)]
    backoff: Option<Backoff>,
    /// Planned lengths of connections; None: each connection lasts until the session's end.
    #[serde(default)]
    lives: Option<Lives>,
    #[serde(default)]
    tls: Option<Settings>,
    #[serde(flatten)]
    marks: Marks,
}

impl Broker {
    pub fn address(&self) -> Res<IpAddr> {
        self.broker.parse().map_err(|_| {
            format!(
                "broker: \"{}\" is not an IP address; write 10.0.0.1 or fd00::1",
                self.broker
            )
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The client waits until this time before it connects.
    Waiting(i64),
    /// The client is connecting, and the broker has not accepted it yet; the attempt fails at this time.
    Connecting(i64),
    Up,
    Over,
}

/// A connection to the broker.
struct Connection {
    socket: TcpStream,
    tls: Option<Channel>,
    /// Whether TCP's handshake is complete.
    established: bool,
    /// Whether the broker has accepted the login.
    welcome: bool,
}

pub struct Link {
    pub(super) broker: Broker,
    pub(super) session: Session,
    pub(super) state: State,
    pub(super) waits: Waits,
    churn: Option<Churn>,
    /// The planned end of the present connection; None: it ends with the session.
    pub(super) end: Option<End>,
    tls: Option<Tls>,
    address: IpAddr,
    connection: Option<Connection>,
    received: u64,
    foreign: u64,
    pub delivery: Delivery,
    /// A fault of the connection; if the connection ends, this text is the recorded reason.
    pub error: Option<String>,
}

impl Link {
    pub(super) fn new(
        session: Session,
        broker: Broker,
        address: IpAddr,
        delivery: Delivery,
    ) -> Res<Self> {
        Ok(Self {
            tls: broker.tls.as_ref().map(Tls::new).transpose()?,
            waits: Waits::new(broker.reconnect_ns, broker.backoff),
            churn: broker.lives.map(Churn::new),
            end: None,
            broker,
            session,
            state: State::Over,
            address,
            connection: None,
            received: 0,
            foreign: 0,
            delivery,
            error: None,
        })
    }

    pub(super) fn connect(&mut self) -> Res<()> {
        // The socket has TCP_NODELAY, since the latency of messages is measured.
        let socket = socket::connect(self.address, self.broker.port, true, self.broker.marks)
            .map_err(|e| e.to_string())?;
        self.error = None;
        self.connection = Some(Connection {
            socket,
            tls: self.tls.as_ref().map(Tls::begin).transpose()?,
            established: false,
            welcome: false,
        });
        Ok(())
    }

    pub(super) fn hang_up(&mut self) {
        if let Some(Connection {
            socket,
            tls: Some(channel),
            established: true,
            ..
        }) = &mut self.connection
        {
            channel.close(socket.as_raw_fd());
        }
        self.connection = None;
        self.end = None;
    }

    /// Decrypts the bytes that the socket has received, and records the end of a handshake of TLS; returns
    /// None without a connection or without TLS.
    pub(super) fn decrypt(
        &mut self,
        bytes: &[u8],
        now: i64,
        out: &mut Vec<u8>,
    ) -> Option<Res<Vec<u8>>> {
        let connection = self.connection.as_mut()?;
        let channel = connection.tls.as_mut()?;
        let mut plain = Vec::new();
        let done = channel.read(bytes, &mut plain);
        // This sends an answer of the handshake, or the alert with the reason for the connection's end.
        channel.flush(connection.socket.as_raw_fd());
        if let Some(detail) = channel.take_handshake() {
            self.note("tls", now, &detail, out);
        }
        Some(done.map(|()| plain))
    }

    /// Returns whether the socket is to be polled for writing. `has_output`: the protocol has bytes to send.
    pub(super) fn wants_write(&self, has_output: bool) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| match &connection.tls {
                _ if !connection.established => true,
                Some(channel) => channel.wants_write(has_output),
                None => has_output,
            })
    }

    /// Returns the result of TCP's handshake, and notes its success; None without a connection.
    pub(super) fn take_error(&mut self) -> Option<Res<()>> {
        let connection = self.connection.as_mut()?;
        Some(match connection.socket.take_error() {
            Ok(None) => {
                connection.established = true;
                Ok(())
            }
            Ok(Some(e)) | Err(e) => Err(e.to_string()),
        })
    }

    pub(super) fn fd(&self) -> Option<RawFd> {
        self.connection
            .as_ref()
            .map(|connection| connection.socket.as_raw_fd())
    }

    pub(super) fn is_established(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| connection.established)
    }

    pub(super) fn is_welcome(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| connection.welcome)
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals {
            received: self.received,
            foreign: self.foreign,
            ..Totals::default()
        };
        self.delivery.add_to(&mut totals);
        totals
    }

    /// Returns the client's name in records.
    pub fn endpoint(&self) -> &str {
        &self.session.endpoint
    }

    /// Returns whether the client may publish.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Records that the broker has accepted the login, and makes the next wait the shortest again.
    pub fn welcome(&mut self, detail: &str, now: i64, out: &mut Vec<u8>) {
        if let Some(connection) = &mut self.connection {
            connection.welcome = true;
        }
        self.waits.accepted();
        self.end = self.churn.as_mut().map(|churn| churn.take_next(now));
        self.note("connected", now, detail, out);
    }

    /// Lets the client publish from now on.
    pub fn ready(&mut self) {
        self.state = State::Up;
    }

    /// Records a step of the session.
    pub fn note(&self, what: &str, now: i64, detail: &str, out: &mut Vec<u8>) {
        self.session.record(what, now, detail, out);
    }

    /// Records an R record for a message from the broker, or counts it as foreign if it has no identity
    /// (`who` is None); `again`: the broker marks it as a possible duplicate.
    pub fn received(&mut self, again: bool, who: Option<Identity>, now: i64, out: &mut Vec<u8>) {
        match who {
            Some(who) => {
                self.received += 1;
                records::received(out, who.flow, who.seq, self.endpoint(), 0, now, again);
            }
            None => self.foreign += 1,
        }
    }

    /// Records a reply that the client `by` has sent to a request of this client's flow, and settles the
    /// request with its last missing reply. Counts a reply to another flow as foreign.
    pub fn replied(&mut self, again: bool, who: &Identity, by: &str, now: i64, out: &mut Vec<u8>) {
        if self.delivery.flow() != Some(who.flow) {
            self.foreign += 1;
            return;
        }
        self.received += 1;
        records::received(out, who.flow, who.seq, by, 1, now, again);
        self.delivery.replied(who.seq, by, now, out);
    }

    /// Writes as much of `output` as the socket accepts and updates the ledger; returns whether any byte was
    /// written.
    pub fn write(&mut self, output: &mut Vec<u8>, now: i64, out: &mut Vec<u8>) -> bool {
        let Some(fd) = self.fd().filter(|_| self.is_established()) else {
            return false;
        };
        if self.tls.is_some() {
            return self.write_encrypted(fd, output, now, out);
        }
        let mut wrote = false;
        while !output.is_empty() {
            match os::write(fd, output) {
                Ok(n) => {
                    output.drain(..n);
                    self.delivery.written(n, now, out);
                    wrote = true;
                }
                // The buffer is full, or the connection is broken; in the second case the next read returns
                // the reason.
                Err(_) => return wrote,
            }
        }
        *output = Vec::new();
        wrote
    }

    /// Writes as `write` does, through TLS. A message counts as written once the socket has accepted the last
    /// TLS record with a part of it.
    fn write_encrypted(
        &mut self,
        fd: RawFd,
        output: &mut Vec<u8>,
        now: i64,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut wrote = false;
        while let Some(channel) = self.connection.as_mut().and_then(|c| c.tls.as_mut()) {
            if !channel.flush(fd) {
                break;
            }
            let left = channel.take_left();
            let more = channel.encrypt(&output[left..]);
            if left > 0 {
                output.drain(..left);
                self.delivery.written(left, now, out);
                wrote = true;
            }
            if !more {
                break;
            }
        }
        wrote
    }
}
