//! Follows one direction of a TCP connection in byte order, and passes the bytes to a dissector.
//!
//! Early segments wait, within limits of memory, until the gap before them closes. A gap that the receiver
//! has acknowledged is missing only in the capture: the follower skips it. If the gap lies inside one
//! message, the position stays known; else the follower searches for the beginning of a message.

use crate::dissect::{Notes, Stream};

/// A distance between sequence numbers beyond which a segment belongs to another connection; it exceeds
/// usual TCP windows.
const FAR: i32 = 16 << 20;
const MAX_WAITING_BYTES: usize = 256 << 10;
const MAX_WAITING: usize = 256;

#[derive(Clone, Debug)]
struct Early {
    seq: u32,
    len: u32,
    data: Box<[u8]>,
}

/// The state of one direction of a connection: the next expected byte and the segments that arrived early.
pub struct Follower {
    first: Option<u32>,
    next: Option<u32>,
    stream: Box<dyn Stream>,
    /// Whether the position relative to message boundaries is known.
    placed: bool,
    early: Vec<Early>,
    early_bytes: usize,
}

fn distance(to: u32, from: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

impl Follower {
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            first: None,
            next: None,
            stream,
            placed: false,
            early: Vec::new(),
            early_bytes: 0,
        }
    }

    /// Replaces the dissector, before the first byte of the stream.
    pub fn change(&mut self, stream: Box<dyn Stream>) {
        self.stream = stream;
        if self.placed {
            self.begin();
        }
    }

    /// Returns the number of bytes that wait for earlier segments.
    pub fn waiting(&self) -> usize {
        self.early_bytes
    }

    /// Starts the stream after a SYN with this sequence number, and discards early segments. A SYN that
    /// repeats the last one changes nothing.
    pub fn open(&mut self, seq: u32) {
        if self.first != Some(seq) {
            self.drop_early();
            (self.first, self.next) = (Some(seq), Some(seq.wrapping_add(1)));
            self.begin();
        }
    }

    fn begin(&mut self) {
        self.stream.begin();
        self.placed = true;
    }

    /// Processes a segment of `len` bytes, of which `data` was captured. Adds to `notes` its header bytes and
    /// the types of messages that end in it, except for repeated bytes and bytes that had to wait.
    /// `peer_ack`: the receiver's last acknowledgement. `room`: whether more early bytes may be kept.
    pub fn segment(
        &mut self,
        (seq, len): (u32, u32),
        data: &[u8],
        peer_ack: Option<u32>,
        room: bool,
        notes: &mut Notes,
    ) {
        self.skip_acknowledged(peer_ack, notes);
        let next = *self.next.get_or_insert(seq);
        let ahead = distance(seq, next);
        if ahead.unsigned_abs() > FAR as u32 {
            self.drop_early();
            self.next = Some(seq);
            self.placed = false;
        } else if ahead > 0 {
            let acknowledged = peer_ack.is_some_and(|ack| distance(ack, seq) >= 0);
            if !acknowledged && room && self.keep(seq, len, data) {
                return;
            }
            self.catch_up(seq, notes);
        }
        self.take(seq, len, data, notes);
        self.drain(notes);
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

    /// Skips the gaps before `peer_ack`: the receiver has their bytes, so only the capture lacks them.
    fn skip_acknowledged(&mut self, peer_ack: Option<u32>, notes: &mut Notes) {
        let Some(ack) = peer_ack else { return };
        while let Some(seq) = self.early.first().map(|early| early.seq) {
            if distance(ack, seq) < 0 {
                return;
            }
            self.catch_up(seq, notes);
        }
    }

    /// Processes the early segments that begin before `seq`, skips to `seq`, and processes the segments that
    /// follow.
    fn catch_up(&mut self, seq: u32, notes: &mut Notes) {
        while let Some(first) = self.early.first().map(|early| early.seq) {
            if distance(first, seq) >= 0 {
                break;
            }
            self.skip_to(first);
            self.drain(notes);
        }
        self.skip_to(seq);
        self.drain(notes);
    }

    fn skip_to(&mut self, seq: u32) {
        let gap = self.next.map_or(0, |next| distance(seq, next));
        if gap > 0 {
            // Messages that end in the gap are not noted, since they ended in a packet that was not captured.
            self.placed = self.placed && self.stream.skip(gap as u32, &mut Notes::default());
            self.next = Some(seq);
        }
    }

    /// Processes the early segments that begin at or before the next expected byte. Their message types are
    /// added to `notes`, their header bytes are not.
    fn drain(&mut self, notes: &mut Notes) {
        let header = notes.header;
        while let (Some(early), Some(next)) = (self.early.first(), self.next) {
            if distance(early.seq, next) > 0 {
                break;
            }
            let early = self.early.remove(0);
            self.early_bytes -= early.data.len();
            self.take(early.seq, early.len, &early.data, notes);
        }
        notes.header = header;
    }

    /// Processes a segment that begins at or before the next expected byte; skips the bytes that were
    /// processed before.
    fn take(&mut self, seq: u32, len: u32, data: &[u8], notes: &mut Notes) {
        let next = self.next.unwrap_or(seq);
        let old = distance(next, seq).max(0) as u32;
        if old >= len {
            return; // nothing new
        }
        let fresh = data.get(old as usize..).unwrap_or_default();
        let missing = len - old - fresh.len() as u32;
        if !self.placed && self.stream.plausible(fresh, missing > 0) {
            self.begin();
        }
        self.placed = self.placed && self.stream.parse(fresh, notes);
        if missing > 0 {
            self.placed = self.placed && self.stream.skip(missing, notes);
        }
        if !self.placed {
            notes.push_unknown();
        }
        self.next = Some(seq.wrapping_add(len));
    }
}
