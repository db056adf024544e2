//! Dissects synchrophasors (IEEE C37.118.2): frames of sync word, size, stream, time, content and checksum,
//! one per datagram or consecutive in a stream.
//!
//! The measurements of a data frame are data, everything else is header. A frame with a wrong checksum is
//! BAD_CHECKSUM, whatever its type. The checksum of a frame that was captured only in part is not checked.

use super::head::Head;
use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "synphasor",
    type_name: |kind| NAMES[usize::from(kind) - 1].into(),
    tcp_ports: &[4712], // annex E of the standard, as of UDP
    udp_ports: &[4713],
    streams: Some(|| [Box::<Frames>::default(), Box::<Frames>::default()]),
    datagram: Some(datagram),
    ..Dissector::NONE
};

/// The names of frame types, bits 6 to 4 of the sync word (table 2), then of unreadable frames.
const NAMES: [&str; 8] = [
    "DATA",
    "HEADER",
    "CFG-1",
    "CFG-2",
    "COMMAND",
    "CFG-3",
    "BAD_CHECKSUM",
    "MALFORMED",
];
const DATA: u16 = 1;
const LAST: u16 = 6;
const BAD_CHECKSUM: u16 = 7;
const MALFORMED: u16 = 8;
const SYNC: u8 = 0xaa;
/// Length of sync word and size, from which a frame's length is known.
const BEFORE: usize = 4;
/// Length of the common header up to the content: sync word, size, IDCODE, SOC and FRACSEC.
const COMMON: u32 = 14;
const CHECKSUM: u32 = 2;

/// Returns the type and size of the frame that begins with `head`; None if the bytes do not begin a frame.
fn beginning(head: &[u8]) -> Option<(u16, u32)> {
    let (&[SYNC, kind, high, low], _) = head.split_first_chunk::<BEFORE>()? else {
        return None;
    };
    let (kind, size) = (
        u16::from(kind >> 4) + 1,
        u32::from(u16::from_be_bytes([high, low])),
    );
    (kind <= LAST && size >= COMMON + CHECKSUM).then_some((kind, size))
}

/// Computes the CRC-CCITT of annex B (x^16 + x^12 + x^5 + 1, from all ones); the result is 0 for a frame that
/// includes its valid checksum.
fn crc(from: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(from, |crc, byte| {
        let mut mixed = crc >> 8 ^ u16::from(*byte);
        mixed ^= mixed >> 4;
        crc << 8 ^ mixed << 12 ^ mixed << 5 ^ mixed
    })
}

/// Returns how many of the bytes from position `from` to `to` of a frame are header.
fn header_bytes(kind: u16, size: u32, from: u32, to: u32) -> u32 {
    let content = to.min(size - CHECKSUM).saturating_sub(from.max(COMMON));
    to - from - if kind == DATA { content } else { 0 }
}

/// Dissects a datagram; bytes beyond the frame's size are not header. A frame whose size is impossible is
/// MALFORMED. Returns false if the first two bytes are not those of a synchrophasor frame.
fn datagram(data: &[u8], length: usize, notes: &mut Notes) -> bool {
    if !matches!(data, [SYNC, kind, _, _, ..] if kind >> 4 < LAST as u8) {
        return false;
    }
    let fits = |(_, size): &(u16, u32)| *size as usize <= length;
    let Some((kind, size)) = beginning(data).filter(fits) else {
        notes.header = length as u32;
        notes.push(MALFORMED);
        return true;
    };
    notes.header = header_bytes(kind, size, 0, size);
    let wrong = data
        .get(..size as usize)
        .is_some_and(|all| crc(u16::MAX, all) != 0);
    notes.push(if wrong { BAD_CHECKSUM } else { kind });
    true
}

/// The parser of one direction of a connection.
#[derive(Default)]
struct Frames {
    head: Head<BEFORE>,
    frame: Option<Frame>,
}

/// The frame that is being parsed: `at` of its `size` bytes have been consumed.
#[derive(Clone, Copy)]
struct Frame {
    kind: u16,
    size: u32,
    at: u32,
    /// Checksum of the bytes so far; None if some bytes were not captured.
    crc: Option<u16>,
}

impl Frames {
    /// Consumes the next `count` bytes of the frame, counts its header bytes, and at the frame's end adds its
    /// type. `crc` is the checksum up to the last of these bytes; None if bytes were not captured.
    fn pass(&mut self, mut frame: Frame, count: u32, crc: Option<u16>, notes: &mut Notes) {
        let to = frame.at + count;
        notes.header += header_bytes(frame.kind, frame.size, frame.at, to);
        (frame.at, frame.crc) = (to, crc);
        self.frame = (to < frame.size).then_some(frame);
        if self.frame.is_none() {
            let wrong = crc.is_some_and(|crc| crc != 0);
            notes.push(if wrong { BAD_CHECKSUM } else { frame.kind });
        }
    }
}

impl Stream for Frames {
    fn begin(&mut self) {
        *self = Self::default();
    }

    /// Returns true for a chain of frames, the last of which may be incomplete.
    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        let mut rest = data;
        while let Some((_, size)) = beginning(rest) {
            let Some(after) = rest.get(size as usize..) else {
                return true;
            };
            rest = after;
        }
        rest.len() < data.len() && rest.len() < BEFORE && rest.first().is_none_or(|at| *at == SYNC)
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if let Some(frame) = self.frame {
                let step = data.len().min((frame.size - frame.at) as usize);
                let sum = frame.crc.map(|sum| crc(sum, &data[..step]));
                self.pass(frame, step as u32, sum, notes);
                data = &data[step..];
                continue;
            }
            let (head, taken) = self.head.take(&mut data);
            notes.header += taken;
            let Some(head) = head else { break };
            let Some((kind, size)) = beginning(&head) else {
                return false;
            };
            self.frame = Some(Frame {
                kind,
                size,
                at: BEFORE as u32,
                crc: Some(crc(u16::MAX, &head)),
            });
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = |frame: &Frame| count <= frame.size - frame.at;
        let frame = self.frame.filter(inside);
        if let Some(frame) = frame {
            self.pass(frame, count, None, notes);
        }
        frame.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The command of annex D (standard C37.118.2) that turns data transmission on.
    const COMMAND: [u8; 18] = [
        0xaa, 0x41, 0x00, 0x12, 0x1e, 0x36, 0x44, 0x85, 0x60, 0x30, 0x0f, 0x0b, 0xbf, 0xd0, 0x00,
        0x02, 0xce, 0x00,
    ];

    /// Builds a frame of this type with this content.
    fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
        let size = (content.len() as u32 + COMMON + CHECKSUM) as u16;
        let mut frame = vec![SYNC, kind << 4 | 1];
        frame.extend(size.to_be_bytes());
        frame.extend([7; 10]);
        frame.extend(content);
        frame.extend(crc(u16::MAX, &frame).to_be_bytes());
        frame
    }

    /// Dissects the first `captured` bytes of a datagram; returns type and header length, or None if it is
    /// not a synchrophasor frame.
    fn look(bytes: &[u8], captured: usize) -> Option<(String, u32)> {
        let mut notes = Notes {
            app: Some(0),
            ..Notes::default()
        };
        datagram(&bytes[..captured], bytes.len(), &mut notes).then(|| {
            assert!(notes.header as usize <= bytes.len());
            (NAMES[usize::from(notes.types[0]) - 1].into(), notes.header)
        })
    }

    /// Parses a stream in pieces; returns the message types, the total header length, and whether all pieces
    /// could be parsed.
    fn follow<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u16>, u32, bool) {
        let (mut stream, mut notes) = (Frames::default(), Notes::default());
        notes.app = Some(0);
        let known = pieces.all(|piece| stream.parse(piece, &mut notes));
        (notes.types, notes.header, known)
    }

    #[test]
    fn the_checksum_is_the_standards() {
        assert_eq!(crc(u16::MAX, b"123456789"), 0x29b1); // CRC-16/IBM-3740's check value
        assert_eq!(crc(u16::MAX, &COMMAND), 0);
    }

    #[test]
    fn measurements_are_data() {
        let frames = ["DATA", "HEADER", "CFG-1", "CFG-2", "COMMAND", "CFG-3"];
        for (kind, name) in frames.iter().enumerate() {
            let header = if kind == 0 { 16 } else { 36 };
            let frame = framed(kind as u8, &[1; 20]);
            assert_eq!(look(&frame, 36), Some(((*name).into(), header)));
        }
    }

    #[test]
    fn detects_a_flipped_bit_in_a_whole_frame() {
        for bit in 32..18 * 8 {
            let mut frame = COMMAND;
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(look(&frame, 18), Some(("BAD_CHECKSUM".into(), 18)), "{bit}");
            assert_eq!(look(&frame, 17), Some(("COMMAND".into(), 18)), "{bit}");
            assert_eq!(follow([&frame[..]].into_iter()).0, [BAD_CHECKSUM]);
        }
    }

    #[test]
    fn a_size_that_does_not_fit_is_malformed() {
        for size in [0, 15, 19, 255] {
            let mut frame = COMMAND;
            frame[3] = size;
            assert_eq!(look(&frame, 18), Some(("MALFORMED".into(), 18)), "{size}");
        }
        assert_eq!(look(&COMMAND, 3), None); // too short to identify
    }

    #[test]
    fn another_protocol_is_not_this_one() {
        for bytes in [&b"vNET"[..], &[SYNC], &[SYNC, 0x61, 0, 18], &[SYNC, 0x81]] {
            assert_eq!(look(bytes, bytes.len()), None);
        }
        assert!(!follow([&b"GET / HTTP/1.1"[..]].into_iter()).2);
    }

    #[test]
    fn uncaptured_bytes_are_not_checked() {
        let frame = framed(0, &[9; 40]);
        let (mut stream, mut notes) = (Frames::default(), Notes::default());
        assert!(stream.parse(&frame[..20], &mut notes) && stream.skip(30, &mut notes));
        assert!(stream.parse(&frame[50..], &mut notes) && !stream.skip(1, &mut notes));
        assert_eq!((notes.types, notes.header), (vec![DATA], 16));
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_however_it_is_cut(
            contents in proptest::collection::vec((0u8..6, proptest::collection::vec(any::<u8>(), 0..90)), 1..9),
            cut in 1usize..70,
        ) {
            let frames: Vec<_> = contents.iter().map(|(kind, content)| framed(*kind, content)).collect();
            let all = frames.concat();
            let (types, header, known) = follow(all.chunks(cut));
            let expected: Vec<_> = contents.iter().map(|(kind, _)| u16::from(*kind) + 1).collect();
            let data: usize = contents.iter().map(|(kind, content)| if *kind == 0 { content.len() } else { 0 }).sum();
            prop_assert!(known && Frames::default().plausible(&all, false));
            prop_assert_eq!((types, header as usize), (expected, all.len() - data));
        }

        #[test]
        fn any_bytes_are_followed_or_not(mut bytes: Vec<u8>, cut in 1usize..64) {
            look(&bytes, bytes.len().min(cut));
            bytes.splice(..0, [SYNC, 1]);
            look(&bytes, bytes.len().min(cut));
            let (_, header, _) = follow(bytes.chunks(cut));
            prop_assert!(header as usize <= bytes.len());
            Frames::default().plausible(&bytes, false);
        }
    }
}
