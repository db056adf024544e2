//! Defines the settings (`spec`) of software of kind `amqp`.

use crate::roles::broker_client::Broker;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    #[serde(flatten)]
    pub broker: Broker,
    pub vhost: String,
    pub user: String,
    pub password: String,
    /// Interval of heartbeats in seconds; 0 disables them.
    pub heartbeat_s: u16,
    pub publish: Option<Publish>,
    pub consume: Option<Consume>,
}

/// An exchange; the empty name is that of the default exchange, which routes by queue name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Exchange {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub durable: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Publish {
    pub exchange: Exchange,
    pub key: String,
    /// Whether messages have delivery mode 2, so that durable queues store them on disk.
    pub persistent: bool,
    pub confirms: bool,
    /// The most unconfirmed messages.
    pub inflight: usize,
    /// The most messages that wait while the client is disconnected or has `inflight` unconfirmed messages.
    pub queue: usize,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Consume {
    pub exchange: Exchange,
    /// Binding keys of the queue at the exchange.
    pub keys: Vec<String>,
    /// Name of the queue; empty: an exclusive queue that the broker names and that ends with the connection.
    pub queue: String,
    pub durable: bool,
    /// The most unacknowledged messages that the broker sends; 0: no limit.
    pub prefetch: u16,
    pub acknowledge: bool,
}
