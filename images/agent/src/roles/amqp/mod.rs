//! Implements an AMQP 0-9-1 client, which publishes in an open loop, consumes, or does both, and accounts for
//! every message.
//!
//! This module connects the protocol's state machine, which does no I/O, with the link to the broker and the
//! delivery ledger.

mod connection;
mod methods;
mod spec;
mod wire;

use super::Role;
use super::broker_client::{Client, Link, Protocol, Rules};
use super::socket::BACKLOG_BYTES;
use crate::os::Res;
use crate::payload;
use crate::proto::{self, Item};
use connection::{Connection, Event};
use spec::{Publish, Spec};

/// The longest name or key in bytes (AMQP's short string).
const LONGEST_TEXT: usize = 255;

struct Amqp {
    spec: Spec,
    /// The protocol's state; None without a socket.
    connection: Option<Connection>,
}

/// Creates a client for an item of `workload`; an error if its settings are invalid, for example a name
/// longer than `LONGEST_TEXT`.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    check(&spec)?;
    let broker = spec.broker.clone();
    let rules = spec.publish.as_ref().map(rules);
    let connection = None;
    let amqp = Amqp { spec, connection };
    Ok(Box::new(Client::new(item, broker, rules, amqp)?))
}

fn check(spec: &Spec) -> Res<()> {
    let mut texts = vec![("vhost", &spec.vhost)];
    if let Some(publish) = &spec.publish {
        texts.push(("publish.exchange.name", &publish.exchange.name));
        texts.push(("publish.key", &publish.key));
    }
    if let Some(consume) = &spec.consume {
        texts.push(("consume.exchange.name", &consume.exchange.name));
        texts.push(("consume.queue", &consume.queue));
        texts.extend(consume.keys.iter().map(|key| ("consume.keys", key)));
    }
    match texts.iter().find(|(_, text)| text.len() > LONGEST_TEXT) {
        Some((place, _)) => Err(format!(
            "{place}: more than {LONGEST_TEXT} bytes; write less"
        )),
        None => Ok(()),
    }
}

/// Returns the rules of delivery: messages that were unconfirmed when the connection was lost are sent again.
/// So with confirms, messages can be duplicated but not lost.
fn rules(publish: &Publish) -> Rules {
    Rules {
        acknowledged: publish.confirms,
        resends: true,
        keeps_session: false,
        inflight: publish.inflight,
        queue: publish.queue,
        own_content: false,
        replies: 0,
    }
}

impl Amqp {
    fn apply(events: Vec<Event>, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        for event in events {
            match event {
                Event::Connected => link.welcome("", now, out),
                Event::Subscribed => link.note("subscribed", now, "", out),
                Event::Ready => link.ready(),
                Event::Confirmed {
                    tag,
                    multiple: true,
                    taken,
                } => link.delivery.settled_to(tag, taken, now, out),
                Event::Confirmed { tag, taken, .. } => link.delivery.settled(tag, taken, now, out),
                Event::Message { redelivered, body } => {
                    link.received(redelivered, payload::read(&body), now, out);
                }
                Event::Warning(text) => link.note("failed", now, &text, out),
                Event::Closed(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn write(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) {
        if let Some(connection) = &mut self.connection
            && link.write(&mut connection.output, now, out)
        {
            connection.sent(now);
        }
    }
}

impl Protocol for Amqp {
    const LATE: &'static str = "not ready in time";

    fn begin(&mut self, now: i64) {
        self.connection = Some(Connection::new(self.spec.clone(), now));
    }

    fn established(&mut self, _line: &mut Link, _now: i64, _out: &mut Vec<u8>) -> Res<()> {
        Ok(()) // the protocol header already waits in the output
    }

    fn receive(&mut self, bytes: &[u8], link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let mut events = Vec::new();
        if let Some(connection) = &mut self.connection {
            connection.receive(bytes, now, &mut events);
        }
        Self::apply(events, link, now, out)
    }

    fn deadline(&self) -> Option<i64> {
        self.connection.as_ref().and_then(Connection::deadline)
    }

    fn on_time(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let mut events = Vec::new();
        if let Some(connection) = &mut self.connection {
            connection.on_time(now, &mut events);
        }
        Self::apply(events, link, now, out)
    }

    fn pump(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        if let Some(connection) = self.connection.as_mut().filter(|_| link.is_up()) {
            while connection.output.len() < BACKLOG_BYTES
                && let Some((_, body)) = link.delivery.next()
            {
                let tag = connection.publish(&body);
                link.delivery.emitted(tag, connection.output.len());
            }
        }
        self.write(link, now, out);
        Ok(())
    }

    fn has_output(&self) -> bool {
        let output = self.connection.as_ref().map(|one| &one.output);
        output.is_some_and(|output| !output.is_empty())
    }

    fn leave(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) {
        if let Some(connection) = &mut self.connection {
            connection.leave();
        }
        self.write(link, now, out);
    }

    fn last_words(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) {
        self.write(link, now, out);
    }

    fn end(&mut self) {
        self.connection = None;
    }
}

/// Passes a broker's bytes, in two pieces, to a client that both publishes and consumes.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let exchange = serde_json::json!({"name": "m", "type": "topic", "durable": true});
    let spec = serde_json::json!({
        "broker": "127.0.0.1", "port": 5672, "vhost": "/", "user": "guest", "password": "guest", "heartbeat_s": 4,
        "reconnect_ns": 1, "publish": {
            "exchange": exchange, "key": "k.1", "persistent": true, "confirms": true, "inflight": 5, "queue": 9,
        },
        "consume": {
            "exchange": exchange, "keys": ["k.#"], "queue": "q", "durable": true, "prefetch": 7, "acknowledge": true,
        },
    });
    let mut connection = Connection::new(proto::parse("fuzz", spec).expect("a spec"), 0);
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let mut events = Vec::new();
    connection.receive(one, 1, &mut events);
    connection.receive(other, 2, &mut events);
    connection.on_time(i64::MAX / 4, &mut events);
}

#[cfg(test)]
mod tests;
