//! Implements the flow table: numbers TCP connections and holds the analysis state of each, within limits
//! of memory.

use std::hash::{Hash, Hasher};

use crate::analysis::{ACK, RST, SYN, Segment, Side, Verdict};
use crate::connection::{Connection, Row};
use crate::dissect::{self, Notes, Ports};
use crate::fold::FoldMap;
use crate::follow::Follower;
use crate::packet::{PAYLOAD, Packet};

/// The most bytes that wait for missing segments, over all connections.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// The most timed segments, over all connections.
const MAX_TIMED: usize = 1 << 20;

/// A connection's two endpoints in a fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    low: (u128, u16),
    high: (u128, u16),
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let fold = |address: u128| (address >> 64) as u64 ^ (address as u64).rotate_left(17);
        state.write_u64(fold(self.low.0) ^ fold(self.high.0).rotate_left(32));
        state.write_u64(u64::from(self.low.1) << 16 | u64::from(self.high.1));
    }
}

struct Flow {
    key: Key,
    stream: u32,
    used: bool,
    syn_ns: Option<i64>,
    round_trip_ns: i64,
    sides: [Side; 2],
    acks: [Option<u32>; 2],
    /// The number of the application protocol that the ports indicate; None if they indicate none.
    app: Option<u8>,
    followers: Option<Box<[Follower; 2]>>,
    /// Whether a packet with payload was seen.
    begun: bool,
    /// The connection's summary; None unless a table of connections is requested.
    connection: Option<Box<Connection>>,
}

/// The analysis result of a TCP packet: its connection's number and its class.
pub struct Found {
    pub stream: u32,
    pub verdict: Verdict,
}

/// Holds at most `capacity` connections; when full, it evicts a connection that was not used recently.
pub struct Flows {
    index: FoldMap<Key, u32>,
    slots: Vec<Flow>,
    capacity: usize,
    hand: usize,
    waiting: usize,
    timed: usize,
    summed: bool,
    /// Summaries of evicted connections; the caller drains them.
    pub ended: Vec<Row>,
    pub streams: u32,
    pub evicted: u64,
}

impl Flows {
    /// Creates a table for `capacity` connections. If `summed` is true, it summarises each connection for the
    /// table of connections.
    pub fn new(capacity: usize, summed: bool) -> Self {
        let (index, slots) = (FoldMap::default(), Vec::new());
        Self {
            index,
            slots,
            capacity,
            hand: 0,
            waiting: 0,
            timed: 0,
            summed,
            ended: Vec::new(),
            streams: 0,
            evicted: 0,
        }
    }

    /// Returns the connection's number and the class of a packet with a TCP header, adds the result of
    /// dissecting its payload to `notes`, and updates the connection's state and summary. A fragment, or a
    /// packet of unknown payload length, is only numbered and counted.
    pub fn see(
        &mut self,
        packet: &Packet,
        time_ns: i64,
        ports: &Ports,
        notes: &mut Notes,
    ) -> Found {
        let (source, target) = ((packet.src, packet.src_port), (packet.dst, packet.dst_port));
        let side = usize::from(source > target);
        let key = Key {
            low: source.min(target),
            high: source.max(target),
        };
        let slot = self.slot(key, ports);
        let synchronise = packet.flags & (SYN | ACK) == SYN;
        if synchronise && self.slots[slot].is_over(side, packet.seq) {
            let stream = self.number();
            let app = self.slots[slot].app;
            self.evict(slot);
            self.slots[slot] = Flow::new(key, stream, app);
        }
        let (summed, room) = (self.summed, self.timed < MAX_TIMED);
        let flow = &mut self.slots[slot];
        let analysed = !packet.fragment && packet.present & PAYLOAD != 0;
        let mut verdict = Verdict::Plain;
        if analysed {
            let room = self.waiting < MAX_WAITING_BYTES;
            let before = flow.waiting();
            verdict = flow.analyse(side, packet, time_ns);
            flow.follow(side, packet, room, notes);
            self.waiting = self.waiting + flow.waiting() - before;
        }
        if summed {
            let before = flow.timed();
            flow.sum_up(side, packet, time_ns, analysed.then_some(verdict), room);
            self.timed = self.timed + flow.timed() - before;
        }
        flow.time(packet.flags, time_ns);
        Found {
            stream: flow.stream,
            verdict,
        }
    }

    fn number(&mut self) -> u32 {
        self.streams += 1;
        self.streams - 1
    }

    /// Returns the slot of the connection `key`; creates the connection if it is new, and evicts another if
    /// the table is full.
    fn slot(&mut self, key: Key, ports: &Ports) -> usize {
        if let Some(&slot) = self.index.get(&key) {
            self.slots[slot as usize].used = true;
            return slot as usize;
        }
        let app = ports.tcp(key.low.1, key.high.1);
        let flow = Flow::new(key, self.number(), app);
        let slot = if self.slots.len() < self.capacity {
            self.slots.push(flow);
            self.slots.len() - 1
        } else {
            let slot = self.victim();
            self.slots[slot] = flow;
            slot
        };
        self.index.insert(key, slot as u32);
        slot
    }

    /// Chooses a slot by the clock algorithm, the first one that was not used since the hand last passed it,
    /// and evicts its connection.
    fn victim(&mut self) -> usize {
        while std::mem::take(&mut self.slots[self.hand].used) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let slot = self.hand;
        self.hand = (self.hand + 1) % self.slots.len();
        self.index.remove(&self.slots[slot].key);
        self.evict(slot);
        self.evicted += 1;
        slot
    }

    /// Adds the summary of the connection in `slot` to `ended`, before another connection takes the slot.
    fn evict(&mut self, slot: usize) {
        let flow = &mut self.slots[slot];
        self.waiting -= flow.waiting();
        self.timed -= flow.timed();
        self.ended.extend(flow.row());
    }

    /// Returns the summaries of the connections in the table, in the order of their numbers.
    pub fn finish(mut self) -> impl Iterator<Item = Row> {
        self.slots.sort_unstable_by_key(|flow| flow.stream);
        self.slots.into_iter().filter_map(|mut flow| flow.row())
    }
}

impl Flow {
    fn new(key: Key, stream: u32, app: Option<u8>) -> Self {
        let streams = app.and_then(dissect::streams);
        Self {
            key,
            stream,
            used: true,
            syn_ns: None,
            round_trip_ns: 0,
            sides: Default::default(),
            acks: [None; 2],
            app,
            followers: streams.map(|both| Box::new(both.map(Follower::new))),
            begun: false,
            connection: None,
        }
    }

    fn waiting(&self) -> usize {
        self.followers
            .as_ref()
            .map_or(0, |both| both[0].waiting() + both[1].waiting())
    }

    fn timed(&self) -> usize {
        self.connection.as_ref().map_or(0, |found| found.timed())
    }

    /// Adds a packet to the connection's summary, which it creates if needed. `verdict` is None for a packet
    /// that is counted but not analysed, such as a fragment.
    fn sum_up(
        &mut self,
        side: usize,
        packet: &Packet,
        time_ns: i64,
        verdict: Option<Verdict>,
        room: bool,
    ) {
        let new = || Box::new(Connection::new(side, time_ns));
        let connection = self.connection.get_or_insert_with(new);
        connection.count(side, packet, time_ns);
        if let Some(verdict) = verdict {
            connection.see(side, packet, time_ns, verdict, room);
        }
    }

    fn row(&mut self) -> Option<Row> {
        let mut connection = *self.connection.take()?;
        connection.close();
        Some(Row {
            stream: self.stream,
            ends: [self.key.low, self.key.high],
            app: self.app,
            connection,
        })
    }

    /// Returns true if a SYN with number `seq` in direction `side` opens a new connection between the same
    /// ports: the old connection began with another number in this direction.
    fn is_over(&self, side: usize, seq: u32) -> bool {
        let base = self.sides[side].base_seq;
        base.is_some_and(|base| base != seq)
    }

    fn analyse(&mut self, side: usize, packet: &Packet, time_ns: i64) -> Verdict {
        let Packet {
            seq,
            ack,
            window,
            flags,
            payload_len: len,
            ..
        } = *packet;
        let segment = Segment {
            time_ns,
            seq,
            ack,
            window,
            flags,
            len,
        };
        let [low, high] = &mut self.sides;
        let (forward, reverse) = if side == 0 { (low, high) } else { (high, low) };
        match (flags & SYN != 0, flags & ACK != 0, forward.base_seq) {
            (true, false, Some(_)) => forward.restart(),
            (true, true, Some(_)) => forward.base_seq = Some(seq),
            (syn, _, None) => forward.base_seq = Some(if syn { seq } else { seq.wrapping_sub(1) }),
            _ => {}
        }
        if flags & ACK != 0 {
            reverse.base_seq.get_or_insert(ack.wrapping_sub(1));
        }
        forward.judge(reverse, &segment, self.round_trip_ns)
    }

    fn follow(&mut self, side: usize, packet: &Packet, room: bool, notes: &mut Notes) {
        let Some(followers) = &mut self.followers else {
            return;
        };
        let syn = packet.flags & SYN != 0;
        // The first bytes show the protocol, and may come after later ones that overtook them.
        let begins = |base: u32| packet.seq.wrapping_add(u32::from(syn)) == base.wrapping_add(1);
        let first = self.sides[side].base_seq.is_none_or(begins);
        if !self.begun && packet.payload_len > 0 && first {
            self.begun = true;
            let shown = self.app.map(|app| dissect::shown_by(app, packet.payload));
            if shown != self.app
                && let Some(streams) = shown.and_then(dissect::streams)
            {
                self.app = shown;
                for (follower, stream) in followers.iter_mut().zip(streams) {
                    follower.change(stream);
                }
            }
        }
        let follower = &mut followers[side];
        if syn {
            follower.open(packet.seq);
        }
        if packet.payload_len > 0 && packet.flags & RST == 0 {
            let place = (packet.seq.wrapping_add(u32::from(syn)), packet.payload_len);
            notes.app = self.app;
            follower.segment(place, packet.payload, self.acks[1 - side], room, notes);
        }
        if packet.flags & ACK != 0 {
            self.acks[side] = Some(packet.ack);
        }
    }

    /// Measures the handshake's round trip, once: from the latest SYN to the first ACK without SYN.
    fn time(&mut self, flags: u16, time_ns: i64) {
        match flags & (SYN | ACK) {
            SYN => self.syn_ns = Some(time_ns),
            ACK if self.round_trip_ns == 0 => {
                self.round_trip_ns = self.syn_ns.map_or(0, |syn| time_ns - syn);
            }
            _ => {}
        }
    }
}
