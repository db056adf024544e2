//! Defines the messages that a gateway receives, and those that it sends; rates are in bits per second.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A message that a gateway receives. A neighbour downstream sends `shares_bps`, its limit of each flow. The
/// broker sends `reservations_bps`, the reserved rate of each flow. A subscriber sends `wanted_bps`, the rate
/// at which it wants to receive each flow (0: no wish), and neighbours pass that on.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Message {
    pub shares_bps: BTreeMap<String, u64>,
    pub reservations_bps: BTreeMap<String, u64>,
    pub wanted_bps: BTreeMap<String, u64>,
}

#[derive(Serialize)]
pub struct Shares<'a> {
    pub shares_bps: BTreeMap<&'a str, u64>,
    /// Wishes of subscribers, as far as this gateway's shares carry them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wanted_bps: BTreeMap<&'a str, u64>,
}

/// A message to the broker: the wishes of the high real-time flows whose wish exceeds their reservation.
#[derive(Serialize)]
pub struct Alarm<'a> {
    pub gateway: &'a str,
    pub demands_bps: BTreeMap<&'a str, u64>,
}
