//! Encodes and parses the methods of AMQP 0-9-1 that the client uses.

use super::spec::{Consume, Exchange, Spec};
use super::wire::{Fields, METHOD, put_frame, put_long_bytes, put_short_text};

/// The channel of all methods except those of the connection, which use channel 0.
pub const CHANNEL: u16 = 1;
const SUCCESS: u16 = 200; // reply code, as of HTTP
/// Extensions that the client announces, so that the broker uses them.
const CAPABILITIES: [&str; 3] = ["publisher_confirms", "basic.nack", "connection.blocked"];

/// A method from the broker.
#[derive(Debug, PartialEq, Eq)]
pub enum Method {
    Start {
        mechanisms: String,
    },
    Tune {
        frame_most: u32,
    },
    ConnectionOpen,
    ConnectionClose(String),
    ConnectionClosed,
    Blocked(String),
    Unblocked,
    ChannelOpen,
    ChannelClose(String),
    ExchangeDeclared,
    QueueDeclared {
        name: String,
    },
    QueueBound,
    PrefetchSet,
    Consuming,
    ConsumerCancelled,
    ConfirmsOn,
    Deliver {
        tag: u64,
        redelivered: bool,
    },
    Confirmed {
        tag: u64,
        multiple: bool,
        taken: bool,
    },
    Other(u16, u16),
}

/// Parses a method from the broker; `Other` if the client does not use it, None if arguments are missing.
pub fn understand(payload: &[u8]) -> Option<Method> {
    let mut fields = Fields(payload);
    let (class, method) = (fields.short()?, fields.short()?);
    Some(match (class, method) {
        (10, 10) => start(&mut fields)?,
        (10, 30) => {
            fields.short()?;
            let frame_most = fields.long()?;
            Method::Tune { frame_most }
        }
        (10, 41) => Method::ConnectionOpen,
        (10, 50) => Method::ConnectionClose(reason(&mut fields)?),
        (10, 51) => Method::ConnectionClosed,
        (10, 60) => Method::Blocked(fields.short_text()?),
        (10, 61) => Method::Unblocked,
        (20, 11) => Method::ChannelOpen,
        (20, 40) => Method::ChannelClose(reason(&mut fields)?),
        (40, 11) => Method::ExchangeDeclared,
        (50, 11) => Method::QueueDeclared {
            name: fields.short_text()?,
        },
        (50, 21) => Method::QueueBound,
        (60, 11) => Method::PrefetchSet,
        (60, 21) => Method::Consuming,
        (60, 30) => Method::ConsumerCancelled,
        (60, 60) => {
            fields.short_text()?;
            let tag = fields.longlong()?;
            let redelivered = fields.octet()? != 0;
            Method::Deliver { tag, redelivered }
        }
        (60, 80 | 120) => Method::Confirmed {
            tag: fields.longlong()?,
            multiple: fields.octet()? & 1 != 0,
            taken: method == 80,
        },
        (85, 11) => Method::ConfirmsOn,
        _ => Method::Other(class, method),
    })
}

fn start(fields: &mut Fields) -> Option<Method> {
    fields.short()?; // version
    fields.long_bytes()?; // server's properties
    let mechanisms = String::from_utf8_lossy(fields.long_bytes()?).into_owned();
    Some(Method::Start { mechanisms })
}

fn reason(fields: &mut Fields) -> Option<String> {
    let code = fields.short()?;
    Some(format!("{code} {}", fields.short_text()?))
}

fn method(
    out: &mut Vec<u8>,
    channel: u16,
    (class, method): (u16, u16),
    write: impl FnOnce(&mut Vec<u8>),
) {
    put_frame(out, METHOD, channel, |out| {
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&method.to_be_bytes());
        write(out);
    });
}

/// Appends the method connection.start-ok: a login with the mechanism PLAIN.
pub fn start_ok(out: &mut Vec<u8>, spec: &Spec) {
    let mut known = Vec::new();
    for name in CAPABILITIES {
        put_short_text(&mut known, name);
        known.extend_from_slice(b"t\x01");
    }
    let mut properties = Vec::new();
    put_short_text(&mut properties, "product");
    properties.push(b'S');
    put_long_bytes(&mut properties, b"vNET");
    put_short_text(&mut properties, "capabilities");
    properties.push(b'F');
    put_long_bytes(&mut properties, &known);
    let login = format!("\0{}\0{}", spec.user, spec.password);
    method(out, 0, (10, 11), |out| {
        put_long_bytes(out, &properties);
        put_short_text(out, "PLAIN");
        put_long_bytes(out, login.as_bytes());
        put_short_text(out, "en_US");
    });
}

/// Appends the method connection.tune-ok: one channel, the largest frame and the heartbeat.
pub fn tune_ok(out: &mut Vec<u8>, frame_most: u32, heartbeat_s: u16) {
    method(out, 0, (10, 31), |out| {
        out.extend_from_slice(&CHANNEL.to_be_bytes());
        out.extend_from_slice(&frame_most.to_be_bytes());
        out.extend_from_slice(&heartbeat_s.to_be_bytes());
    });
}

pub fn open(out: &mut Vec<u8>, vhost: &str) {
    method(out, 0, (10, 40), |out| {
        put_short_text(out, vhost);
        out.extend_from_slice(&[0, 0]);
    });
}

pub fn close(out: &mut Vec<u8>) {
    method(out, 0, (10, 50), |out| {
        out.extend_from_slice(&SUCCESS.to_be_bytes());
        out.extend_from_slice(&[0; 5]); // no text, no method that failed
    });
}

pub fn close_ok(out: &mut Vec<u8>) {
    method(out, 0, (10, 51), |_| {});
}

pub fn channel_open(out: &mut Vec<u8>) {
    method(out, CHANNEL, (20, 10), |out| out.push(0));
}

pub fn channel_close_ok(out: &mut Vec<u8>) {
    method(out, CHANNEL, (20, 41), |_| {});
}

pub fn declare_exchange(out: &mut Vec<u8>, exchange: &Exchange) {
    method(out, CHANNEL, (40, 10), |out| {
        out.extend_from_slice(&[0; 2]);
        put_short_text(out, &exchange.name);
        put_short_text(out, &exchange.kind);
        out.push(u8::from(exchange.durable) << 1); // passive, durable, auto-delete, internal, no-wait
        put_long_bytes(out, &[]);
    });
}

/// Appends the method queue.declare; a queue without a name is exclusive to the connection and ends with it.
pub fn declare_queue(out: &mut Vec<u8>, consume: &Consume) {
    let own = consume.queue.is_empty();
    method(out, CHANNEL, (50, 10), |out| {
        out.extend_from_slice(&[0; 2]);
        put_short_text(out, &consume.queue);
        // The bits: passive, durable, exclusive, auto-delete, no-wait.
        out.push(u8::from(consume.durable && !own) << 1 | u8::from(own) << 2 | u8::from(own) << 3);
        put_long_bytes(out, &[]);
    });
}

pub fn bind_queue(out: &mut Vec<u8>, queue: &str, exchange: &str, key: &str) {
    method(out, CHANNEL, (50, 20), |out| {
        out.extend_from_slice(&[0; 2]);
        put_short_text(out, queue);
        put_short_text(out, exchange);
        put_short_text(out, key);
        out.push(0);
        put_long_bytes(out, &[]);
    });
}

pub fn set_prefetch(out: &mut Vec<u8>, count: u16) {
    method(out, CHANNEL, (60, 10), |out| {
        out.extend_from_slice(&[0; 4]); // no bound in bytes
        out.extend_from_slice(&count.to_be_bytes());
        out.push(0);
    });
}

pub fn consume(out: &mut Vec<u8>, queue: &str, acknowledge: bool) {
    method(out, CHANNEL, (60, 20), |out| {
        out.extend_from_slice(&[0; 2]);
        put_short_text(out, queue);
        put_short_text(out, ""); // the broker names the consumer
        out.push(u8::from(!acknowledge) << 1); // no-local, no-ack, exclusive, no-wait
        put_long_bytes(out, &[]);
    });
}

pub fn turn_confirms_on(out: &mut Vec<u8>) {
    method(out, CHANNEL, (85, 10), |out| out.push(0));
}

pub fn publish(out: &mut Vec<u8>, exchange: &str, key: &str) {
    method(out, CHANNEL, (60, 40), |out| {
        out.extend_from_slice(&[0; 2]);
        put_short_text(out, exchange);
        put_short_text(out, key);
        out.push(0); // neither mandatory nor immediate
    });
}

pub fn acknowledge(out: &mut Vec<u8>, tag: u64) {
    method(out, CHANNEL, (60, 80), |out| {
        out.extend_from_slice(&tag.to_be_bytes());
        out.push(0); // this one alone
    });
}
