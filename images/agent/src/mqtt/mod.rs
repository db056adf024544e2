//! One MQTT client: an open-loop publisher, a subscriber, or both, with every message accounted for.
//!
//! The protocol itself is a state machine without input and output (mqtt-protocol-core); the clock is an argument.
//! All times are the lab's clock in Unix nanoseconds.

mod delivery;
mod earlier;
mod exchange;
mod lifetime;
mod messages;
mod packets;
mod records;
mod session;
mod socket;

use crate::os::Res;
use crate::payload;
use crate::proto::{Mqtt, Totals};
use delivery::Delivery;
use mqtt_protocol_core::mqtt::connection::TimerKind;
use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Connects at the time.
    Waiting(i64),
    /// TCP or CONNACK outstanding until the time.
    Connecting(i64),
    Up,
    Over,
}

pub struct Client {
    spec: Mqtt,
    version: Version,
    broker: Ipv4Addr,
    state: State,
    t0_ns: Option<i64>,
    conn: Connection<ClientRole>,
    socket: Option<TcpStream>,
    established: bool,
    output: Vec<u8>,
    timers: Vec<(TimerKind, i64)>,
    subscribed: bool,
    delivery: Delivery,
    totals: Totals,
    closing: Option<String>,
}

impl Client {
    /// Checks the specification; nothing happens before `go`.
    pub fn new(spec: Mqtt) -> Res<Self> {
        let version = packets::version(&spec.version)?;
        let broker = spec.broker.parse().map_err(|_| {
            format!(
                "broker: \"{}\" is not an IPv4 address; write four numbers with dots",
                spec.broker
            )
        })?;
        if let Some(p) = &spec.publish {
            packets::qos(p.qos)?;
            payload::validate(&p.payload, &spec.client_id, p.payload_bytes)?;
        }
        Ok(Self {
            conn: session::begin(version, spec.keepalive_s),
            delivery: Delivery::new(&spec),
            spec,
            version,
            broker,
            state: State::Over,
            t0_ns: None,
            socket: None,
            established: false,
            output: Vec::new(),
            timers: Vec::new(),
            subscribed: false,
            totals: Totals::default(),
            closing: None,
        })
    }

    /// Offsets count from t0; the client connects at its time.
    pub fn go(&mut self, t0_ns: i64) {
        if self.t0_ns.is_none() {
            self.t0_ns = Some(t0_ns);
            self.state = State::Waiting(t0_ns + self.spec.connect_ns);
            self.delivery.go(&self.spec);
        }
    }

    pub fn connected(&self) -> bool {
        self.state == State::Up
    }

    pub fn totals(&self) -> Totals {
        let mut totals = self.totals;
        self.delivery.add_to(&mut totals);
        totals.connected = u64::from(self.connected());
        totals.clients = 1;
        totals
    }

    /// The socket, and whether writing is wanted.
    pub fn fd(&self) -> Option<(RawFd, bool)> {
        let write = !self.established || !self.output.is_empty();
        self.socket.as_ref().map(|s| (s.as_raw_fd(), write))
    }

    /// When `on_time` has something to do.
    pub fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let state = match self.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up | State::Over => None,
        };
        let end = (self.state != State::Over).then_some(t0 + self.spec.disconnect_ns);
        let tick = self.delivery.next_tick().map(|t| t0 + t);
        let timer = self.timers.iter().map(|(_, at)| *at).min();
        [state, end, tick, timer].into_iter().flatten().min()
    }

    /// Does what is due: schedule, connect, keep alive, leave.
    pub fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        self.delivery.schedule(t0, now, &self.spec, out);
        if self.state != State::Over && now >= t0 + self.spec.disconnect_ns {
            self.leave(now, out);
        }
        match self.state {
            State::Waiting(at) if now >= at => self.connect(now, out),
            State::Connecting(until) if now >= until => self.lost("no CONNACK in time", now, out),
            _ => {}
        }
        self.fire_timers(now, out);
        self.pump(now, out);
    }

    /// Stops scheduling new messages.
    pub fn freeze(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.delivery.schedule(t0, now, &self.spec, out);
        }
        self.delivery.freeze();
    }

    /// Disconnects and writes down what became of every message.
    pub fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        self.freeze(now, out);
        if self.state != State::Over {
            self.leave(now, out);
        }
        self.delivery.finish(&self.spec, out);
    }
}
