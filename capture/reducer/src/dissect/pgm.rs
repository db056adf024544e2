//! Dissects PGM (RFC 3208) in UDP: source path messages, data and repairs, negative acknowledgements and
//! confirmations.

use super::{Dissector, Notes};

pub const DISSECTOR: Dissector = Dissector {
    name: "pgm",
    type_name,
    datagram: Some(datagram),
    ..Dissector::NONE
};

/// Packet types, the values of the header's fifth byte, with their names (RFC 3208, section 8.1; SPMR:
/// appendix D's draft, by OpenPGM). The message type in `Notes` is the packet type plus one.
const TYPES: [(u16, &str); 10] = [
    (0x00, "SPM"),
    (0x01, "POLL"),
    (0x02, "POLR"),
    (0x04, "ODATA"),
    (0x05, "RDATA"),
    (0x08, "NAK"),
    (0x09, "NNAK"),
    (0x0a, "NCF"),
    (0x0c, "SPMR"),
    (0x0d, "ACK"),
];
/// Length of the common header: ports, type, options, checksum, the source's identifier, length of the data.
const HEADER: usize = 16;
/// Length of a data packet's header, which also holds the packet's number and that of the oldest repairable
/// packet.
const DATA_HEADER: usize = HEADER + 8;
const OPTIONS_FOLLOW: u8 = 0x01;

fn type_name(kind: u16) -> String {
    let found = TYPES.iter().find(|(number, _)| *number + 1 == kind);
    found.map_or_else(|| kind.to_string(), |(_, name)| (*name).into())
}

/// Dissects a datagram; everything except the data of ODATA and RDATA counts as header. Returns false if it
/// is not PGM: the packet type is unknown, or the length does not fit the stated length of the data.
fn datagram(data: &[u8], length: usize, notes: &mut Notes) -> bool {
    let (Some(head), true) = (data.get(..HEADER), length >= HEADER) else {
        return false;
    };
    let number = u16::from(head[4]);
    if !TYPES.iter().any(|(known, _)| *known == number) {
        return false;
    }
    let stated = usize::from(u16::from_be_bytes([head[14], head[15]]));
    let carries = matches!(number, 0x04 | 0x05);
    let least = if carries { DATA_HEADER } else { HEADER };
    let content = if carries { stated } else { 0 };
    if length < least + content
        || (head[5] & OPTIONS_FOLLOW == 0 && carries && length != least + content)
    {
        return false;
    }
    notes.header = (length - content) as u32;
    notes.push(number + 1);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: u8, options: u8, stated: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes[4] = kind;
        bytes[5] = options;
        bytes[14..16].copy_from_slice(&stated.to_be_bytes());
        bytes
    }

    fn look(bytes: &[u8]) -> Option<(String, u32)> {
        let mut notes = Notes {
            app: Some(0),
            ..Notes::default()
        };
        datagram(bytes, bytes.len(), &mut notes)
            .then(|| (type_name(notes.types[0] & 0x3ff), notes.header))
    }

    #[test]
    fn separates_data_from_header_and_options() {
        assert_eq!(look(&packet(0x04, 0, 61, 85)), Some(("ODATA".into(), 24)));
        assert_eq!(look(&packet(0x05, 1, 41, 85)), Some(("RDATA".into(), 44)));
        assert_eq!(look(&packet(0x08, 1, 0, 56)), Some(("NAK".into(), 56)));
    }

    #[test]
    fn ignores_other_protocols() {
        assert_eq!(look(&packet(0x03, 0, 0, 40)), None);
        assert_eq!(look(&packet(0x04, 0, 200, 85)), None);
        assert_eq!(look(&[0; 15]), None);
    }
}
