//! Implements requests and replies (MQTT 5, 4.10): a request names a response topic and carries its identity as
//! correlation data, which the reply returns.

use super::Mqtt;
use super::spec::{Request, bad, qos};
use crate::os::Res;
use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload, Purpose};
use crate::roles::broker_client::Link;
use crate::roles::peers;
use crate::roles::socket::BACKLOG_BYTES;
use mqtt_protocol_core::mqtt::packet::{
    CorrelationData, Packet, Property, ResponseTopic, UserProperty, v5_0,
};
use std::collections::{BTreeSet, VecDeque};

/// The user property of a reply that holds the name of the replying client.
const BY: &str = "vnet-by";

/// The properties of a message that belongs to a request.
#[derive(Debug, Default)]
pub struct Exchange {
    response_topic: Option<String>,
    correlation: Option<Vec<u8>>,
    by: Option<String>,
    pub qos: u8,
}

/// Returns the properties of a request or reply, from a message that was received with this QoS.
pub fn exchange(properties: &[Property], qos: u8) -> Exchange {
    let mut found = Exchange {
        qos,
        ..Exchange::default()
    };
    for property in properties {
        match property {
            Property::ResponseTopic(p) => found.response_topic = Some(p.val().to_owned()),
            Property::CorrelationData(p) => found.correlation = Some(p.val().to_vec()),
            Property::UserProperty(p) if p.key() == BY => found.by = Some(p.val().to_owned()),
            _ => {}
        }
    }
    found
}

/// Returns the properties of a request: its response topic, and its identity as correlation data.
pub fn properties(request: &Request, who: &Identity) -> Res<[Property; 2]> {
    let topic =
        ResponseTopic::new(request.response_topic.as_str()).map_err(bad("response_topic"))?;
    let mut header = Vec::new();
    Bytes.write(who, Bytes.smallest(), &mut header);
    let data = CorrelationData::new(header).map_err(bad("correlation data"))?;
    Ok([
        Property::ResponseTopic(topic),
        Property::CorrelationData(data),
    ])
}

/// Returns the identity of the request that a message replies to, and the name of the client that replies;
/// None if the message is not a reply.
pub fn replied(exchange: &Exchange) -> Option<(Identity, &str)> {
    let (data, by) = (exchange.correlation.as_ref()?, exchange.by.as_ref()?);
    Some((Bytes.read(data)?, by.as_str()))
}

/// The replies of a client that wait for the broker, and those whose handshakes are open.
#[derive(Default)]
pub struct Replies {
    waiting: VecDeque<Reply>,
    open: BTreeSet<u16>,
}

struct Reply {
    topic: String,
    qos: u8,
    correlation: Vec<u8>,
    body: Vec<u8>,
}

impl Replies {
    /// Ends the handshake with this packet id; returns whether it belonged to a reply.
    pub fn settled(&mut self, id: u16) -> bool {
        self.open.remove(&id)
    }

    /// Forgets the handshakes, which a new session of the client does not continue.
    pub fn session_lost(&mut self) {
        self.open.clear();
    }
}

impl Mqtt {
    /// Returns the request that a message on the client's response topic replies to, and the name of the
    /// client that replies.
    pub(super) fn own_reply<'a>(
        &self,
        topic: &str,
        exchange: &'a Exchange,
    ) -> Option<(Identity, &'a str)> {
        replied(exchange).filter(|_| self.spec.response_topic() == Some(topic))
    }

    /// Queues the reply to a received request, at the QoS with which the request was received, and sends it
    /// if the broker permits. A message gets no reply if it has no response topic, or no correlation data of
    /// a vNET request.
    pub(super) fn reply(
        &mut self,
        exchange: Exchange,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let correlation = exchange.correlation.unwrap_or_default();
        let request = Bytes
            .read(&correlation)
            .filter(|who| who.purpose == Purpose::Request);
        let (Some(topic), Some(request)) = (exchange.response_topic, request) else {
            return Ok(());
        };
        let mut body = Vec::new();
        peers::reply(&request, &mut body);
        self.replies.waiting.push_back(Reply {
            topic,
            qos: exchange.qos,
            correlation,
            body,
        });
        self.send_replies(link, now, out)
    }

    /// Sends the replies that wait while the broker's window is open.
    pub(super) fn send_replies(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        while link.is_up() && self.output.len() < BACKLOG_BYTES {
            let Some(first) = self.replies.waiting.front() else {
                break;
            };
            if first.qos > 0 && !link.delivery.permits(self.replies.open.len()) {
                break;
            }
            let Some(reply) = self.replies.waiting.pop_front() else {
                break;
            };
            let id = if reply.qos > 0 {
                self.conn.acquire_packet_id().ok()
            } else {
                None
            };
            match packet(reply, id, link.endpoint()) {
                Ok(packet) => {
                    self.replies.open.extend(id);
                    self.send(packet, link, now, out)?;
                }
                Err(text) => link.note("failed", now, &text, out),
            }
        }
        link.delivery.permits(self.replies.open.len());
        Ok(())
    }
}

fn packet(reply: Reply, id: Option<u16>, by: &str) -> Res<Packet> {
    let fail = "reply";
    let data = CorrelationData::new(reply.correlation).map_err(bad(fail))?;
    let by = UserProperty::new(BY, by).map_err(bad(fail))?;
    let b = v5_0::Publish::builder()
        .topic_name(reply.topic)
        .map_err(bad(fail))?
        .qos(qos(reply.qos)?)
        .props(vec![
            Property::CorrelationData(data),
            Property::UserProperty(by),
        ])
        .payload(reply.body);
    let b = if let Some(id) = id {
        b.packet_id(id)
    } else {
        b
    };
    Ok(b.build().map_err(bad(fail))?.into())
}
