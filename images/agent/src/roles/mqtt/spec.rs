//! Defines the settings (`spec`) of software of kind `mqtt`.

use super::content::Content;
use super::sparkplug::EdgeNode;
use super::websocket;
use crate::os::Res;
use crate::roles::broker_client::Broker;
use mqtt_protocol_core::mqtt::packet::Qos;
use serde::Deserialize;
use std::fmt::Debug;

#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    #[serde(flatten)]
    pub broker: Broker,
    pub version: String,
    pub keepalive_s: u16,
    pub clean_session: bool,
    /// The time for which the broker keeps the session after a lost connection (MQTT 5). None: for ever, or
    /// not at all with `clean_session`.
    #[serde(default)]
    session_expiry_s: Option<u32>,
    /// The client identifier; None: the session's endpoint.
    pub client_id: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub will: Option<Will>,
    /// The most unacknowledged messages that the broker may send (MQTT 5, 3.1.2.11.3).
    pub receive_maximum: Option<u16>,
    /// The topics of other clients' wills whose arrival is recorded.
    #[serde(default)]
    pub wills: Vec<String>,
    /// The settings of a WebSocket that carries MQTT; None: MQTT directly on the connection.
    pub websocket: Option<websocket::Settings>,
    pub publish: Option<Publish>,
    #[serde(default)]
    pub subscribe: Vec<Subscribe>,
}

impl Spec {
    /// Returns the session expiry interval in seconds (MQTT 5, 3.1.2.11.2). `u32::MAX` means for ever, which
    /// is also the life of a session without `clean_session` in 3.1.1.
    pub fn expiry_s(&self) -> u32 {
        let otherwise = if self.clean_session { 0 } else { u32::MAX };
        self.session_expiry_s.unwrap_or(otherwise)
    }

    pub fn uses_aliases(&self) -> bool {
        self.publish.as_ref().is_some_and(|one| one.topic_alias)
    }

    /// Returns the subscriptions of each SUBSCRIBE packet: all in one packet have the same identifier, or
    /// none.
    pub fn packets_of_subscriptions(&self) -> Vec<Vec<&Subscribe>> {
        let mut packets: Vec<Vec<&Subscribe>> = Vec::new();
        for one in &self.subscribe {
            match packets
                .iter_mut()
                .find(|p| p[0].identifier == one.identifier)
            {
                Some(packet) => packet.push(one),
                None => packets.push(vec![one]),
            }
        }
        packets
    }

    pub fn response_topic(&self) -> Option<&str> {
        let request = self.publish.as_ref()?.request.as_ref()?;
        Some(&request.response_topic)
    }

    /// Returns the subscription to the replies of the client's own requests; None without requests.
    pub fn response_subscription(&self) -> Option<Subscribe> {
        Some(Subscribe {
            topic: self.response_topic()?.to_owned(),
            qos: self.publish.as_ref()?.qos,
            no_local: false,
            retain_handling: 0,
            identifier: None,
            unsubscribed_ns: Vec::new(),
        })
    }

    pub fn keeps_session(&self) -> bool {
        self.expiry_s() > 0
    }
}

/// The message that the broker publishes when it loses the client.
#[derive(Debug, Clone, Deserialize)]
pub struct Will {
    pub topic: String,
    pub payload: String,
    pub qos: u8,
    pub retain: bool,
    /// The time for which the broker waits for the client's return before it publishes the will (MQTT 5).
    pub delay_s: u32,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Publish {
    pub topic: String,
    pub qos: u8,
    /// Whether the broker keeps the topic's newest message for later subscribers.
    #[serde(default)]
    pub retain: bool,
    /// The time for which the broker keeps the message for a receiver (MQTT 5).
    pub message_expiry_s: Option<u32>,
    /// Whether an alias stands for the topic after the first message of a connection (MQTT 5, 3.3.2.3.4), if
    /// the broker permits aliases.
    #[serde(default)]
    topic_alias: bool,
    /// Settings of messages that are requests (MQTT 5, 4.10); None: the messages are not requests.
    pub request: Option<Request>,
    #[serde(default)]
    pub user_properties: Vec<(String, String)>,
    /// The content of payloads that do not carry the message's identity, which is then a user property (MQTT
    /// 5). None: the flow's kind of payload, which carries it.
    pub content: Option<Content>,
    /// The certificates of a Sparkplug B edge node, whose data are the flow's messages; None: the messages
    /// have another payload.
    pub sparkplug: Option<EdgeNode>,
    /// The most unacknowledged messages at QoS 1 and 2.
    #[serde(default = "default_inflight")]
    pub inflight: usize,
    /// The most messages that wait while the client is disconnected or has `inflight` unacknowledged
    /// messages.
    #[serde(default = "default_queue")]
    pub queue: usize,
}

/// The replies to the messages of a publisher.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    /// The topic that the replies are published to; the client subscribes to it.
    pub response_topic: String,
    /// The number of clients that reply to each message.
    pub receivers: usize,
}

fn default_inflight() -> usize {
    20
}

fn default_queue() -> usize {
    1000
}

#[derive(Debug, Clone, Deserialize)]
pub struct Subscribe {
    pub topic: String,
    pub qos: u8,
    /// True if the broker does not send the client's own messages back to it (MQTT 5).
    #[serde(default)]
    pub no_local: bool,
    /// Selects when the broker sends retained messages (MQTT 5, 3.8.3.1): 0 at each subscription, 1 at a new
    /// one, 2 never.
    #[serde(default)]
    pub retain_handling: u8,
    /// The number that messages of this subscription carry (MQTT 5, 3.8.2.1.2).
    #[serde(default)]
    pub identifier: Option<u32>,
    /// The times without this subscription: begin and end as offsets from t0, sorted, without overlaps.
    #[serde(default)]
    pub unsubscribed_ns: Vec<(i64, i64)>,
}

/// Returns the quality of service of this number; an error unless the number is 0, 1 or 2.
pub fn qos(value: u8) -> Res<Qos> {
    Qos::try_from(value).map_err(|_| format!("qos: {value} does not exist; write 0, 1 or 2"))
}

/// Returns a function that turns an error of the protocol library into a text about `what`.
pub(super) fn bad<E: Debug>(what: &str) -> impl Fn(E) -> String {
    move |e| format!("mqtt {what}: {e:?}")
}
