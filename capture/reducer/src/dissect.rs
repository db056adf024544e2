//! Recognises and dissects application protocols: defines the interface of dissectors, and lists all of
//! them.
//!
//! Each protocol is one file or small folder of this module and one line in `ALL`. Its dissector names the
//! protocol's message types and counts the bytes of the protocol's own headers.

mod amqp;
mod coap;
mod dns;
mod head;
mod http;
mod http2;
mod iec61850;
mod mqtt;
mod nats;
mod pgm;
mod ports;
mod postgresql;
mod redis;
mod synphasor;
mod tls;
mod tunnels;
mod vnet;

pub use ports::Ports;

use crate::packet::{ETHERTYPE, NET, PAYLOAD, PORTS, Packet, TCP};

/// Message type 0 of every protocol: the dissector has lost the position in the stream.
pub const UNKNOWN: u16 = 0;
const KIND_BITS: u32 = 10;

/// All dissectors; the index of a dissector is its protocol's number.
static ALL: &[Dissector] = &[
    mqtt::DISSECTOR,
    vnet::DISSECTOR,
    dns::DISSECTOR,
    dns::MULTICAST,
    http::DISSECTOR,
    tls::DISSECTOR,
    tunnels::VXLAN,
    tunnels::GENEVE,
    tunnels::GRE,
    tunnels::MPLS,
    pgm::DISSECTOR,
    amqp::DISSECTOR,
    iec61850::SAMPLED_VALUES,
    iec61850::GOOSE,
    synphasor::DISSECTOR,
    redis::DISSECTOR,
    postgresql::DISSECTOR,
    http2::DISSECTOR,
    coap::DISSECTOR,
    nats::DISSECTOR,
];

/// The dissectors of the two directions of a connection, which may share state.
pub type Streams = [Box<dyn Stream>; 2];
/// Dissects a datagram: its captured bytes and its sent length; returns false if the datagram belongs to
/// another protocol.
pub type Datagram = fn(&[u8], usize, &mut Notes) -> bool;

/// An application protocol or tunnel, and how packets of it are recognised; `NONE` holds the default of each
/// field.
pub struct Dissector {
    /// Wireshark's name of the protocol, used in column `app` and option `--app`.
    pub name: &'static str,
    /// Returns the name of a message type other than `UNKNOWN`.
    pub type_name: fn(u16) -> String,
    pub tcp_ports: &'static [u16],
    pub udp_ports: &'static [u16],
    pub ethertypes: &'static [u16],
    pub ip_protocols: &'static [u16],
    /// The first bytes of datagrams of this protocol on any port; empty if the protocol has no such bytes.
    pub magic: &'static [u8],
    pub streams: Option<fn() -> Streams>,
    pub datagram: Option<Datagram>,
}

impl Dissector {
    const NONE: Self = Self {
        name: "",
        type_name: |kind| kind.to_string(),
        tcp_ports: &[],
        udp_ports: &[],
        ethertypes: &[],
        ip_protocols: &[],
        magic: &[],
        streams: None,
        datagram: None,
    };
}

/// Dissects one direction of a byte stream. `parse` and `skip` return false when they lose the position in
/// the stream; the caller then calls `begin` before the next `parse` or `skip`.
pub trait Stream {
    /// Resets the state: a message begins with the next byte.
    fn begin(&mut self);
    /// Returns true if `data` looks like the beginning of a message. `cut` is true if bytes that were not
    /// captured follow `data`.
    fn plausible(&self, data: &[u8], cut: bool) -> bool;
    /// Parses captured bytes; adds to `notes` the types of messages that end in them and the number of header
    /// bytes. Returns false if the position is lost.
    fn parse(&mut self, data: &[u8], notes: &mut Notes) -> bool;
    /// Skips `count` bytes (at least one) that were not captured; returns false if the position is lost.
    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool;
}

/// The result of dissecting a packet: protocol, message types and header length.
#[derive(Debug, Default)]
pub struct Notes {
    /// The protocol's number; None if no dissector accepted the payload.
    pub app: Option<u8>,
    /// The types of messages that end in the packet, each combined with its protocol's number.
    pub types: Vec<u16>,
    /// For each of `types`, the number that the message and its answer share; 0 without such a number.
    pub ids: Vec<u32>,
    /// True if the protocol numbers its messages; the table then has `ids`.
    pub numbered: bool,
    /// Number of bytes of the packet's payload that are the protocol's header.
    pub header: u32,
}

impl Notes {
    pub fn clear(&mut self) {
        self.app = None;
        self.types.clear();
        self.ids.clear();
        self.numbered = false;
        self.header = 0;
    }

    /// Adds the type `kind` of a message that ends in this packet.
    pub fn push(&mut self, kind: u16) {
        self.types
            .push(u16::from(self.app.unwrap_or_default()) << KIND_BITS | kind);
        self.ids.push(0);
    }

    /// Adds the type `kind` of a message that ends in this packet, with the number that the message and its
    /// answer share.
    pub fn push_numbered(&mut self, kind: u16, id: u32) {
        self.push(kind);
        self.numbered = true;
        if let Some(last) = self.ids.last_mut() {
            *last = id;
        }
    }

    /// Adds `UNKNOWN`, unless it is already the last type: the dissector could not follow the stream.
    pub fn push_unknown(&mut self) {
        if self.types.last().is_none_or(|&last| is_known(last)) {
            self.push(UNKNOWN);
        }
    }
}

/// Returns true if a type from `Notes` is not `UNKNOWN`.
pub fn is_known(noted: u16) -> bool {
    noted & ((1 << KIND_BITS) - 1) != UNKNOWN
}

/// Returns the number of the protocol with this name, or None.
pub fn number(name: &str) -> Option<u8> {
    ALL.iter()
        .position(|dissector| dissector.name == name)
        .map(|place| place as u8)
}

/// Returns the number of the protocol that the first bytes of a connection show: HTTP/2 on a port of HTTP/1;
/// else that of the port.
pub fn shown_by(app: u8, data: &[u8]) -> u8 {
    let upgraded = ALL[usize::from(app)].name == http::DISSECTOR.name && http2::begins(data);
    number(http2::DISSECTOR.name)
        .filter(|_| upgraded)
        .unwrap_or(app)
}

/// Returns the names that `--app` accepts: the protocols that a TCP or UDP port can select.
pub fn names() -> impl Iterator<Item = &'static str> {
    let ported = |dissector: &&Dissector| dissector.streams.is_some() || over_udp(dissector);
    ALL.iter().filter(ported).map(|dissector| dissector.name)
}

fn over_udp(dissector: &Dissector) -> bool {
    let layered = !dissector.ethertypes.is_empty() || !dissector.ip_protocols.is_empty();
    dissector.datagram.is_some() && !layered
}

pub fn name(app: u8) -> &'static str {
    ALL[usize::from(app)].name
}

/// Returns the name of a message type from `Notes`, or "UNKNOWN".
pub fn type_name(noted: u16) -> String {
    let dissector = &ALL[usize::from(noted >> KIND_BITS)];
    if is_known(noted) {
        (dissector.type_name)(noted & ((1 << KIND_BITS) - 1))
    } else {
        "UNKNOWN".into()
    }
}

/// Creates the dissectors of both directions of a connection of protocol `app`; None if the protocol does not
/// use TCP.
pub fn streams(app: u8) -> Option<Streams> {
    ALL[usize::from(app)].streams.map(|make| make())
}

/// Dissects a packet other than TCP and fragments, and adds the result to `notes`; `notes` stays empty if no
/// dissector accepts it. Over UDP the ports select the dissector, then the first bytes; without UDP the IP
/// protocol does, or the EtherType if there is no IP header.
pub fn datagram(ports: &Ports, packet: &Packet, notes: &mut Notes) {
    let by_layer = |dissector: &Dissector| {
        if packet.present & NET == 0 {
            packet.present & ETHERTYPE != 0 && dissector.ethertypes.contains(&packet.ethertype)
        } else {
            dissector.ip_protocols.contains(&packet.protocol)
        }
    };
    if packet.fragment || packet.present & TCP != 0 {
        return;
    }
    if packet.present & (PORTS | PAYLOAD) == PORTS | PAYLOAD {
        let by_port = ports.udp(packet.src_port, packet.dst_port);
        let by_magic = ALL.iter().position(|dissector| {
            !dissector.magic.is_empty() && packet.payload.starts_with(dissector.magic)
        });
        let candidates = by_port
            .into_iter()
            .chain([by_magic.map(|place| place as u8)]);
        let _ = candidates.flatten().any(|app| accepts(app, packet, notes));
    } else if packet.present & PORTS == 0
        && let Some(place) = ALL.iter().position(by_layer)
    {
        accepts(place as u8, packet, notes);
    }
}

fn accepts(app: u8, packet: &Packet, notes: &mut Notes) -> bool {
    let above = packet.link_len + packet.vlan_len;
    let length = packet.inner_len.min(packet.wire_len.saturating_sub(above)) as usize;
    notes.app = Some(app);
    let known = length > 0
        && ALL[usize::from(app)]
            .datagram
            .is_some_and(|look| look(packet.payload, length, notes));
    if !known {
        notes.clear();
    }
    known
}
