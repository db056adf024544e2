//! Paces a bulk transfer: computes how many bytes may have been sent by a time, given rate, volume and end.

use super::Protocol;

/// The largest single write to a socket in bytes.
pub const CHUNK: usize = 131_072;
/// The interval in nanoseconds at which paced data is written over TCP, the default of iperf3.
const PACE_NS: u64 = 1_000_000;

pub struct Pace {
    pub protocol: Protocol,
    /// The payload rate in bits per second; 0: as fast as possible.
    pub rate_bps: u64,
    pub size: usize,
    /// Bytes to send; 0: no limit until the flow's end.
    pub volume_bytes: u64,
    pub start_ns: i64,
    pub stop_ns: i64,
}

impl Pace {
    /// Returns the number of bytes that may have been sent by `now` (Unix nanoseconds): 0 before the start,
    /// then the bytes that the rate allows, at most `volume_bytes` if that is set.
    pub fn allowed(&self, now: i64) -> u64 {
        if now < self.start_ns {
            return 0;
        }
        let rate = u128::from(self.rate_bps);
        let paced = match rate {
            0 => u64::MAX,
            _ => (rate * (now - self.start_ns) as u128 / 8_000_000_000) as u64,
        };
        match self.volume_bytes {
            0 => paced,
            volume => paced.min(volume),
        }
    }

    pub fn done(&self, now: i64, sent: u64) -> bool {
        let volume = self.volume_bytes;
        now >= self.stop_ns || (volume > 0 && sent >= volume)
    }

    /// Returns the size of the next paced write in bytes: one datagram, or over TCP the bytes of one interval
    /// `PACE_NS`, from 1448 to `CHUNK`. The last write may be smaller.
    pub fn quantum(&self, sent: u64) -> u64 {
        let some = match self.protocol {
            Protocol::Udp => self.size as u64,
            Protocol::Tcp => {
                (self.rate_bps / 8 * PACE_NS / 1_000_000_000).clamp(1448, CHUNK as u64)
            }
        };
        match self.volume_bytes {
            0 => some,
            volume => some.min(volume.saturating_sub(sent)),
        }
    }

    /// Returns when the next paced write may happen, in Unix nanoseconds; only for a flow with a rate.
    pub fn next_ns(&self, sent: u64) -> i64 {
        let bits = u128::from(sent + self.quantum(sent)) * 8;
        let after = (bits * 1_000_000_000).div_ceil(u128::from(self.rate_bps));
        self.start_ns.saturating_add(after as i64)
    }
}
