//! Follows one direction of a TCP connection and says which MQTT control packets end in which TCP packet.
//!
//! Segments that arrive early wait, within bounds, for the gap before them. A gap that the receiver has acknowledged is
//! missing in the capture only: it is skipped, exactly if it lies inside one control packet, else the follower looks for
//! a new beginning.

mod framing;

use framing::Framing;

/// Stands in the output for "the stream could not be followed here"; MQTT's own types begin at 1.
pub const UNKNOWN: u8 = 0;

/// Further off than any window: the numbers belong to another connection.
const FAR: i32 = 16 << 20;
const MAX_WAITING_BYTES: usize = 256 << 10;
const MAX_WAITING: usize = 256;

#[derive(Clone, Debug)]
struct Early {
    seq: u32,
    len: u32,
    data: Box<[u8]>,
}

/// One direction of one connection.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    first: Option<u32>,
    next: Option<u32>,
    framing: Framing,
    early: Vec<Early>,
    early_bytes: usize,
}

fn distance(to: u32, from: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

impl Follower {
    /// Bytes that wait for a gap to be filled.
    pub fn waiting(&self) -> usize {
        self.early_bytes
    }

    /// A SYN with this sequence number: the stream begins after it. A repeated SYN changes nothing.
    pub fn open(&mut self, seq: u32) {
        if self.first != Some(seq) {
            *self = Self {
                first: Some(seq),
                next: Some(seq.wrapping_add(1)),
                framing: Framing::Start,
                ..Self::default()
            };
        }
    }

    /// Takes a segment of `len` bytes of which `data` was captured; pushes the types that end in it onto `out`.
    /// `peer_ack`: what the receiver has acknowledged. `room`: whether more early bytes may be kept.
    pub fn segment(
        &mut self,
        (seq, len): (u32, u32),
        data: &[u8],
        peer_ack: Option<u32>,
        room: bool,
        out: &mut Vec<u8>,
    ) {
        self.skip_acknowledged(peer_ack, out);
        let next = *self.next.get_or_insert(seq);
        let ahead = distance(seq, next);
        if ahead.unsigned_abs() > FAR as u32 {
            self.drop_early();
            self.next = Some(seq);
            self.framing = Framing::Lost;
        } else if ahead > 0 {
            let acknowledged = peer_ack.is_some_and(|ack| distance(ack, seq) >= 0);
            if !acknowledged && room && self.keep(seq, len, data) {
                return;
            }
            self.catch_up(seq, out);
        }
        self.take(seq, len, data, out);
        self.drain(out);
    }

    fn keep(&mut self, seq: u32, len: u32, data: &[u8]) -> bool {
        if self.early.len() >= MAX_WAITING || self.early_bytes + data.len() > MAX_WAITING_BYTES {
            return false;
        }
        let at = self
            .early
            .partition_point(|early| distance(early.seq, seq) <= 0);
        self.early_bytes += data.len();
        self.early.insert(
            at,
            Early {
                seq,
                len,
                data: data.into(),
            },
        );
        true
    }

    fn drop_early(&mut self) {
        self.early.clear();
        self.early_bytes = 0;
    }

    /// Gives up gaps that the receiver has acknowledged beyond.
    fn skip_acknowledged(&mut self, peer_ack: Option<u32>, out: &mut Vec<u8>) {
        let Some(ack) = peer_ack else { return };
        while let Some(seq) = self.early.first().map(|early| early.seq) {
            if distance(ack, seq) < 0 {
                return;
            }
            self.catch_up(seq, out);
        }
    }

    /// Takes everything early that begins before `seq`, then skips to `seq` itself, then what follows on it.
    fn catch_up(&mut self, seq: u32, out: &mut Vec<u8>) {
        while let Some(first) = self.early.first().map(|early| early.seq) {
            if distance(first, seq) >= 0 {
                break;
            }
            self.skip_to(first);
            self.drain(out);
        }
        self.skip_to(seq);
        self.drain(out);
    }

    fn skip_to(&mut self, seq: u32) {
        let gap = self.next.map_or(0, |next| distance(seq, next));
        if gap > 0 {
            // What ended in the gap ended in a packet that was not captured.
            self.framing.skip(gap as u32, &mut Vec::new());
            self.next = Some(seq);
        }
    }

    /// Takes the early segments that the stream has reached.
    fn drain(&mut self, out: &mut Vec<u8>) {
        while let (Some(early), Some(next)) = (self.early.first(), self.next) {
            if distance(early.seq, next) > 0 {
                return;
            }
            let early = self.early.remove(0);
            self.early_bytes -= early.data.len();
            self.take(early.seq, early.len, &early.data, out);
        }
    }

    /// Takes a segment that begins at or before the next expected byte.
    fn take(&mut self, seq: u32, len: u32, data: &[u8], out: &mut Vec<u8>) {
        let next = self.next.unwrap_or(seq);
        let old = distance(next, seq).max(0) as u32;
        if old >= len {
            return; // all of it was seen before
        }
        let fresh = data.get(old as usize..).unwrap_or_default();
        let missing = len - old - fresh.len() as u32;
        self.framing.find(fresh, missing > 0);
        self.framing.parse(fresh, out);
        self.framing.skip(missing, out);
        if self.framing == Framing::Lost && out.last() != Some(&UNKNOWN) {
            out.push(UNKNOWN);
        }
        self.next = Some(seq.wrapping_add(len));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &[u8] = b"\x30\x05\x00\x01axx\xc0\x00\xe0\x00";

    fn follow(pieces: &[(usize, usize)], ack: Option<u32>) -> Vec<Vec<u8>> {
        let mut follower = Follower::default();
        follower.open(u32::MAX - 3); // the numbers wrap within the chain
        let take = |&(from, to): &(usize, usize)| {
            let mut out = Vec::new();
            let place = ((u32::MAX - 2).wrapping_add(from as u32), (to - from) as u32);
            follower.segment(place, &CHAIN[from..to], ack, true, &mut out);
            out
        };
        pieces.iter().map(take).collect()
    }

    #[test]
    fn types_stand_where_their_last_byte_is() {
        assert_eq!(
            follow(&[(0, 6), (6, 8), (8, 11)], None),
            [vec![], vec![3], vec![12, 14]]
        );
    }

    #[test]
    fn early_segments_wait_for_the_gap() {
        assert_eq!(
            follow(&[(0, 1), (7, 11), (1, 7)], None),
            [vec![], vec![], vec![3, 12, 14]]
        );
    }

    #[test]
    fn what_was_seen_is_not_counted_again() {
        assert_eq!(
            follow(&[(0, 9), (0, 9), (7, 11)], None),
            [vec![3, 12], vec![], vec![14]]
        );
    }

    #[test]
    fn an_acknowledged_gap_inside_a_packet_is_skipped() {
        assert_eq!(
            follow(&[(0, 3), (5, 11)], Some(8)),
            [vec![], vec![3, 12, 14]]
        );
    }

    #[test]
    fn a_lost_header_is_unknown_until_one_is_found() {
        assert_eq!(
            follow(&[(0, 7), (8, 9), (9, 11)], Some(20)),
            [vec![3], vec![UNKNOWN], vec![14]]
        );
    }
}
