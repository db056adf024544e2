//! Encodes and decodes the test frame: UDP over IPv4 (RFC 2544 appendix C), with a stamp that fits into the
//! shortest Ethernet frame.

use crate::os::Res;

/// Length of the frame check sequence, which sizes of frames include (RFC 2544 section 9) and sockets do not.
pub const FCS: usize = 4;
pub const SMALLEST: usize = 64;
pub const LARGEST: usize = 9018;
/// Source port: test frames are UDP echo requests from this port to port 7 (RFC 2544 appendix C.2.6.4).
pub const SOURCE_PORT: u16 = 0xC020;
pub const ECHO_PORT: u16 = 7;

const IP: usize = 14;
const UDP: usize = 34;
const STAMP: usize = 42;
/// The number of bytes from a frame's beginning to the end of its stamp; a receiver keeps only these bytes.
pub const SEEN: usize = STAMP + 18;

// RFC 2544 appendix C.2.2 reserves 198.18.0.0/15 for tests; no node has such an address, so no IP stack
// answers.
const FROM: [u8; 4] = [198, 18, 0, 1];
const TO: [u8; 4] = [198, 19, 0, 1];
const TTL: u8 = 10;

/// The part of a frame that identifies it: trial, number, and sending time in Unix nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub trial: u16,
    pub seq: u32,
    pub sent_ns: i64,
}

/// Builds a frame of `size` bytes (including FCS) from MAC `from` to MAC `to`, as a packet socket sends it:
/// without FCS and with an empty stamp.
pub fn template(size: usize, to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    let mut bytes = vec![0u8; size - FCS];
    let ip_length = (size - FCS - IP) as u16;
    bytes[..6].copy_from_slice(&to);
    bytes[6..12].copy_from_slice(&from);
    bytes[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
    bytes[IP] = 0x45;
    bytes[IP + 2..IP + 4].copy_from_slice(&ip_length.to_be_bytes());
    bytes[IP + 8] = TTL;
    bytes[IP + 9] = libc::IPPROTO_UDP as u8;
    bytes[IP + 12..IP + 16].copy_from_slice(&FROM);
    bytes[IP + 16..IP + 20].copy_from_slice(&TO);
    let sum = ip_checksum(&bytes[IP..UDP]);
    bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    bytes[UDP..UDP + 2].copy_from_slice(&SOURCE_PORT.to_be_bytes());
    bytes[UDP + 2..UDP + 4].copy_from_slice(&ECHO_PORT.to_be_bytes());
    bytes[UDP + 4..UDP + 6].copy_from_slice(&(ip_length - 20).to_be_bytes());
    // The UDP checksum 0 means that the datagram has none (RFC 768). The stamp has a checksum of its own;
    // UDP's would need a pass over each whole frame.
    for (i, byte) in bytes.iter_mut().enumerate().skip(SEEN) {
        *byte = i as u8; // appendix C.2.6.4: an incrementing pattern
    }
    bytes
}

/// Writes the stamp into a frame made by `template`.
pub fn stamp(bytes: &mut [u8], stamp: Stamp) {
    bytes[STAMP..STAMP + 2].copy_from_slice(&stamp.trial.to_be_bytes());
    bytes[STAMP + 2..STAMP + 6].copy_from_slice(&stamp.seq.to_be_bytes());
    bytes[STAMP + 6..STAMP + 14].copy_from_slice(&stamp.sent_ns.to_be_bytes());
    bytes[STAMP + 14..SEEN].copy_from_slice(&check(stamp).to_be_bytes());
}

/// Returns the stamp of a frame; None if the frame is too short or the stamp's checksum is wrong.
pub fn read(bytes: &[u8]) -> Option<Stamp> {
    let seen = bytes.get(STAMP..SEEN)?;
    let stamp = Stamp {
        trial: u16::from_be_bytes(seen[..2].try_into().ok()?),
        seq: u32::from_be_bytes(seen[2..6].try_into().ok()?),
        sent_ns: i64::from_be_bytes(seen[6..14].try_into().ok()?),
    };
    (check(stamp).to_be_bytes() == seen[14..]).then_some(stamp)
}

/// Computes a stamp's checksum by three multiplications, cheaper than a CRC at a million frames a second.
fn check(stamp: Stamp) -> u32 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let place = u64::from(stamp.trial) << 32 | u64::from(stamp.seq);
    let mixed = (place ^ 0x5EED).wrapping_mul(ODD) ^ (stamp.sent_ns as u64).wrapping_mul(ODD | 2);
    ((mixed ^ mixed >> 29).wrapping_mul(ODD) >> 32) as u32
}

fn ip_checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// Parses a MAC address such as "02:00:00:00:00:01"; an error if the text has not six hexadecimal bytes.
pub fn mac(text: &str) -> Res<[u8; 6]> {
    let parts: Option<Vec<u8>> = text
        .split(':')
        .map(|p| u8::from_str_radix(p, 16).ok())
        .collect();
    parts.and_then(|p| p.try_into().ok()).ok_or_else(|| {
        format!(
            "frames: mac \"{text}\": six bytes in hexadecimal are needed; write 02:00:00:00:00:01"
        )
    })
}

/// Formats a MAC address as "02:00:00:00:00:01".
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stamp_round_trips(trial: u16, seq: u32, sent_ns: i64, size in SMALLEST..1518) {
            let mut bytes = template(size, [2; 6], [4; 6]);
            let wanted = Stamp { trial, seq, sent_ns };
            stamp(&mut bytes, wanted);
            prop_assert_eq!(bytes.len(), size - FCS);
            prop_assert_eq!(read(&bytes), Some(wanted));
        }

        #[test]
        fn any_flipped_bit_of_the_stamp_is_seen(bit in STAMP * 8..SEEN * 8, seq: u32, sent_ns: i64) {
            let mut bytes = template(64, [2; 6], [4; 6]);
            stamp(&mut bytes, Stamp { trial: 7, seq, sent_ns });
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(read(&bytes), None);
        }
    }

    #[test]
    fn the_ip_header_adds_up() {
        let bytes = template(64, [2; 6], [4; 6]);
        assert_eq!(ip_checksum(&bytes[IP..UDP]), 0);
        assert_eq!(u16::from_be_bytes([bytes[16], bytes[17]]), 46);
        assert_eq!(u16::from_be_bytes([bytes[38], bytes[39]]), 26);
    }

    #[test]
    fn a_short_frame_has_no_stamp() {
        assert_eq!(read(&[0; SEEN - 1]), None);
    }

    #[test]
    fn macs_are_six_bytes() {
        assert_eq!(mac("02:00:00:00:00:0f"), Ok([2, 0, 0, 0, 0, 15]));
        assert_eq!(mac_text([2, 0, 0, 0, 0, 15]), "02:00:00:00:00:0f");
        assert!(mac("02:00:00:00:00").is_err());
        assert!(mac("02:00:00:00:00:xx").is_err());
        assert!(mac("zz:02:00:00:00:00:01").is_err());
    }
}
