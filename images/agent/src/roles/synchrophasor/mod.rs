//! Synchrophasors (IEEE C37.118.2): a station that measures (PMU), and who asks stations for what they measure (PDC).
//!
//! Over TCP or UDP, both ways as the standard's commands have it: a concentrator asks for the header and the configuration
//! (CFG-2), and then for data, which come until it says that it has enough.

mod frame;
mod pdc;
mod pmu;
mod stream;

use super::Role;
use super::socket::Marks;
use crate::os::Res;
use crate::proto::{self, Item};
use frame::Station;
use serde::Deserialize;
use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Transport {
    Tcp,
    Udp,
}

/// A station that a concentrator asks.
#[derive(Debug, Clone, Deserialize)]
struct Asked {
    endpoint: String,
    address: IpAddr,
    port: u16,
    idcode: u16,
    /// Number of the flow of its data.
    flow: u32,
}

#[derive(Deserialize)]
struct Spec {
    transport: Transport,
    /// Of a station.
    #[serde(default)]
    station: Option<Station>,
    #[serde(default)]
    listen: Option<u16>,
    /// Of a concentrator.
    #[serde(default)]
    to: Vec<Asked>,
    #[serde(flatten)]
    marks: Marks,
    #[serde(default)]
    ipv6: bool,
}

/// A station listens from the start on.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    if spec.listen.is_some() == spec.to.is_empty() {
        return if spec.listen.is_some() {
            Ok(Box::new(pmu::Pmu::new(item, spec)?))
        } else {
            Ok(Box::new(pdc::Pdc::new(item, spec)))
        };
    }
    Err("spec: either `listen` or `to`; a station listens, and who asks names stations".to_owned())
}

/// What a peer sends, a frame after the other.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = frame::size(bytes);
    if let Ok(frame) = frame::read(bytes) {
        _ = frame::announced(frame.content);
        _ = frame::command_of(frame.content);
    }
    _ = frame::announced(bytes);
}

#[cfg(test)]
mod tests;
