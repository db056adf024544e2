//! Implements an MQTT client, which publishes in an open loop, subscribes, or does both, and accounts for
//! every message.
//!
//! The protocol is a state machine without I/O (mqtt-protocol-core).

mod content;
mod exchange;
mod identifiers;
mod messages;
mod packets;
mod pauses;
mod requests;
mod session;
mod sparkplug;
mod spec;
mod websocket;

use super::Role;
use super::broker_client::{Client, Link, Protocol, Rules};
use crate::os::Res;
use crate::proto::{self, Item};
#[cfg(feature = "fuzzing")]
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{Event, TimerKind};
use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};
use pauses::Pauses;
use requests::Replies;
use sparkplug::Numbers;
use spec::{Publish, Spec};
use websocket::WebSocket;

struct Mqtt {
    spec: Spec,
    version: Version,
    conn: Connection<ClientRole>,
    websocket: Option<WebSocket>,
    output: Vec<u8>,
    timers: Vec<(TimerKind, i64)>,
    subscribed: bool,
    /// The number of SUBSCRIBE packets of this connection that have no answer yet.
    subscribing: usize,
    pauses: Pauses,
    replies: Replies,
    numbers: Numbers,
    /// The next planned change of the subscription.
    change_ns: Option<i64>,
    /// Whether the broker has accepted a login before.
    accepted_once: bool,
}

/// Creates a client for an item of `workload`; its client id is that of the settings, or else the name of the
/// session's endpoint. An error if the settings are invalid.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    let version = packets::version(&spec.version)?;
    if let Some(publish) = &spec.publish {
        spec::qos(publish.qos)?;
    }
    let broker = spec.broker.clone();
    if let Some(will) = &spec.will {
        spec::qos(will.qos)?;
    }
    let keeps_session = spec.keeps_session();
    let spans = spec
        .subscribe
        .iter()
        .flat_map(|one| one.unsubscribed_ns.clone())
        .collect();
    let rules = spec.publish.as_ref().map(|one| rules(one, keeps_session));
    let mut mqtt = Mqtt {
        conn: session::begin(version, spec.keepalive_s),
        websocket: spec.websocket.clone().map(WebSocket::new),
        spec,
        version,
        output: Vec::new(),
        timers: Vec::new(),
        subscribed: false,
        subscribing: 0,
        pauses: Pauses::new(spans),
        replies: Replies::default(),
        numbers: Numbers::default(),
        change_ns: None,
        accepted_once: false,
    };
    mqtt.choose_aliases();
    Ok(Box::new(Client::new(item, broker, rules, mqtt)?))
}

/// Passes a broker's bytes to a client; the first byte selects the version. Catches panics of the library, as
/// a node does.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let version = ["5", "3.1.1"][usize::from(bytes.first().copied().unwrap_or(0) % 2)];
    let spec = serde_json::json!({
        "broker": "127.0.0.1", "port": 1, "version": version, "keepalive_s": 30, "clean_session": false,
        "subscribe": [{"topic": "a/#", "qos": 2}], "reconnect_ns": 1,
    });
    let spec: Spec = proto::parse("fuzz", spec).expect("a spec");
    let version = packets::version(version).expect("a version");
    let mut conn = session::begin(version, 30);
    _ = conn.send(packets::connect(version, "c", false, None, &spec).expect("a packet"));
    let mut cursor = Cursor::new(bytes.get(1..).unwrap_or_default());
    while (cursor.position() as usize) < cursor.get_ref().len() {
        let ends_the_process = std::panic::take_hook(); // the fuzzer's hook aborts even at panics that are caught
        std::panic::set_hook(Box::new(|_| {}));
        let events = session::receive(&mut conn, &mut cursor);
        std::panic::set_hook(ends_the_process);
        let Ok(events) = events else {
            return;
        };
        for event in events {
            match event {
                Event::NotifyPacketReceived(packet) => _ = packets::understand(packet),
                Event::RequestClose => return,
                _ => {}
            }
        }
    }
}

/// Returns the rules of delivery: after a lost session the client sends a message of QoS 1 again, since
/// duplicates are allowed, and a message of QoS 2 not.
fn rules(publish: &Publish, keeps_session: bool) -> Rules {
    Rules {
        acknowledged: publish.qos > 0,
        resends: publish.qos != 2,
        keeps_session,
        inflight: publish.inflight,
        queue: publish.queue,
        own_content: publish.content.is_some(),
        replies: publish.request.as_ref().map_or(0, |one| one.receivers),
    }
}

impl Mqtt {
    /// Sends CONNECT. It has the flag for a clean session if the settings require it, except for a session
    /// that continues.
    fn log_in(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        // A session that outlives connections begins with a clean session, and then continues.
        let continues = self.accepted_once && self.spec.keeps_session();
        let clean = self.spec.clean_session && !continues;
        let id = self.spec.client_id.as_deref().unwrap_or(link.endpoint());
        let id = id.to_owned();
        let death = self.death_of_next(now);
        let packet = packets::connect(self.version, &id, clean, death, &self.spec)?;
        self.send(packet, link, now, out)
    }

    /// Makes the state machine replace topics by aliases, if the settings require it.
    fn choose_aliases(&mut self) {
        self.conn
            .set_auto_map_topic_alias_send(self.spec.uses_aliases());
    }

    /// Appends DISCONNECT to the output, and the end of the WebSocket.
    fn disconnect(&mut self, link: &mut Link) -> Res<()> {
        for event in self.conn.send(packets::disconnect(self.version)?) {
            if let Event::RequestSendPacket { packet, .. } = event {
                self.emit(&packet, link)?;
            }
        }
        if self.websocket.is_some() {
            websocket::close(&mut self.output)?;
        }
        Ok(())
    }
}

impl Protocol for Mqtt {
    const LATE: &'static str = "no CONNACK in time";

    fn go(&mut self, t0_ns: i64) {
        self.pauses.go(t0_ns);
        self.change_ns = self.pauses.next(t0_ns);
    }

    fn begin(&mut self, _now: i64) {}

    fn established(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let Some(websocket) = &mut self.websocket else {
            return self.log_in(link, now, out);
        };
        websocket.begin(&mut self.output)?;
        link.write(&mut self.output, now, out);
        Ok(())
    }

    fn receive(&mut self, bytes: &[u8], link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let Some(websocket) = &mut self.websocket else {
            return self.take(bytes, link, now, out);
        };
        let mut plain = Vec::new();
        let opened = websocket.receive(bytes, &mut plain, &mut self.output);
        if matches!(opened, Ok(true)) {
            self.log_in(link, now, out)?;
        }
        link.write(&mut self.output, now, out);
        self.take(&plain, link, now, out)?;
        opened.map(drop)
    }

    fn deadline(&self) -> Option<i64> {
        let timers = self.timers.iter().map(|(_, at)| *at);
        timers.chain(self.change_ns).min()
    }

    fn on_time(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        if self.change_ns.is_some_and(|at| now >= at) {
            self.change_ns = self.pauses.next(now);
            self.change_subscription(link, now, out)?;
        }
        self.fire_timers(link, now, out)
    }

    fn pump(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        self.publish(link, now, out)
    }

    fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Writes the rest of the output; new output is written when it is produced.
    fn on_room(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) {
        link.write(&mut self.output, now, out);
    }

    fn leave(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) {
        let died = self.die(link, now, out);
        match died.and_then(|()| self.disconnect(link)) {
            Ok(()) => drop(link.write(&mut self.output, now, out)),
            Err(why) => link.note("failed", now, &why, out),
        }
    }

    fn end(&mut self) {
        self.output = Vec::new();
        self.timers.clear();
        self.subscribing = 0;
        let keeps = self.spec.keeps_session();
        if !keeps {
            self.replies.session_lost();
        }
        self.conn = session::carry_over(&self.conn, self.version, self.spec.keepalive_s, keeps);
        self.choose_aliases();
    }
}
