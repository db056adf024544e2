//! One MQTT client: an open-loop publisher, a subscriber, or both, with every message accounted for.
//!
//! The protocol itself is a state machine without input and output (mqtt-protocol-core); the clock is an argument.
//! All times are the lab's clock in Unix nanoseconds.

mod delivery;
mod packets;
mod records;
mod socket;

use crate::clock;
use crate::os::{self, Res};
use crate::payload;
use crate::proto::{Mqtt, Totals};
use delivery::Delivery;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{Event, TimerKind};
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Packet};
use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};
use packets::Meaning;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// A connection attempt (TCP and CONNACK together) is given up after this time.
const CONNECT_LIMIT_NS: i64 = 10_000_000_000;
/// QoS 0 messages wait in the queue, not in this buffer, once so much is unsent.
const BACKLOG_BYTES: usize = 65_536;

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
        let mut conn = Connection::new(version);
        conn.set_auto_pub_response(true);
        // A broker that leaves a PINGREQ unanswered for a keepalive is gone.
        conn.set_pingresp_recv_timeout(u64::from(spec.keepalive_s) * 1000);
        Ok(Self {
            delivery: Delivery::new(&spec),
            spec,
            version,
            broker,
            state: State::Over,
            t0_ns: None,
            conn,
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

    fn fire_timers(&mut self, now: i64, out: &mut Vec<u8>) {
        while let Some(i) = self.timers.iter().position(|(_, at)| now >= *at) {
            let (kind, _) = self.timers.swap_remove(i);
            if kind == TimerKind::PingrespRecv {
                self.closing = Some("no PINGRESP in time".to_owned());
            }
            let events = self.conn.notify_timer_fired(kind);
            self.apply(events, now, out);
        }
    }

    fn connect(&mut self, now: i64, out: &mut Vec<u8>) {
        records::client(out, &self.spec.client_id, "connecting", now, "");
        match socket::connect(self.broker, self.spec.port) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.established = false;
                self.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    /// Handles the socket's readiness.
    pub fn on_ready(&mut self, revents: i16, now: i64, out: &mut Vec<u8>) {
        if !self.established && !self.establish(now, out) {
            return;
        }
        if revents & libc::POLLOUT != 0 {
            self.write(now, out);
        }
        if revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
            self.read(now, out);
        }
        self.pump(now, out);
    }

    fn establish(&mut self, now: i64, out: &mut Vec<u8>) -> bool {
        let error = match self.socket.as_ref().map(TcpStream::take_error) {
            Some(Ok(None)) => None,
            Some(Ok(Some(e)) | Err(e)) => Some(e.to_string()),
            None => return false,
        };
        if let Some(text) = error {
            self.lost(&text, now, out);
            return false;
        }
        self.established = true;
        match packets::connect(self.version, &self.spec) {
            Ok(packet) => self.send(packet, now, out),
            Err(text) => self.lost(&text, now, out),
        }
        self.socket.is_some()
    }

    fn send(&mut self, packet: Packet, now: i64, out: &mut Vec<u8>) {
        let events = self.conn.send(packet);
        self.apply(events, now, out);
    }

    fn read(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(fd) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        let mut chunk = [0u8; 16_384];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.lost("closed by the broker", now, out),
            // The process may have waited for a CPU before the read: what came in meanwhile is dated after it.
            Ok(n) => self.take(&chunk[..n], clock::lab_ns().max(now), out),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    fn take(&mut self, bytes: &[u8], now: i64, out: &mut Vec<u8>) {
        let mut cursor = Cursor::new(bytes);
        while (cursor.position() as usize) < bytes.len() && self.socket.is_some() {
            let events = self.conn.recv(&mut cursor);
            self.apply(events, now, out);
        }
    }

    /// Carries out what the state machine asks for, then writes.
    fn apply(&mut self, events: Vec<Event>, now: i64, out: &mut Vec<u8>) {
        let mut close = false;
        for event in events {
            match event {
                Event::RequestSendPacket { packet, .. } => self.emit(&packet),
                Event::NotifyPacketReceived(packet) => self.on_packet(packet, now, out),
                Event::RequestTimerReset { kind, duration_ms } => {
                    self.timers.retain(|(k, _)| *k != kind);
                    self.timers
                        .push((kind, now + duration_ms as i64 * 1_000_000));
                }
                Event::RequestTimerCancel(kind) => self.timers.retain(|(k, _)| *k != kind),
                Event::NotifyError(e) => self.closing = Some(format!("{e:?}")),
                Event::RequestClose => close = true,
                Event::NotifyPacketIdReleased(_) => {}
            }
        }
        self.write(now, out);
        if close && self.socket.is_some() {
            let why = self.closing.take().unwrap_or_else(|| "protocol".to_owned());
            self.lost(&why, now, out);
        }
    }

    fn emit(&mut self, packet: &Packet) {
        self.output
            .extend_from_slice(&packet.to_continuous_buffer());
        if let Some(id) = packets::outgoing_publish(packet) {
            self.delivery.emitted(id, self.output.len());
        }
    }

    /// Writes what the socket takes and learns which messages have left.
    fn write(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(fd) = self
            .socket
            .as_ref()
            .filter(|_| self.established)
            .map(AsRawFd::as_raw_fd)
        else {
            return;
        };
        while !self.output.is_empty() {
            match os::write(fd, &self.output) {
                Ok(n) => {
                    self.output.drain(..n);
                    self.delivery.written(n, now, &self.spec, out);
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                // The read that follows learns of the broken connection and says why.
                Err(_) => return,
            }
        }
        self.output = Vec::new();
    }

    fn on_packet(&mut self, packet: Packet, now: i64, out: &mut Vec<u8>) {
        match packets::understand(packet) {
            Meaning::Accepted { session } => self.on_accepted(session, now, out),
            Meaning::Refused(why) => self.lost(&format!("refused: {why}"), now, out),
            Meaning::Subscribed => {
                self.subscribed = true;
                records::client(out, &self.spec.client_id, "subscribed", now, "");
            }
            Meaning::SubscribeRefused(why) => {
                records::client(
                    out,
                    &self.spec.client_id,
                    "failed",
                    now,
                    &format!("subscription refused: {why}"),
                );
            }
            Meaning::Message { qos, dup, payload } => self.on_message(qos, dup, &payload, now, out),
            Meaning::Settled { id, taken } => {
                self.delivery.settled(id, taken, now, &self.spec, out)
            }
            // The state machine takes nothing more from here on; the end of the stream is not waited for.
            Meaning::Closing(why) => self.lost(&why, now, out),
            Meaning::Nothing => {}
        }
    }

    fn on_accepted(&mut self, session: bool, now: i64, out: &mut Vec<u8>) {
        self.state = State::Up;
        let detail = if session {
            "session present"
        } else {
            "new session"
        };
        records::client(out, &self.spec.client_id, "connected", now, detail);
        if !session {
            self.delivery.session_lost(&self.spec, out);
        }
        if self.spec.subscribe.is_empty() || (session && self.subscribed) {
            return;
        }
        let packet = self
            .conn
            .acquire_packet_id()
            .map_err(|e| format!("{e:?}"))
            .and_then(|id| packets::subscribe(self.version, id, &self.spec));
        match packet {
            Ok(packet) => self.send(packet, now, out),
            Err(text) => records::client(out, &self.spec.client_id, "failed", now, &text),
        }
    }

    fn on_message(&mut self, qos: u8, dup: bool, bytes: &[u8], now: i64, out: &mut Vec<u8>) {
        match payload::read(bytes) {
            Some(who) => {
                self.totals.received += 1;
                records::received(
                    out,
                    &self.spec.client_id,
                    &who.publisher,
                    who.seq,
                    qos,
                    dup,
                    now,
                );
            }
            None => self.totals.foreign += 1,
        }
    }

    /// Hands queued messages to the protocol while the window is open.
    fn pump(&mut self, now: i64, out: &mut Vec<u8>) {
        let room = |c: &Self| {
            c.conn
                .get_receive_maximum_vacancy_for_send()
                .is_none_or(|n| n > 0)
        };
        while self.state == State::Up && self.output.len() < BACKLOG_BYTES && room(self) {
            let Some((level, body)) = self.delivery.next(&self.spec) else {
                return;
            };
            let id = if level > 0 {
                self.conn.acquire_packet_id().ok()
            } else {
                None
            };
            let topic = self.spec.publish.as_ref().map_or("", |p| p.topic.as_str());
            self.delivery.given(id);
            match packets::publish(self.version, id, level, topic, body) {
                Ok(packet) => self.send(packet, now, out),
                Err(text) => records::client(out, &self.spec.client_id, "failed", now, &text),
            }
            self.delivery.refused(&self.spec, out);
        }
    }

    /// The connection (or the attempt) is over; what follows is the reconnect policy.
    fn lost(&mut self, why: &str, now: i64, out: &mut Vec<u8>) {
        let what = if self.state == State::Up {
            "disconnected"
        } else {
            "failed"
        };
        let why = self.closing.take().unwrap_or_else(|| why.to_owned());
        records::client(out, &self.spec.client_id, what, now, &why);
        self.close(out);
        self.state = match self.spec.reconnect_ns {
            0 => State::Over,
            wait => State::Waiting(now + wait),
        };
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.socket = None;
        self.established = false;
        self.output = Vec::new();
        self.timers.clear();
        // Only releases packet ids and cancels timers: nothing to carry out on a closed socket.
        drop(self.conn.notify_closed());
        self.delivery.connection_lost(&self.spec, out);
    }

    /// Says goodbye and never comes back.
    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        let was_up = self.state == State::Up;
        // From here on a close by the broker is the end that we asked for.
        self.state = State::Over;
        if was_up {
            if let Ok(packet) = packets::disconnect(self.version) {
                let events = self.conn.send(packet);
                for event in events {
                    if let Event::RequestSendPacket { packet, .. } = event {
                        self.emit(&packet);
                    }
                }
                self.write(now, out);
            }
            records::client(out, &self.spec.client_id, "disconnected", now, "as planned");
        }
        self.close(out);
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
