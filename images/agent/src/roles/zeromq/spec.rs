//! Defines the settings (`spec`) of ZeroMQ software: socket types, transport and receivers.

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
    /// Port of the side that binds, or of the multicast group.
    pub port: u16,
    /// Address to which the other side connects; None on the side that binds.
    pub address: Option<IpAddr>,
    /// Whether the node has IPv6 addresses.
    #[serde(default)]
    pub ipv6: bool,
    /// The multicast group; None without multicast.
    pub group: Option<Ipv4Addr>,
    /// The node's own address on the group's network; None without multicast.
    pub own: Option<Ipv4Addr>,
    /// The receivers' endpoints, which are also their routing ids.
    #[serde(default)]
    pub to: Vec<String>,
    /// Port for replies; None if they use the same connection.
    pub answers: Option<u16>,
    pub send_queue: Option<i32>,
    pub receive_queue: Option<i32>,
    /// The rate limit of multicast in bits per second.
    pub rate_bps: Option<i64>,
    /// The interval in which multicast can repair losses.
    pub recovery_ns: Option<i64>,
    /// The longest multicast packet after the IP header, in bytes.
    pub tpdu_bytes: Option<i32>,
    /// The time from a request's due time after which the request expires.
    pub timeout_ns: i64,
}

impl Spec {
    /// Returns whether this side binds and sends; the other side receives and replies.
    pub fn sends(&self) -> bool {
        matches!(self.socket, Kind::Router | Kind::Pub)
    }

    /// Returns whether the sockets are dual-stack: the node has IPv6 addresses, or the peer's address is
    /// one.
    pub fn speaks_ipv6(&self) -> bool {
        self.ipv6 || self.address.is_some_and(|address| address.is_ipv6())
    }

    pub fn is_published(&self) -> bool {
        self.socket == Kind::Pub
    }

    pub fn is_multicast(&self) -> bool {
        self.transport == Transport::Epgm
    }

    /// Returns the peer's address as text for records; empty without an address.
    pub fn words(&self) -> String {
        let at = if self.is_multicast() {
            self.group.map(IpAddr::V4)
        } else {
            self.address
        };
        at.map_or_else(String::new, |at| format!("{at}:{}", self.port))
    }

    /// Returns an error for impossible settings or flows: multicast with another socket than PUB and SUB,
    /// or without `group` or `own`; a connecting side without an address, or with flows; requests over PUB
    /// and SUB without `answers`.
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
