//! The `spec` of ZeroMQ software: socket types, transport and receivers.

use crate::os::Res;
use crate::proto::Flow;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr};

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Router,
    Dealer,
    Pub,
    Sub,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Epgm,
}

#[derive(Deserialize)]
pub struct Spec {
    pub socket: Kind,
    pub transport: Transport,
    /// Port of the binding side or the multicast group.
    pub port: u16,
    /// Address that the other side connects to.
    pub address: Option<IpAddr>,
    /// The node has IPv6 addresses.
    #[serde(default)]
    pub ipv6: bool,
    /// Multicast: the group, and the node's own address.
    pub group: Option<Ipv4Addr>,
    pub own: Option<Ipv4Addr>,
    /// Receivers' endpoints, which are also their routing ids.
    #[serde(default)]
    pub to: Vec<String>,
    /// Port for replies, if they do not use the same connection.
    pub answers: Option<u16>,
    pub send_queue: Option<i32>,
    pub receive_queue: Option<i32>,
    /// Multicast: rate limit, recovery interval, and the longest packet after the IP header.
    pub rate_bps: Option<i64>,
    pub recovery_ns: Option<i64>,
    pub tpdu_bytes: Option<i32>,
    /// A request expires this long after it was due.
    pub timeout_ns: i64,
}

impl Spec {
    /// Whether this side binds and sends; the other receives and replies.
    pub fn sends(&self) -> bool {
        matches!(self.socket, Kind::Router | Kind::Pub)
    }

    /// Whether its sockets are dual-stack.
    pub fn speaks_ipv6(&self) -> bool {
        self.ipv6 || self.address.is_some_and(|address| address.is_ipv6())
    }

    pub fn is_published(&self) -> bool {
        self.socket == Kind::Pub
    }

    pub fn is_multicast(&self) -> bool {
        self.transport == Transport::Epgm
    }

    /// The peer's address as text for records.
    pub fn words(&self) -> String {
        let at = if self.is_multicast() {
            self.group.map(IpAddr::V4)
        } else {
            self.address
        };
        at.map_or_else(String::new, |at| format!("{at}:{}", self.port))
    }

    /// Refuses impossible combinations.
    pub fn check(&self, flows: &[Flow]) -> Res<()> {
        let published = matches!(self.socket, Kind::Pub | Kind::Sub);
        if self.is_multicast() && !(published && self.group.is_some() && self.own.is_some()) {
            return Err("transport: epgm needs pub and sub, `group` and `own`".to_owned());
        }
        if !self.sends() && self.address.is_none() {
            return Err("address: missing; write the address to connect to".to_owned());
        }
        for flow in flows {
            if !self.sends() {
                return Err(format!("flow {}: only router and pub send", flow.number));
            }
            if self.is_published() && flow.reply.is_some() && self.answers.is_none() {
                return Err(format!(
                    "flow {}: a subscriber cannot answer by its own socket; name a port in `answers`",
                    flow.number
                ));
            }
        }
        Ok(())
    }
}
