//! The `spec` of software of kind `amqp`.

use crate::roles::broker_client::Broker;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    #[serde(flatten)]
    pub broker: Broker,
    pub vhost: String,
    pub user: String,
    pub password: String,
    /// 0 disables heartbeats.
    pub heartbeat_s: u16,
    pub publish: Option<Publish>,
    pub consume: Option<Consume>,
}

/// An exchange; an empty name is the default exchange, which routes by queue name.
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
    /// Delivery mode 2: durable queues store the messages on disk.
    pub persistent: bool,
    pub confirms: bool,
    /// Window of unconfirmed messages.
    pub inflight: usize,
    /// Most messages that wait while disconnected or while the window is full.
    pub queue: usize,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Consume {
    pub exchange: Exchange,
    /// Binding keys of the queue.
    pub keys: Vec<String>,
    /// Empty: an exclusive queue that the broker names and that ends with the connection.
    pub queue: String,
    pub durable: bool,
    /// Most unacknowledged messages; 0: no limit.
    pub prefetch: u16,
    pub acknowledge: bool,
}
