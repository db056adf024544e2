//! Finds the network and transport headers of one captured frame, without copying.

use crate::network;
use crate::packet::{ETHERTYPE, Packet, VLAN};

/// Decodes link, network and transport headers of a frame of `link_type` (numbers:
/// tcpdump.org/linktypes.html) that had `wire_len` bytes when it was sent. For an unsupported link type it
/// decodes no header.
pub fn decode(link_type: u32, data: &[u8], wire_len: u32) -> Packet<'_> {
    let mut packet = Packet {
        wire_len,
        inner_len: u32::MAX,
        payload: data,
        ..Packet::default()
    };
    let wire = wire_len as usize;
    match link_type {
        1 => typed(&mut packet, data, wire, 12),
        113 => typed(&mut packet, data, wire, 14),
        276 => sll2(&mut packet, data, wire),
        0 | 108 => raw(&mut packet, data, wire, 4),
        12 | 14 | 101 | 228 | 229 => raw(&mut packet, data, wire, 0),
        _ => {}
    }
    packet
}

/// Returns true if the reducer can decode frames of this link type.
pub fn supports(link_type: u32) -> bool {
    matches!(
        link_type,
        0 | 1 | 12 | 14 | 101 | 108 | 113 | 228 | 229 | 276
    )
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Decodes a link header whose EtherType is at offset `at`, its VLAN tags, and the headers above. An 802.3
/// length in place of the EtherType becomes `inner_len` and ends the decoding.
#[inline]
fn typed<'a>(packet: &mut Packet<'a>, data: &'a [u8], wire: usize, mut at: usize) {
    let Some(mut kind) = u16_at(data, at) else {
        return;
    };
    at += 2;
    packet.link_len = at as u32;
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        let (Some(tag), Some(inner)) = (u16_at(data, at), u16_at(data, at + 2)) else {
            break;
        };
        if packet.present & VLAN == 0 {
            packet.vlan = tag & 0xfff;
            packet.present |= VLAN;
        }
        kind = inner;
        at += 4;
        packet.vlan_len += 4;
    }
    if kind < 0x600 {
        packet.inner_len = kind.into(); // a length: 802.2 follows
        return;
    }
    packet.ethertype = kind;
    packet.present |= ETHERTYPE;
    by_type(packet, data, wire, at);
}

/// Decodes the Linux "cooked" header, version 2, and the headers above: it has 20 bytes and begins with the
/// EtherType.
fn sll2<'a>(packet: &mut Packet<'a>, data: &'a [u8], wire: usize) {
    let Some(kind) = u16_at(data, 0) else { return };
    packet.ethertype = kind;
    packet.present |= ETHERTYPE;
    packet.link_len = 20;
    by_type(packet, data, wire, 20);
}

#[inline]
fn by_type<'a>(packet: &mut Packet<'a>, data: &'a [u8], wire: usize, at: usize) {
    let Some(rest) = data.get(at..) else { return };
    let wire = wire.saturating_sub(at);
    packet.payload = rest;
    match packet.ethertype {
        0x0800 => network::ipv4(packet, rest, wire),
        0x86dd => network::ipv6(packet, rest, wire),
        0x0806 => network::arp(packet, rest),
        _ => {}
    }
}

fn raw<'a>(packet: &mut Packet<'a>, data: &'a [u8], wire: usize, at: usize) {
    packet.link_len = at as u32;
    let Some(rest) = data.get(at..) else { return };
    let wire = wire.saturating_sub(at);
    match rest.first().map(|byte| byte >> 4) {
        Some(4) => network::ipv4(packet, rest, wire),
        Some(6) => network::ipv6(packet, rest, wire),
        _ => {}
    }
}
