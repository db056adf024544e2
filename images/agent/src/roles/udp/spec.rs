//! Defines the settings of messages over UDP.

use super::super::peers::Peer;
use super::super::rate_limits::RateLimitSource;
use super::super::rates_wanted;
use super::super::socket::Marks;
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Spec {
    pub listen: Option<u16>,
    #[serde(default)]
    pub to: Vec<Peer>,
    /// The time from a request's due time after which the request expires.
    pub timeout_ns: i64,
    #[serde(flatten)]
    pub marks: Marks,
    /// Whether the node has IPv6 addresses.
    #[serde(default)]
    pub ipv6: bool,
    /// The port where rate limits for this sender arrive; None: no gateway limits it.
    pub rate_limits_from: Option<RateLimitSource>,
    /// The rates at which the receiver wants a flow; None: it requests no rate.
    pub wants: Option<rates_wanted::Settings>,
}
