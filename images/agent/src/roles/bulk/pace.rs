//! Paces a transfer: how many bytes may have left by a time, given its rate, volume and end.

use super::Protocol;

/// The largest single write to a socket.
pub const CHUNK: usize = 131_072;
/// Paced data leaves at this interval, the default of iperf3.
const PACE_NS: u64 = 1_000_000;

pub struct Pace {
    pub protocol: Protocol,
    /// 0: greedy.
    pub rate_bps: u64,
    pub size: usize,
    /// 0: until the flow's end.
    pub volume_bytes: u64,
    pub start_ns: i64,
    pub stop_ns: i64,
}

impl Pace {
    /// Bytes that may have left by `now`: 0 before the start, constant after the end.
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

    /// Size of the next paced write; the last one may be smaller.
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

    /// When the next quantum may leave.
    pub fn next_ns(&self, sent: u64) -> i64 {
        let bits = u128::from(sent + self.quantum(sent)) * 8;
        let after = (bits * 1_000_000_000).div_ceil(u128::from(self.rate_bps));
        self.start_ns.saturating_add(after as i64)
    }
}
