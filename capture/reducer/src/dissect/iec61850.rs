//! Dissects sampled values (IEC 61850-9-2) and GOOSE (IEC 61850-8-1) on Ethernet: APPID, length, two reserved
//! words, and an APDU in the basic encoding rules.
//!
//! Process data is payload: the samples of sampled values, the data set's values of GOOSE. Everything else is
//! header. A frame that cannot be parsed is MALFORMED, since the EtherType identifies the protocol.

use super::{Dissector, Notes};

pub const SAMPLED_VALUES: Dissector = Dissector {
    name: "sv",
    type_name: |kind| ["SAMPLES", "MALFORMED"][usize::from(kind) - 1].into(),
    ethertypes: &[0x88ba],
    datagram: Some(|data, length, notes| note_frame(data, length, notes, samples)),
    ..Dissector::NONE
};

pub const GOOSE: Dissector = Dissector {
    name: "goose",
    type_name: |kind| ["STATE", "MALFORMED", "REPETITION"][usize::from(kind) - 1].into(),
    ethertypes: &[0x88b8],
    datagram: Some(|data, length, notes| note_frame(data, length, notes, states)),
    ..Dissector::NONE
};

const HEAD: usize = 8;
const MALFORMED: u16 = 2;
/// The type of a GOOSE message that repeats an earlier state: its sqNum is not 0.
const REPETITION: u16 = 3;

/// The message type of an APDU, and the length of its data in bytes, which may exceed the captured part.
type Content = (u16, usize);

/// Adds a frame's message type and header length to `notes`; bytes beyond the length that the frame states
/// are not header. A frame that `read` cannot parse is MALFORMED and all header. Always returns true, since
/// the EtherType identifies the protocol.
fn note_frame(
    data: &[u8],
    length: usize,
    notes: &mut Notes,
    read: fn(&mut Values) -> Option<Content>,
) -> bool {
    let stated = data
        .get(2..4)
        .map(|at| usize::from(u16::from_be_bytes([at[0], at[1]])));
    let whole = stated.filter(|stated| (HEAD..=length).contains(stated));
    let parsed = whole.and_then(|whole| {
        let captured = data.get(HEAD..whole.min(data.len()))?;
        read(&mut Values {
            bytes: captured,
            beyond: whole - HEAD - captured.len(),
        })
    });
    let (kind, content) = parsed.unwrap_or((MALFORMED, 0));
    notes.header = (whole.unwrap_or(length) - content.min(whole.unwrap_or(length))) as u32;
    notes.push(kind);
    true
}

/// A sequence of encoded values: the captured bytes, and the number of further bytes that were not captured.
struct Values<'a> {
    bytes: &'a [u8],
    beyond: usize,
}

impl<'a> Values<'a> {
    /// Removes the next value: its tag, length and captured content. None at the end of the captured bytes,
    /// and also if no value begins here; `is_whole` distinguishes the two.
    fn next(&mut self) -> Option<(u8, usize, Values<'a>)> {
        let (&[tag, first], mut rest) = self.bytes.split_first_chunk()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let count = usize::from(first & 0x7f);
            if !(1..=4).contains(&count) {
                return None;
            }
            let (digits, after) = rest.split_at_checked(count)?;
            length = digits
                .iter()
                .fold(0, |n, digit| n << 8 | usize::from(*digit));
            rest = after;
        }
        if length > rest.len() + self.beyond {
            return None;
        }
        let (content, rest) = rest.split_at(length.min(rest.len()));
        let missing = length - content.len();
        self.beyond -= missing;
        self.bytes = rest;
        Some((
            tag,
            length,
            Values {
                bytes: content,
                beyond: missing,
            },
        ))
    }

    /// Returns true if all captured bytes have been parsed.
    fn is_whole(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Parses a savPdu, the APDU of sampled values. Returns the type SAMPLES and the total length of the samples
/// of all its ASDUs; None if malformed.
fn samples(apdu: &mut Values) -> Option<Content> {
    let (0x60, _, mut pdu) = apdu.next()? else {
        return None;
    };
    let mut content = 0;
    while let Some((tag, _, mut sequence)) = pdu.next() {
        if tag != 0xa2 {
            continue;
        }
        while let Some((0x30, _, mut asdu)) = sequence.next() {
            while let Some((tag, length, _)) = asdu.next() {
                content += if tag == 0x87 { length } else { 0 };
            }
            asdu.is_whole().then_some(())?;
        }
        sequence.is_whole().then_some(())?;
    }
    pdu.is_whole().then_some((1, content))
}

/// Parses a goosePdu, the APDU of GOOSE. Returns the type STATE if its sqNum is 0, else REPETITION, and the
/// length of the data set's values; None if malformed or without sqNum.
fn states(apdu: &mut Values) -> Option<Content> {
    let (0x61, _, mut pdu) = apdu.next()? else {
        return None;
    };
    let (mut kind, mut content) = (None, 0);
    while let Some((tag, length, value)) = pdu.next() {
        match tag {
            0x86 => {
                kind = Some(if value.bytes.iter().all(|byte| *byte == 0) {
                    1
                } else {
                    REPETITION
                })
            }
            0xab => content = length,
            _ => {}
        }
    }
    pdu.is_whole().then_some((kind?, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An ASDU with a sample of four bytes. The next constant is a GOOSE message with one value.
    const SV: [u8; 35] = [
        0x40, 0, 0, 35, 0, 0, 0, 0, 0x60, 25, 0x80, 1, 1, 0xa2, 20, 0x30, 18, 0x80, 1, b'M', 0x82,
        2, 0, 9, 0x85, 1, 2, 0x87, 6, 1, 2, 3, 4, 5, 6,
    ];
    const EVENT: [u8; 21] = [
        0, 1, 0, 21, 0, 0, 0, 0, 0x61, 11, 0x85, 1, 3, 0x86, 1, 0, 0xab, 3, 0x83, 1, 1,
    ];

    /// Dissects the first `captured` bytes of a frame; returns the name of its type and its header length.
    fn look(of: &Dissector, bytes: &[u8], captured: usize) -> (String, u32) {
        let mut notes = Notes {
            app: Some(0),
            ..Notes::default()
        };
        assert!(of.datagram.unwrap()(
            &bytes[..captured],
            bytes.len(),
            &mut notes
        ));
        assert!(notes.header as usize <= bytes.len());
        ((of.type_name)(notes.types[0] & 0x3ff), notes.header)
    }

    #[test]
    fn process_data_is_payload() {
        assert_eq!(look(&SAMPLED_VALUES, &SV, 35), ("SAMPLES".into(), 29));
        assert_eq!(look(&GOOSE, &EVENT, 21), ("STATE".into(), 18));
        let mut again = EVENT;
        again[15] = 1;
        assert_eq!(look(&GOOSE, &again, 21), ("REPETITION".into(), 18));
    }

    #[test]
    fn uncaptured_samples_count() {
        for captured in 29..35 {
            assert_eq!(
                look(&SAMPLED_VALUES, &SV, captured),
                ("SAMPLES".into(), 29),
                "{captured}"
            );
        }
    }

    #[test]
    fn a_length_beyond_the_frame_is_malformed() {
        for (place, value) in [(3, 200), (3, 7), (9, 26), (14, 21), (16, 0x80)] {
            let mut bytes = SV;
            bytes[place] = value;
            assert_eq!(look(&SAMPLED_VALUES, &bytes, 35).0, "MALFORMED", "{place}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_one_frame(bytes: Vec<u8>, cut in 0usize..64) {
            for of in [&SAMPLED_VALUES, &GOOSE] {
                look(of, &bytes, bytes.len().min(cut));
            }
        }

        #[test]
        fn changed_bytes_are_one_frame(places in proptest::collection::vec((0usize..35, any::<u8>()), 1..5)) {
            let mut bytes = SV;
            for (place, value) in places {
                bytes[place] = value;
            }
            look(&SAMPLED_VALUES, &bytes, 35);
        }
    }
}
