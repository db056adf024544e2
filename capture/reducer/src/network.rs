//! Decodes IPv4, IPv6, ARP, TCP and UDP headers.

use crate::packet::{ARP, NET, PAYLOAD, PORTS, Packet, TCP};

/// The value of the upper half of the 128 bits of `Packet::src` that marks an IPv4 address; no valid IPv6
/// address begins like this.
pub const V4: u128 = (u64::MAX as u128) << 64;

const IP_TCP: u16 = 6;
const IP_UDP: u16 = 17;
/// IP protocol and header length. For ICMP, IGMP and ICMPv6 these are the common first bytes of a message;
/// for SCTP, the common header.
const OTHER_HEADERS: [(u16, u32); 4] = [(1, 8), (2, 8), (58, 8), (132, 12)];

fn v4(bytes: &[u8]) -> u128 {
    V4 | u128::from(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
}

fn v6(bytes: &[u8]) -> u128 {
    u128::from_be_bytes(bytes.try_into().expect("sixteen bytes"))
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Formats an IPv4 or IPv6 address as tshark prints it.
pub fn text(address: u128) -> String {
    if address >> 64 == V4 >> 64 {
        std::net::Ipv4Addr::from(address as u32).to_string()
    } else {
        std::net::Ipv6Addr::from(address).to_string()
    }
}

/// Decodes an IPv4 header, and the transport header after it except in later fragments. `wire`: the number of
/// bytes that the frame had from the IPv4 header on, which limits the header's length field.
#[inline]
pub fn ipv4<'a>(packet: &mut Packet<'a>, data: &'a [u8], wire: usize) {
    if data.len() < 20 || data[0] >> 4 != 4 || data[0] & 0xf < 5 {
        return;
    }
    let header = usize::from(data[0] & 0xf) * 4;
    // Segmentation offload leaves the length field 0; the frame's length then counts.
    let total = match usize::from(be16(data, 2)) {
        0 => wire,
        total => total.min(wire),
    };
    packet.src = v4(&data[12..16]);
    packet.dst = v4(&data[16..20]);
    packet.protocol = u16::from(data[9]);
    packet.present |= NET;
    let fragmentation = be16(data, 6);
    packet.fragment = fragmentation & 0x3fff != 0;
    inner(packet, data, header, total);
    if fragmentation & 0x1fff == 0 && total >= header {
        transport(packet, data, header, total);
    }
}

/// Decodes an IPv6 header, its extension headers, and the transport header after them except in later
/// fragments. `wire`: the number of bytes that the frame had from the IPv6 header on.
pub fn ipv6<'a>(packet: &mut Packet<'a>, data: &'a [u8], wire: usize) {
    if data.len() < 40 || data[0] >> 4 != 6 {
        return;
    }
    packet.src = v6(&data[8..24]);
    packet.dst = v6(&data[24..40]);
    packet.present |= NET;
    // A length of 0 means a jumbogram or segmentation offload; the frame's length then counts.
    let end = match usize::from(be16(data, 4)) {
        0 => wire,
        length => (40 + length).min(wire),
    };
    let (mut next, mut at, mut first) = (data[6], 40, true);
    while let Some((following, size)) = extension(packet, next, data.get(at..), &mut first) {
        next = following;
        at += size;
    }
    packet.protocol = u16::from(next);
    inner(packet, data, at, end);
    if first && at <= end {
        transport(packet, data, at, end);
    }
}

/// Returns the type of the header after the extension header `kind`, and the extension's size. None if the
/// upper layer begins here or the capture ends. Sets `first` to false in a fragment that is not the first.
fn extension(
    packet: &mut Packet,
    kind: u8,
    data: Option<&[u8]>,
    first: &mut bool,
) -> Option<(u8, usize)> {
    let data = data.filter(|data| data.len() >= 4)?;
    if !*first {
        return None;
    }
    match kind {
        0 | 43 | 60 | 135 | 139 | 140 => Some((data[0], 8 + usize::from(data[1]) * 8)),
        51 => Some((data[0], 8 + usize::from(data[1]) * 4)),
        44 => {
            packet.fragment |= be16(data, 2) & 0xfff9 != 0;
            *first = be16(data, 2) >> 3 == 0;
            Some((data[0], 8))
        }
        _ => None,
    }
}

pub fn arp<'a>(packet: &mut Packet<'a>, data: &'a [u8]) {
    let ipv4_over_ethernet =
        data.len() >= 28 && be16(data, 2) == 0x0800 && data[4] == 6 && data[5] == 4;
    if ipv4_over_ethernet {
        packet.src = v4(&data[14..18]);
        packet.dst = v4(&data[24..28]);
        packet.protocol = ARP;
        packet.present |= NET;
        inner(packet, data, 28, 28);
    }
}

/// Sets network header length and payload of a packet whose network header ends at `at` and that ends at
/// `total`.
#[inline]
fn inner<'a>(packet: &mut Packet<'a>, data: &'a [u8], at: usize, total: usize) {
    packet.net_len = at as u32;
    packet.inner_len = total.saturating_sub(at) as u32;
    packet.payload = data.get(at..total.min(data.len())).unwrap_or_default();
}

/// Decodes the transport header at `at` of an IP packet of `total` bytes, of which `data` was captured.
#[inline]
fn transport<'a>(packet: &mut Packet<'a>, data: &'a [u8], at: usize, total: usize) {
    let Some(rest) = data.get(at..total.min(data.len())) else {
        return;
    };
    let length = total - at;
    match packet.protocol {
        IP_TCP => tcp(packet, rest, length),
        IP_UDP => udp(packet, rest, length),
        protocol => {
            let header = OTHER_HEADERS.iter().find(|(known, _)| *known == protocol);
            let size = header.map_or(0, |&(_, size)| size.min(length as u32));
            beyond(packet, rest, size, length as u32 - size);
        }
    }
}

/// Sets transport header length and payload: `header` bytes of header, then `length` bytes of payload.
#[inline]
fn beyond<'a>(packet: &mut Packet<'a>, data: &'a [u8], header: u32, length: u32) {
    packet.transport_len = header;
    packet.inner_len = length;
    packet.payload = data.get(header as usize..).unwrap_or_default();
}

fn ports(packet: &mut Packet, data: &[u8]) {
    packet.src_port = be16(data, 0);
    packet.dst_port = be16(data, 2);
    packet.present |= PORTS;
}

#[inline]
fn tcp<'a>(packet: &mut Packet<'a>, data: &'a [u8], length: usize) {
    if data.len() >= 4 {
        ports(packet, data);
    }
    if data.len() < 16 || data[12] >> 4 < 5 {
        return;
    }
    let header = usize::from(data[12] >> 4) * 4;
    packet.seq = be32(data, 4);
    packet.ack = be32(data, 8);
    packet.flags = be16(data, 12) & 0x0fff;
    packet.window = be16(data, 14);
    packet.present |= TCP;
    if length >= header {
        packet.payload_len = (length - header) as u32;
        beyond(packet, data, header as u32, packet.payload_len);
        packet.present |= PAYLOAD;
    }
}

fn udp<'a>(packet: &mut Packet<'a>, data: &'a [u8], length: usize) {
    if data.len() < 8 {
        return;
    }
    ports(packet, data);
    let claimed = usize::from(be16(data, 4));
    if claimed >= 8 || claimed == 0 {
        let whole = if claimed == 0 { length } else { claimed };
        packet.payload_len = whole.saturating_sub(8) as u32;
        packet.present |= PAYLOAD;
        // Bytes of the IP packet beyond the datagram are padding.
        let inside = whole.min(length).saturating_sub(8);
        let captured = &data[..data.len().min(8 + inside)];
        beyond(packet, captured, 8, inside as u32);
    }
}
