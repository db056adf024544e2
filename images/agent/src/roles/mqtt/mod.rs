//! One MQTT client: an open-loop publisher, a subscriber, or both, with every message accounted for.
//!
//! The protocol itself is a state machine without input and output (mqtt-protocol-core); the clock is an argument.
//! All times are the lab's clock in Unix nanoseconds.

mod exchange;
mod lifetime;
mod messages;
mod packets;
mod session;
mod spec;

use super::Role;
use super::delivery::{Delivery, Rules};
use super::sends::Sends;
use crate::os::Res;
use crate::proto::{self, Item, Session, Totals};
use mqtt_protocol_core::mqtt::connection::TimerKind;
use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};
use spec::Spec;
use std::net::{IpAddr, TcpStream};
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
    spec: Spec,
    session: Session,
    version: Version,
    broker: IpAddr,
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

/// A client for an item of `workload`; its id is the name of its session's endpoint.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    Ok(Box::new(Client::new(item)?))
}

/// At QoS 1 a message is sent anew where its session is lost (a duplicate is allowed), at QoS 2 that could duplicate.
fn rules(spec: &Spec) -> Rules {
    let Some(publish) = &spec.publish else {
        return Rules::default();
    };
    Rules {
        acknowledged: publish.qos > 0,
        resends: publish.qos != 2,
        keeps_session: !spec.clean_session,
        inflight: publish.inflight,
        queue: publish.queue,
    }
}

impl Client {
    /// Checks the specification; nothing happens before `go`.
    fn new(item: Item) -> Res<Self> {
        let session = item.software.session;
        let spec: Spec = proto::parse("spec", item.software.spec)?;
        let version = packets::version(&spec.version)?;
        let broker = spec.broker.parse().map_err(|_| {
            format!(
                "broker: \"{}\" is not an IP address; write 10.0.0.1 or fd00::1",
                spec.broker
            )
        })?;
        let count = item.flows.len();
        let sends = match (&spec.publish, item.flows.into_iter().next()) {
            (None, None) => None,
            (Some(publish), Some(flow)) if count == 1 => {
                packets::qos(publish.qos)?;
                let earlier = item.earlier.get(&flow.number).cloned();
                Some(Sends::new(flow, &session, earlier)?)
            }
            _ => {
                return Err(format!(
                    "publish: goes with one flow, and {count} are given; give both or none"
                ));
            }
        };
        Ok(Self {
            conn: session::begin(version, spec.keepalive_s),
            delivery: Delivery::new(rules(&spec), sends),
            spec,
            session,
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
}

impl Role for Client {
    fn go(&mut self, t0_ns: i64) {
        if self.t0_ns.is_none() {
            self.t0_ns = Some(t0_ns);
            self.state = State::Waiting(t0_ns + self.session.connect_ns);
        }
    }

    fn connected(&self) -> bool {
        self.state == State::Up
    }

    fn totals(&self) -> Totals {
        let mut totals = self.totals;
        self.delivery.add_to(&mut totals);
        totals
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(socket) = &self.socket {
            wait_for(
                socket.as_raw_fd(),
                !self.established || !self.output.is_empty(),
            );
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        let state = match self.state {
            State::Waiting(at) | State::Connecting(at) => Some(at),
            State::Up | State::Over => None,
        };
        let end = (self.state != State::Over).then_some(t0 + self.session.disconnect_ns);
        let tick = self.delivery.next_tick().map(|t| t0 + t);
        let timer = self.timers.iter().map(|(_, at)| *at).min();
        [state, end, tick, timer].into_iter().flatten().min()
    }

    /// Schedule, connect, keep alive, leave.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        self.delivery.schedule(t0, now, out);
        if self.state != State::Over && now >= t0 + self.session.disconnect_ns {
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

    fn on_ready(&mut self, _fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        self.on_socket(revents, now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.delivery.schedule(t0, now, out);
        }
        self.delivery.freeze();
        if self.state != State::Over {
            self.leave(now, out);
        }
        self.delivery.finish(out);
    }
}
