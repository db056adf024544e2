//! Summarises one TCP connection: packets and bytes per direction, round trips, retransmissions, and how it
//! ended.

use std::collections::VecDeque;

use crate::analysis::{ACK, FIN, RST, SYN, Verdict};
use crate::packet::Packet;

/// The most segments per direction whose acknowledgement is timed at once; further segments give no
/// round-trip sample.
const MOST_TIMED: usize = 64;

/// The end of a connection, as far as the capture shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Open,
    /// Both sides sent FIN.
    Fin,
    /// A side sent RST before both had sent FIN.
    Rst,
}

/// The counts and round-trip samples of one direction of a connection.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub packets: u64,
    pub wire_bytes: u64,
    pub payload_bytes: u64,
    pub retransmissions: u64,
    /// Smoothed round trip from the capture point to this direction's receiver and back; None without a
    /// sample.
    pub srtt_ns: Option<i64>,
    pub rtt_samples: u64,
    timed: VecDeque<(u32, i64)>,
    finished: bool,
}

impl Direction {
    /// Handles a segment of this direction that ends before sequence number `end`; times it if it is new and
    /// `room` permits. A retransmission discards all timed segments, since their acknowledgements are
    /// ambiguous (Karn's algorithm).
    fn sent(&mut self, end: u32, time_ns: i64, verdict: Verdict, room: bool) {
        if verdict.is_retransmission() {
            self.timed.clear();
        } else if verdict == Verdict::Plain && room && self.timed.len() < MOST_TIMED {
            self.timed.push_back((end, time_ns));
        }
    }

    /// Removes the timed segments that `ack` acknowledges; adds a round-trip sample if `ack` is exactly the
    /// end of a segment.
    fn acknowledged(&mut self, ack: u32, time_ns: i64) {
        while let Some(&(end, sent_ns)) = self.timed.front() {
            if (ack.wrapping_sub(end) as i32) < 0 {
                return;
            }
            self.timed.pop_front();
            if ack == end {
                self.sample(time_ns - sent_ns);
            }
        }
    }

    /// Adds a round-trip sample to the smoothed round trip, with alpha 1/8 (RFC 6298, 2.2 and 2.3).
    fn sample(&mut self, round_trip_ns: i64) {
        self.rtt_samples += 1;
        self.srtt_ns = Some(self.srtt_ns.map_or(round_trip_ns, |smoothed| {
            smoothed + (round_trip_ns - smoothed) / 8
        }));
    }
}

/// The summary of a TCP connection; `side` 0 and 1 are the directions as the flow table numbers them.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The direction that received the first SYN+ACK. Without a SYN+ACK: the one that sent the last SYN, or
    /// the first packet if the capture has no SYN either.
    pub opener: usize,
    pub first_ns: i64,
    pub last_ns: i64,
    pub directions: [Direction; 2],
    /// Time from the last SYN to the first SYN+ACK; None if the capture lacks one of them.
    pub syn_synack_ns: Option<i64>,
    /// Time from the last SYN+ACK to the opener's first ACK; None if the capture lacks one of them.
    pub synack_ack_ns: Option<i64>,
    pub end: End,
    syn_ns: Option<i64>,
    synack_ns: Option<i64>,
}

impl Connection {
    pub fn new(opener: usize, time_ns: i64) -> Self {
        Self {
            opener,
            first_ns: time_ns,
            last_ns: time_ns,
            directions: Default::default(),
            syn_synack_ns: None,
            synack_ack_ns: None,
            end: End::Open,
            syn_ns: None,
            synack_ns: None,
        }
    }

    /// Returns the number of segments, of both directions, that wait for an acknowledgement.
    pub fn timed(&self) -> usize {
        self.directions[0].timed.len() + self.directions[1].timed.len()
    }

    /// Discards the timed segments of both directions and frees their memory.
    pub fn close(&mut self) {
        for direction in &mut self.directions {
            direction.timed = VecDeque::new();
        }
    }

    /// Adds a packet of direction `side` to the counts and to the connection's first and last time.
    pub fn count(&mut self, side: usize, packet: &Packet, time_ns: i64) {
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        let direction = &mut self.directions[side];
        direction.packets += 1;
        direction.wire_bytes += u64::from(packet.wire_len);
        direction.payload_bytes += u64::from(packet.payload_len);
    }

    /// Analyses an unfragmented segment of direction `side`: retransmission, handshake, end, round trips.
    /// `room` permits timing one more segment.
    pub fn see(
        &mut self,
        side: usize,
        packet: &Packet,
        time_ns: i64,
        verdict: Verdict,
        room: bool,
    ) {
        let (flags, len) = (packet.flags, packet.payload_len);
        if flags & ACK != 0 {
            self.directions[1 - side].acknowledged(packet.ack, time_ns);
        }
        let direction = &mut self.directions[side];
        direction.retransmissions += u64::from(verdict.is_retransmission());
        let virtual_byte = u32::from(flags & (SYN | FIN) != 0);
        if len + virtual_byte > 0 && flags & RST == 0 {
            let end = packet.seq.wrapping_add(len).wrapping_add(virtual_byte);
            direction.sent(end, time_ns, verdict, room);
        }
        direction.finished |= flags & FIN != 0;
        self.handshake(side, flags, time_ns);
        if self.end == End::Open {
            let both = self.directions.iter().all(|direction| direction.finished);
            self.end = match (flags & RST != 0, both) {
                (true, _) => End::Rst,
                (_, true) => End::Fin,
                _ => End::Open,
            };
        }
    }

    fn handshake(&mut self, side: usize, flags: u16, time_ns: i64) {
        match flags & (SYN | ACK) {
            SYN if self.synack_ns.is_none() => {
                self.opener = side;
                self.syn_ns = Some(time_ns);
            }
            both if both == SYN | ACK => self.answered(side, time_ns),
            ACK if side == self.opener && self.synack_ack_ns.is_none() => {
                self.synack_ack_ns = self.synack_ns.map(|answer| time_ns - answer);
            }
            _ => {}
        }
    }

    /// Handles a SYN+ACK from direction `side`: stores its time; for the first one, also sets the opener to
    /// the other direction and measures the time since the SYN. Ignored once the handshake is complete.
    fn answered(&mut self, side: usize, time_ns: i64) {
        if self.synack_ack_ns.is_some() {
            return;
        }
        let first = self.synack_ns.replace(time_ns).is_none();
        if first {
            self.opener = 1 - side;
            self.syn_synack_ns = self.syn_ns.map(|syn| time_ns - syn);
        }
    }
}

/// A row of the table of connections; `ends` holds the (address, port) that sends in direction 0 and in
/// direction 1.
pub struct Row {
    pub stream: u32,
    pub ends: [(u128, u16); 2],
    pub app: Option<u8>,
    pub connection: Connection,
}

impl Row {
    pub fn src(&self) -> (u128, u16) {
        self.ends[self.connection.opener]
    }

    pub fn dst(&self) -> (u128, u16) {
        self.ends[1 - self.connection.opener]
    }

    pub fn direction(&self, index: usize) -> &Direction {
        let opener = self.connection.opener;
        &self.connection.directions[if index == 0 { opener } else { 1 - opener }]
    }
}
