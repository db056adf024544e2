//! Encodes and decodes the payload `bytes`: a header of 28 bytes with the message's identity, then
//! padding.
//!
//! Big endian: `vNET`, purpose u8, 0 u8, 0 u16, flow u32, the low 32 bits of seq, scheduled_ns i64,
//! reply_bytes u32.

use super::{Identity, Payload, Purpose};

const MAGIC: &[u8; 4] = b"vNET";
const HEADER: usize = 28;
/// The purposes of messages; the index of a purpose is its byte in the header.
const PURPOSES: [Purpose; 5] = [
    Purpose::Request,
    Purpose::Reply,
    Purpose::Push,
    Purpose::Stream,
    Purpose::Other,
];

pub struct Bytes;

impl Payload for Bytes {
    fn smallest(&self) -> usize {
        HEADER
    }

    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        out.reserve(bytes);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[identity.purpose as u8, 0, 0, 0]);
        out.extend_from_slice(&identity.flow.to_be_bytes());
        // The low 32 bits of the number suffice for 59 hours at 20,000 messages a second.
        out.extend_from_slice(&(identity.seq as u32).to_be_bytes());
        out.extend_from_slice(&identity.scheduled_ns.to_be_bytes());
        out.extend_from_slice(&identity.reply_bytes.to_be_bytes());
        out.resize(end, 0);
    }

    fn read(&self, payload: &[u8]) -> Option<Identity> {
        let header: &[u8; HEADER] = payload.first_chunk()?;
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if !header.starts_with(MAGIC) {
            return None;
        }
        Some(Identity {
            purpose: *PURPOSES.get(usize::from(header[4]))?,
            flow: word(8),
            seq: u64::from(word(12)),
            scheduled_ns: i64::from(word(16)) << 32 | i64::from(word(20)),
            reply_bytes: word(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_the_contract() {
        let identity = Identity {
            purpose: Purpose::Stream,
            flow: 0x0102_0304,
            seq: 5,
            scheduled_ns: 0x0a0b_0c0d_0000_0001,
            reply_bytes: 400,
        };
        let mut out = Vec::new();
        Bytes.write(&identity, 30, &mut out);
        let expected = [
            b'v', b'N', b'E', b'T', 3, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 5, 10, 11, 12, 13, 0, 0, 0, 1,
            0, 0, 1, 144, 0, 0,
        ];
        assert_eq!(out, expected);
        assert_eq!(Bytes.read(&out), Some(identity));
        out[4] = 9;
        assert_eq!(Bytes.read(&out), None, "a kind that does not exist");
    }

    #[test]
    fn purposes_are_their_bytes() {
        for (byte, purpose) in PURPOSES.into_iter().enumerate() {
            assert_eq!(purpose as usize, byte);
        }
    }
}
