//! Dissects CoAP over UDP (RFC 7252): a message's type and code together are its type in the table, and
//! everything except its payload counts as header. Its Message ID is its number; its acknowledgement has the
//! same number.

use super::{Dissector, Notes};

pub const DISSECTOR: Dissector = Dissector {
    name: "coap",
    type_name,
    udp_ports: &[5683],
    datagram: Some(datagram),
    ..Dissector::NONE
};

const VERSION: u8 = 1;
const HEADER: usize = 4;
const LONGEST_TOKEN: usize = 8;
const MARKER: u8 = 0xff;
/// The types as tshark abbreviates them, by the number in the header's two bits.
const KINDS: [&str; 4] = ["CON", "NON", "ACK", "RST"];
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH"];
/// A number that no message has, since RFC 7252, 4.3, forbids a non-confirmable message without a code.
const NOTHING: u16 = 0;

/// Returns the number of a type and code. The number is never `NOTHING`, not even for a ping, which is a
/// confirmable empty message.
fn numbered(kind: u8, code: u8) -> u16 {
    u16::from(kind.wrapping_sub(1) & 3) << 8 | u16::from(code)
}

fn type_name(number: u16) -> String {
    let kind = KINDS[usize::from(((number >> 8) + 1) & 3)];
    let code = number & 0xff;
    match METHODS.get(usize::from(code).wrapping_sub(1)) {
        _ if code == 0 => kind.into(),
        Some(method) => format!("{kind} {method}"),
        None => format!("{kind} {}.{:02}", code >> 5, code & 31),
    }
}

fn datagram(data: &[u8], length: usize, notes: &mut Notes) -> bool {
    let &[first, code, high, low, ..] = data else {
        return false;
    };
    let number = numbered(first >> 4 & 3, code);
    let token = usize::from(first & 15);
    if first >> 6 != VERSION || token > LONGEST_TOKEN || number == NOTHING {
        return false;
    }
    notes.header = header(data, HEADER + token, length) as u32;
    notes.push_numbered(number, u16::from_be_bytes([high, low]).into());
    true
}

/// Returns the length of everything before the payload. Returns the whole length if there is no payload, or
/// if the options are malformed or were not captured.
fn header(data: &[u8], mut at: usize, length: usize) -> usize {
    while let Some(&head) = data.get(at) {
        at += 1;
        if head == MARKER {
            return at.min(length);
        }
        let (Some((_, more)), Some((size, rest))) =
            (extended(data, at, head >> 4), after_delta(data, at, head))
        else {
            return length;
        };
        at += more + rest + size;
    }
    length
}

/// Returns the length of an option's value, and the number of bytes that extend this length; these follow the
/// bytes that extend the option's delta.
fn after_delta(data: &[u8], at: usize, head: u8) -> Option<(usize, usize)> {
    let (_, more) = extended(data, at, head >> 4)?;
    extended(data, at + more, head & 15)
}

/// Returns the number that four bits and the bytes at `at` encode, and the number of these bytes; None if the
/// bits are reserved or the bytes were not captured.
fn extended(data: &[u8], at: usize, bits: u8) -> Option<(usize, usize)> {
    let byte = |at: usize| data.get(at).copied().map(usize::from);
    match bits {
        13 => Some((13 + byte(at)?, 1)),
        14 => Some((269 + (byte(at)? << 8 | byte(at + 1)?), 2)),
        15 => None,
        bits => Some((bits.into(), 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the type, number and header's length of a datagram; None if the datagram is not CoAP.
    fn look(bytes: &[u8], length: usize) -> Option<(String, u32, u32)> {
        let mut notes = Notes {
            app: Some(0),
            ..Notes::default()
        };
        datagram(bytes, length, &mut notes).then(|| {
            assert!(notes.header as usize <= length);
            (type_name(notes.types[0]), notes.ids[0], notes.header)
        })
    }

    #[test]
    fn types_are_those_of_the_standards_examples() {
        // RFC 7252, appendix A: figures 16, 19 (with a token) and a ping with its reset.
        let asked = b"\x40\x01\x7d\x34\xbbtemperature";
        let answer = b"\x61\x45\x7d\x36\x20\xff22.3 C";
        for (bytes, name, id, header) in [
            (&asked[..], "CON GET", 0x7d34, 16),
            (&answer[..], "ACK 2.05", 0x7d36, 6),
            (b"\x50\x84\0\x01", "NON 4.04", 1, 4),
            (b"\x40\0\0\x07", "CON", 7, 4),
            (b"\x70\0\0\x07", "RST", 7, 4),
        ] {
            assert_eq!(look(bytes, bytes.len()), Some((name.into(), id, header)));
        }
    }

    #[test]
    fn other_protocols_and_versions_are_not_this_one() {
        for bytes in [
            &b"vNET"[..3],
            b"\x80\x01\0\x01",
            b"\x49\x01\0\x01123456789",
            b"\x50\0\0\x01",
        ] {
            assert_eq!(look(bytes, bytes.len()), None, "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_dissected_or_not(mut bytes: Vec<u8>, more in 0usize..99) {
            look(&bytes, bytes.len() + more);
            bytes.splice(..0, [0x42, 2, 0, 1]);
            look(&bytes, bytes.len() + more);
        }
    }
}
