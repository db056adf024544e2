//! Encodes and decodes the payload `protobuf`: a sample of the schema `villas.proto`, which is
//! VILLASnode's plus the field `flow`.
//!
//! Varints have a fixed number of bytes (the encoding allows leading zeros), so that the length depends
//! only on the number of signals. <https://protobuf.dev/programming-guides/encoding/>

use super::signals;
use super::{Identity, Payload, Purpose};

/// Key of Message.samples: field 1, length-delimited; its length takes two bytes.
const SAMPLE: u8 = 1 << 3 | 2;
/// Sample.type: field 1, a varint, with the value DATA.
const TYPE: [u8; 2] = [1 << 3, 1];
/// Key of Sample.sequence: field 2, a varint.
const SEQUENCE: u8 = 2 << 3;
/// Key of Sample.ts_origin, field 3, length-delimited, and its length.
const ORIGIN: [u8; 2] = [3 << 3 | 2, 2 * (1 + VARINT as u8)];
/// Keys of Timestamp.sec and Timestamp.nsec: fields 1 and 2, varints.
const SEC: u8 = 1 << 3;
const NSEC: u8 = 2 << 3;
/// Key of Sample.flow: field 99, four bytes, little endian.
const FLOW: [u8; 2] = key(99, 5);
/// Key of Sample.values: field 100, delimited, nine bytes; in it Value.f: field 1, eight bytes.
const VALUE_KEY: [u8; 2] = key(100, 2);
const VALUE: [u8; 4] = [VALUE_KEY[0], VALUE_KEY[1], 9, 1 << 3 | 1];

/// The length of every varint in bytes; five bytes hold 35 bits.
const VARINT: usize = 5;
const LENGTH: usize = 2;
const SEQ_AT: usize = 1 + LENGTH + TYPE.len() + 1;
const SEC_AT: usize = SEQ_AT + VARINT + ORIGIN.len() + 1;
const NSEC_AT: usize = SEC_AT + VARINT + 1;
const FLOW_AT: usize = NSEC_AT + VARINT + FLOW.len();
const HEADER: usize = FLOW_AT + 4;
const VALUE_BYTES: usize = VALUE.len() + 8;
const _: () = assert!(HEADER + signals::MOST * VALUE_BYTES < 1 << (7 * LENGTH));

const fn key(field: u16, wire: u16) -> [u8; 2] {
    let key = field << 3 | wire;
    [(key & 0x7f) as u8 | 0x80, (key >> 7) as u8]
}

fn varint<const BYTES: usize>(number: u64) -> [u8; BYTES] {
    std::array::from_fn(|place| {
        let more = if place + 1 < BYTES { 0x80 } else { 0 };
        (number >> (7 * place)) as u8 & 0x7f | more
    })
}

pub struct Protobuf;

impl Payload for Protobuf {
    fn smallest(&self) -> usize {
        HEADER + VALUE_BYTES
    }

    fn step(&self) -> usize {
        VALUE_BYTES
    }

    fn largest(&self) -> usize {
        self.smallest() + (signals::MOST - 1) * self.step()
    }

    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>) {
        let (sec, nsec) = identity.due();
        out.reserve(bytes);
        out.push(SAMPLE);
        out.extend_from_slice(&varint::<LENGTH>((bytes - 1 - LENGTH) as u64));
        out.extend_from_slice(&TYPE);
        out.push(SEQUENCE);
        out.extend_from_slice(&varint::<VARINT>(identity.seq));
        out.extend_from_slice(&ORIGIN);
        for (key, number) in [(SEC, sec), (NSEC, nsec)] {
            out.push(key);
            out.extend_from_slice(&varint::<VARINT>(number));
        }
        out.extend_from_slice(&FLOW);
        out.extend_from_slice(&identity.flow.to_le_bytes());
        for index in 0..self.count(bytes) {
            out.extend_from_slice(&VALUE);
            out.extend_from_slice(&signals::value(identity.seq, index).to_le_bytes());
        }
    }

    fn read(&self, payload: &[u8]) -> Option<Identity> {
        let header: &[u8; HEADER] = payload.first_chunk()?;
        let ours = header[0] == SAMPLE
            && header[1 + LENGTH..].starts_with(&TYPE)
            && header[SEQ_AT - 1] == SEQUENCE
            && header[SEQ_AT + VARINT..].starts_with(&ORIGIN)
            && header[SEC_AT - 1] == SEC
            && header[NSEC_AT - 1] == NSEC
            && header[NSEC_AT + VARINT..].starts_with(&FLOW);
        if !ours {
            return None;
        }
        let number = |at: usize| {
            let bytes = header[at..at + VARINT].iter().rev();
            bytes.fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
        };
        Some(Identity {
            purpose: Purpose::Other,
            flow: u32::from_le_bytes(header[FLOW_AT..].try_into().ok()?),
            seq: number(SEQ_AT),
            scheduled_ns: super::joined(number(SEC_AT), number(NSEC_AT))?,
            reply_bytes: 0,
        })
    }
}
