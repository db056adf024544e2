//! Analyses TCP sequence numbers: classifies retransmissions by Wireshark's documented rules.
//!
//! The rules are those of the Wireshark User's Guide, "TCP Analysis" (7.5), in the order of version 4.0;
//! tests compare the results with tshark. As in Wireshark, a sequence number of 0 means "not seen yet".

pub const FIN: u16 = 0x01;
pub const SYN: u16 = 0x02;
pub const RST: u16 = 0x04;
pub const ACK: u16 = 0x10;

/// A segment counts as a fast retransmission if it follows the last duplicate ACK by less than this time.
const FAST_NS: u64 = 20_000_000;
/// A repeated segment counts as out of order if it follows the newest segment by less than this time. If the
/// connection's round trip is known, that time replaces this constant.
const OUT_OF_ORDER_NS: u64 = 3_000_000;

/// The class of a TCP segment; the number of each variant is the index of its name in `columns::VERDICTS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    #[default]
    Plain,
    Retransmission,
    Fast,
    Spurious,
    OutOfOrder,
    KeepAlive,
}

impl Verdict {
    /// Returns true for the classes for which tshark sets tcp.analysis.retransmission: any of the three kinds
    /// of retransmission.
    pub fn is_retransmission(self) -> bool {
        matches!(self, Self::Retransmission | Self::Fast | Self::Spurious)
    }
}

/// The header fields that the analysis uses; `len` counts payload bytes.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub time_ns: i64,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub flags: u16,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    KeepAlive,
    ZeroWindowProbe,
}

/// The analysis state of one direction of a connection: sequence numbers, acknowledgements and the last
/// segment.
#[derive(Clone, Debug, Default)]
pub struct Side {
    pub base_seq: Option<u32>,
    next_seq: u32,
    next_seq_ns: i64,
    to_be_acked: u32,
    last_ack: u32,
    last_ack_ns: i64,
    duplicate_acks: i32,
    window: Option<u16>,
    last: Last,
}

fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

impl Side {
    /// Resets the next expected sequence number to the end of the contiguous data seen so far; for a SYN that
    /// repeats the connection's first SYN.
    pub fn restart(&mut self) {
        self.next_seq = self.to_be_acked;
    }

    /// Classifies `segment`, sent in this direction, and updates the state of both directions; `reverse` is
    /// the other direction. `round_trip_ns` is 0 if unknown.
    pub fn judge(&mut self, reverse: &mut Side, segment: &Segment, round_trip_ns: i64) -> Verdict {
        let probe = segment.len == 1 && segment.seq == self.next_seq && reverse.window == Some(0);
        let plain = segment.flags & (SYN | FIN | RST) == 0;
        let keep_alive =
            !probe && plain && segment.len <= 1 && segment.seq == self.next_seq.wrapping_sub(1);
        if !probe && plain {
            self.count_duplicate_ack(reverse, segment);
        }
        if segment.ack != self.last_ack {
            self.duplicate_acks = 0;
        }
        reverse.note_ack_of_unseen(segment);
        let verdict = if segment.len == 0 && segment.flags & (SYN | FIN) == 0 {
            Verdict::Plain
        } else if keep_alive {
            Verdict::KeepAlive
        } else {
            self.repeated(reverse, segment, round_trip_ns)
        };
        self.advance(segment, probe);
        self.last = match (probe, keep_alive) {
            (true, _) => Last::ZeroWindowProbe,
            (_, true) => Last::KeepAlive,
            _ => Last::Other,
        };
        if keep_alive {
            Verdict::KeepAlive
        } else {
            verdict
        }
    }

    /// Counts `segment` if it is a duplicate ACK of this direction: no data, sequence number,
    /// acknowledgement and window as before, a window above 0, and no answer to a keep-alive. The caller
    /// passes no SYN, FIN, RST or zero-window probe.
    fn count_duplicate_ack(&mut self, reverse: &Side, segment: &Segment) {
        let repeats = segment.len == 0
            && Some(segment.window) == self.window
            && segment.seq == self.next_seq
            && segment.ack == self.last_ack;
        if repeats && segment.window != 0 && reverse.last != Last::KeepAlive {
            self.duplicate_acks = self.duplicate_acks.max(0) + 1;
        }
    }

    /// Updates the state if `segment`, from the other side, acknowledges more than the contiguous data of
    /// this side: data beyond a gap in the capture then counts as contiguous. If there is no such data, the
    /// number of duplicate ACKs becomes -1, which counts as many.
    fn note_ack_of_unseen(&mut self, segment: &Segment) {
        let unseen = self.to_be_acked != 0 && after(segment.ack, self.to_be_acked);
        if !unseen || segment.flags & ACK == 0 {
            return;
        }
        if after(self.next_seq, self.to_be_acked) {
            self.to_be_acked = self.next_seq;
        } else {
            self.duplicate_acks = -1;
        }
    }

    /// Classifies a segment with data, SYN or FIN: spurious if all its data was acknowledged before, plain if
    /// it brings new data, otherwise a fast retransmission, out of order, or another retransmission.
    fn repeated(&self, reverse: &Side, segment: &Segment, round_trip_ns: i64) -> Verdict {
        let since = |then: i64| segment.time_ns.wrapping_sub(then) as u64;
        let end = segment.seq.wrapping_add(segment.len);
        // A zero window probe starts one byte before the newest data; a longer segment adds new data.
        let after_probe = segment.len > 1 && self.next_seq.wrapping_sub(1) == segment.seq;
        let behind = self.next_seq != 0 && after(self.next_seq, segment.seq) && !after_probe;
        if segment.len > 0 && reverse.last_ack != 0 && !after(end, reverse.last_ack) {
            return Verdict::Spurious;
        }
        if !behind {
            return Verdict::Plain;
        }
        // The comparison is unsigned as in Wireshark, so that -1 (ACK of unseen data) counts as many.
        let requested = reverse.duplicate_acks as u32 >= 2 && reverse.last_ack == segment.seq;
        if requested && since(reverse.last_ack_ns) < FAST_NS {
            return Verdict::Fast;
        }
        let patience = if round_trip_ns == 0 {
            OUT_OF_ORDER_NS
        } else {
            round_trip_ns as u64
        };
        let virtual_byte = u32::from(segment.flags & (SYN | FIN) != 0);
        let closes = self.next_seq == end.wrapping_add(virtual_byte);
        if since(self.next_seq_ns) < patience && !closes {
            return Verdict::OutOfOrder;
        }
        Verdict::Retransmission
    }

    fn advance(&mut self, segment: &Segment, probe: bool) {
        let virtual_byte = u32::from(segment.flags & (SYN | FIN) != 0);
        let next = segment
            .seq
            .wrapping_add(segment.len)
            .wrapping_add(virtual_byte);
        if !probe && (self.next_seq == 0 || after(next, self.next_seq)) {
            self.next_seq = next;
            self.next_seq_ns = segment.time_ns;
        }
        if !probe && (self.to_be_acked == 0 || self.to_be_acked == segment.seq) {
            self.to_be_acked = self.next_seq;
        }
        self.window = Some(segment.window);
        self.last_ack = segment.ack;
        self.last_ack_ns = segment.time_ns;
    }
}
