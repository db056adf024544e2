//! A client's line to its broker: where it stands, the socket, and what is told of both.

use super::delivery::Delivery;
use crate::os::{self, Res};
use crate::proto::{Session, Totals};
use crate::roles::socket::{self, Marks};
use crate::{payload, records};
use serde::Deserialize;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// The broker, as the `spec` of every client of one says it.
#[derive(Debug, Clone, Deserialize)]
pub struct Broker {
    /// Address.
    broker: String,
    port: u16,
    /// Wait before a new attempt; 0: never reconnect.
    pub reconnect_ns: i64,
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
    /// Connects at the time.
    Waiting(i64),
    /// Not ready yet, and given up at the time.
    Connecting(i64),
    Up,
    Over,
}

/// A connection to the broker.
struct Link {
    socket: TcpStream,
    /// TCP's handshake is over.
    established: bool,
    /// The broker has taken the login.
    welcome: bool,
}

pub struct Line {
    pub(super) broker: Broker,
    pub(super) session: Session,
    pub(super) state: State,
    address: IpAddr,
    link: Option<Link>,
    received: u64,
    foreign: u64,
    pub delivery: Delivery,
    /// What is wrong with the connection: the reason, should it end.
    pub trouble: Option<String>,
}

impl Line {
    pub(super) fn new(
        session: Session,
        broker: Broker,
        address: IpAddr,
        delivery: Delivery,
    ) -> Self {
        Self {
            broker,
            session,
            state: State::Over,
            address,
            link: None,
            received: 0,
            foreign: 0,
            delivery,
            trouble: None,
        }
    }

    pub(super) fn connect(&mut self) -> io::Result<()> {
        // Latency is measured: small packets leave at once.
        let socket = socket::connect(self.address, self.broker.port, true, self.broker.marks)?;
        self.trouble = None;
        self.link = Some(Link {
            socket,
            established: false,
            welcome: false,
        });
        Ok(())
    }

    pub(super) fn hang_up(&mut self) {
        self.link = None;
    }

    /// What became of TCP's handshake; None: there is no connection.
    pub(super) fn take_error(&mut self) -> Option<Res<()>> {
        let link = self.link.as_mut()?;
        Some(match link.socket.take_error() {
            Ok(None) => {
                link.established = true;
                Ok(())
            }
            Ok(Some(e)) | Err(e) => Err(e.to_string()),
        })
    }

    pub(super) fn fd(&self) -> Option<RawFd> {
        self.link.as_ref().map(|link| link.socket.as_raw_fd())
    }

    pub(super) fn is_established(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.established)
    }

    pub(super) fn is_welcome(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.welcome)
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

    /// The client's name in records.
    pub fn endpoint(&self) -> &str {
        &self.session.endpoint
    }

    /// Whether messages may be published.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// The broker has taken the login.
    pub fn welcome(&mut self, detail: &str, now: i64, out: &mut Vec<u8>) {
        if let Some(link) = &mut self.link {
            link.welcome = true;
        }
        self.note("connected", now, detail, out);
    }

    /// Messages may be published.
    pub fn ready(&mut self) {
        self.state = State::Up;
    }

    /// Writes down a step of the session.
    pub fn note(&self, what: &str, now: i64, detail: &str, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, what, now, detail);
    }

    /// Writes down a message from the broker; `again`: it says that it may have been there before.
    pub fn received(&mut self, again: bool, body: &[u8], now: i64, out: &mut Vec<u8>) {
        match payload::read(body) {
            Some(who) => {
                self.received += 1;
                records::received(out, who.flow, who.seq, self.endpoint(), 0, now, again);
            }
            None => self.foreign += 1,
        }
    }

    /// Writes what the socket takes, away from `output`, and learns which messages have left; whether any byte has.
    pub fn write(&mut self, output: &mut Vec<u8>, now: i64, out: &mut Vec<u8>) -> bool {
        let Some(fd) = self.fd().filter(|_| self.is_established()) else {
            return false;
        };
        let mut wrote = false;
        while !output.is_empty() {
            match os::write(fd, output) {
                Ok(n) => {
                    output.drain(..n);
                    self.delivery.written(n, now, out);
                    wrote = true;
                }
                // Full; or broken, which the read that follows learns with the reason.
                Err(_) => return wrote,
            }
        }
        *output = Vec::new();
        wrote
    }
}
