//! The settings (`spec`) of software of kind `mqtt`.

use crate::roles::broker_client::Broker;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    #[serde(flatten)]
    pub broker: Broker,
    pub version: String,
    pub keepalive_s: u16,
    pub clean_session: bool,
    pub publish: Option<Publish>,
    #[serde(default)]
    pub subscribe: Vec<Subscribe>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Publish {
    pub topic: String,
    pub qos: u8,
    /// The most unacknowledged messages at QoS 1 and 2.
    #[serde(default = "default_inflight")]
    pub inflight: usize,
    /// The most messages that wait while the client is disconnected or has `inflight` unacknowledged
    /// messages.
    #[serde(default = "default_queue")]
    pub queue: usize,
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
}
