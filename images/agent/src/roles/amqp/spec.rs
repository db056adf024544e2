//! What an AMQP client is told: the `spec` of software of kind `amqp`.

use crate::roles::broker_client::Broker;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    #[serde(flatten)]
    pub broker: Broker,
    pub vhost: String,
    pub user: String,
    pub password: String,
    /// 0: none.
    pub heartbeat_s: u16,
    pub publish: Option<Publish>,
    pub consume: Option<Consume>,
}

/// The one without a name is the default exchange, which is there and takes a queue's name as its key.
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
    /// Delivery mode 2: kept on disk by durable queues.
    pub persistent: bool,
    pub confirms: bool,
    /// Window of messages that are not confirmed.
    pub inflight: usize,
    /// Messages that may wait while disconnected or while the window is full.
    pub queue: usize,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Consume {
    pub exchange: Exchange,
    /// By these the queue is bound to the exchange.
    pub keys: Vec<String>,
    /// Empty: one of the connection's own, named by the broker, that ends with it.
    pub queue: String,
    pub durable: bool,
    /// Messages without acknowledgement; 0: any.
    pub prefetch: u16,
    pub acknowledge: bool,
}
