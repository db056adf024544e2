//! Encodes and decodes the probe frame: probe, number, sending time, and a checksum over the whole frame.

pub const ETHERTYPE: u16 = 0x88b5;
/// Destination of probe frames: the nearest-bridge group address (802.1Q table 8-1), which bridges do not
/// forward, except vNET's own bridge in a guest (`group_fwd_mask` bit 14).
pub const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
const SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
const HEADER: usize = 14;
const CHECK_AT: usize = HEADER + 16;
/// The smallest frame: Ethernet's minimum, in which header and fields fit.
pub const SMALLEST: usize = 60;

#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub probe: u32,
    pub seq: u32,
    pub sent_ns: i64,
}

impl Frame {
    /// Encodes the frame with a total length of `size` bytes, Ethernet header included, or of `SMALLEST` if
    /// that is more.
    pub fn write(&self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size);
        bytes.extend(DESTINATION);
        bytes.extend(SOURCE);
        bytes.extend(ETHERTYPE.to_be_bytes());
        bytes.extend(self.probe.to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.sent_ns.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.resize(size.max(SMALLEST), 0xa5);
        let sum = checksum(&bytes);
        bytes[CHECK_AT..CHECK_AT + 4].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Returns the frame's fields, and whether its checksum is right. A frame shorter than `SMALLEST` is not
    /// right, and its missing fields are 0.
    pub fn read(bytes: &[u8]) -> (Self, bool) {
        let word = |at: usize| {
            bytes
                .get(at..at + 4)
                .and_then(|b| b.try_into().ok())
                .map_or(0, u32::from_be_bytes)
        };
        let frame = Self {
            probe: word(HEADER),
            seq: word(HEADER + 4),
            sent_ns: (i64::from(word(HEADER + 8)) << 32) | i64::from(word(HEADER + 12)),
        };
        let mut copy = bytes.to_vec();
        if copy.len() < SMALLEST {
            return (frame, false);
        }
        copy[CHECK_AT..CHECK_AT + 4].fill(0);
        (frame, checksum(&copy) == word(CHECK_AT))
    }
}

/// Computes the FNV-1a checksum, which detects every single flipped bit; netem flips single bits.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, b| {
        (sum ^ u32::from(*b)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_data_round_trips(probe: u32, seq: u32, sent_ns in 0i64..i64::MAX, size in SMALLEST..1500) {
            let frame = Frame { probe, seq, sent_ns };
            let bytes = frame.write(size);
            prop_assert_eq!(bytes.len(), size);
            prop_assert_eq!(Frame::read(&bytes), (frame, true));
        }

        #[test]
        fn any_flipped_bit_is_seen(bit in 0usize..8 * 200) {
            let mut bytes = Frame { probe: 1, seq: 2, sent_ns: 3 }.write(200);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!Frame::read(&bytes).1);
        }
    }
}
