//! Implements synchrophasors (IEEE C37.118.2): a station that measures (PMU), and a concentrator that
//! collects measurements (PDC).
//!
//! A concentrator connects to its stations over TCP or UDP. It requests the header and the configuration
//! (CFG-2), and then turns data on; the station sends data until the concentrator turns it off.

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

/// A station to which a concentrator connects.
#[derive(Debug, Clone, Deserialize)]
struct StationAddress {
    endpoint: String,
    address: IpAddr,
    port: u16,
    idcode: u16,
    /// Number of the flow of the station's data.
    flow: u32,
}

#[derive(Deserialize)]
struct Spec {
    transport: Transport,
    /// The settings of a station; None for a concentrator.
    #[serde(default)]
    station: Option<Station>,
    #[serde(default)]
    listen: Option<u16>,
    /// The stations of a concentrator; empty for a station.
    #[serde(default)]
    to: Vec<StationAddress>,
    #[serde(flatten)]
    marks: Marks,
    #[serde(default)]
    ipv6: bool,
}

/// Creates a station if the settings have `listen`, or a concentrator if they have `to`, for an item of
/// `workload`; an error if they have both or neither. A station listens from the start.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    if spec.listen.is_some() == spec.to.is_empty() {
        return if spec.listen.is_some() {
            Ok(Box::new(pmu::Pmu::new(item, spec)?))
        } else {
            Ok(Box::new(pdc::Pdc::new(item, spec)))
        };
    }
    Err("spec: write either `listen` (a station) or `to` (a concentrator's stations)".to_owned())
}

/// Decodes bytes of a peer as a station and a concentrator do.
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
