//! Dissects messages of the vNET agent: a big-endian header of 28 bytes, then padding; over TCP a four-byte
//! length precedes the header.
//!
//! Fields of the header: magic `vNET`, kind u8, flags u8, reserved u16, flow u32, seq u32, scheduled_ns i64,
//! reply_bytes u32.

use super::head::Head;
use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "vnet",
    type_name,
    magic: MAGIC,
    streams: Some(|| [Box::<Vnet>::default(), Box::<Vnet>::default()]),
    datagram: Some(datagram),
    ..Dissector::NONE
};

const MAGIC: &[u8] = b"vNET";
const HEADER: usize = 28;
const PREFIX: usize = 4;
/// Offset of the field `kind` in the header.
const KIND: usize = 4;
/// The names of message types, indexed by `kind`.
const NAMES: [&str; 5] = ["REQUEST", "REPLY", "PUSH", "STREAM", "OTHER"];

fn type_name(kind: u16) -> String {
    NAMES[usize::from(kind) - 1].into()
}

/// Returns the type of the message that begins with `header`; None if the bytes do not begin a message.
fn kind(header: &[u8]) -> Option<u16> {
    let kind = header.strip_prefix(MAGIC)?.first()?;
    (usize::from(*kind) < NAMES.len()).then_some(u16::from(*kind) + 1)
}

fn datagram(data: &[u8], length: usize, notes: &mut Notes) -> bool {
    notes.header = HEADER as u32;
    let found = kind(data).filter(|_| length >= HEADER);
    found.inspect(|&kind| notes.push(kind)).is_some()
}

#[derive(Default)]
struct Vnet {
    head: Head<{ PREFIX + KIND + 1 }>,
    kind: u16,
    header_left: u32,
    padding_left: u32,
}

impl Vnet {
    /// Consumes `count` bytes of the rest of the message.
    fn pass(&mut self, count: u32, notes: &mut Notes) {
        let header = count.min(self.header_left);
        notes.header += header;
        self.header_left -= header;
        self.padding_left -= count - header;
        if self.left() == 0 {
            notes.push(self.kind);
        }
    }

    fn left(&self) -> u32 {
        self.header_left.saturating_add(self.padding_left)
    }
}

/// Returns, from `head`, the length of the message after its header, and its type; None if the bytes do not
/// begin a message.
fn beginning(head: &[u8]) -> Option<(u32, u16)> {
    let (length, rest) = head.split_first_chunk::<PREFIX>()?;
    let length = u32::from_be_bytes(*length);
    Some((length.checked_sub(HEADER as u32)?, kind(rest)?))
}

impl Stream for Vnet {
    fn begin(&mut self) {
        *self = Self::default();
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        beginning(data).is_some()
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if self.left() > 0 {
                let step = data.len().min(self.left() as usize);
                self.pass(step as u32, notes);
                data = &data[step..];
                continue;
            }
            let (head, taken) = self.head.take(&mut data);
            notes.header += taken;
            let Some(head) = head else { break };
            let Some((padding, kind)) = beginning(&head) else {
                return false;
            };
            (self.kind, self.padding_left) = (kind, padding);
            self.header_left = (HEADER - KIND - 1) as u32;
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = count <= self.left();
        if inside {
            self.pass(count, notes);
        }
        inside
    }
}
