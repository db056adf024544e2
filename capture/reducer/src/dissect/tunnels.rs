//! Recognises tunnels and measures their headers. The content of a tunnel counts as payload and is not
//! dissected.

use super::{Dissector, Notes};

/// Recognises VXLAN (RFC 7348).
pub const VXLAN: Dissector = Dissector {
    name: "vxlan",
    udp_ports: &[4789],
    datagram: Some(|data, length, notes| has(notes, length, vxlan(data))),
    ..Dissector::NONE
};

/// Recognises GENEVE (RFC 8926).
pub const GENEVE: Dissector = Dissector {
    name: "geneve",
    udp_ports: &[6081],
    datagram: Some(|data, length, notes| has(notes, length, geneve(data))),
    ..Dissector::NONE
};

/// Recognises GRE (RFC 2784 and 2890); its version 1 is that of PPTP (RFC 2637).
pub const GRE: Dissector = Dissector {
    name: "gre",
    ip_protocols: &[47],
    datagram: Some(|data, length, notes| has(notes, length, gre(data))),
    ..Dissector::NONE
};

/// Recognises MPLS, unicast and multicast (RFC 3032).
pub const MPLS: Dissector = Dissector {
    name: "mpls",
    ethertypes: &[0x8847, 0x8848],
    datagram: Some(|data, length, notes| has(notes, length, mpls(data))),
    ..Dissector::NONE
};

fn has(notes: &mut Notes, length: usize, header: Option<usize>) -> bool {
    let header = header.filter(|&header| header <= length);
    notes.header = header.unwrap_or_default() as u32;
    header.is_some()
}

fn vxlan(data: &[u8]) -> Option<usize> {
    let valid_network = data.first()? & 0x08 != 0;
    valid_network.then_some(8)
}

fn geneve(data: &[u8]) -> Option<usize> {
    let first = *data.first()?;
    (first >> 6 == 0).then_some(8 + 4 * usize::from(first & 0x3f))
}

fn gre(data: &[u8]) -> Option<usize> {
    let &[flags, version, ..] = data else {
        return None;
    };
    let field = |present: bool| if present { 4 } else { 0 };
    let (checksum, key, sequence) = (flags & 0xc0 != 0, flags & 0x20 != 0, flags & 0x10 != 0);
    match version & 7 {
        0 => Some(4 + field(checksum) + field(key) + field(sequence)),
        1 => Some(8 + field(sequence) + field(version & 0x80 != 0)),
        _ => None,
    }
}

/// Returns the length of the label stack: labels of four bytes, up to the one with the bottom-of-stack bit;
/// None if that is missing.
fn mpls(data: &[u8]) -> Option<usize> {
    let last = data.chunks_exact(4).position(|label| label[2] & 1 != 0)?;
    Some(4 * (last + 1))
}
