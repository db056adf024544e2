//! Dissects DNS (RFC 1035) over UDP and TCP, and multicast DNS, into queries and responses; the whole message
//! counts as header.

use super::head::Head;
use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "dns",
    type_name,
    tcp_ports: &[53],
    udp_ports: &[53],
    streams: Some(|| [Box::<Dns>::default(), Box::<Dns>::default()]),
    datagram: Some(datagram),
    ..Dissector::NONE
};

pub const MULTICAST: Dissector = Dissector {
    name: "mdns",
    type_name,
    udp_ports: &[5353],
    datagram: Some(datagram),
    ..Dissector::NONE
};

const QUERY: u16 = 1;
const RESPONSE: u16 = 2;
/// Length of a message's header; over TCP a two-byte length precedes it.
const HEADER: usize = 12;
/// The highest assigned operation code (RFC 8490: stateful operations).
const LAST_OPCODE: u8 = 6;

fn type_name(kind: u16) -> String {
    ["QUERY", "RESPONSE"][usize::from(kind - QUERY)].into()
}

/// Returns the message's type, query or response, from `flags`, the header's third byte; None if its
/// operation code is not assigned.
fn kind(flags: u8) -> Option<u16> {
    let known = flags >> 3 & 0xf <= LAST_OPCODE;
    known.then_some(if flags & 0x80 == 0 { QUERY } else { RESPONSE })
}

fn datagram(data: &[u8], length: usize, notes: &mut Notes) -> bool {
    let found = data
        .get(2)
        .and_then(|&flags| kind(flags))
        .filter(|_| length >= HEADER);
    notes.header = length as u32;
    found.inspect(|&kind| notes.push(kind)).is_some()
}

#[derive(Default)]
struct Dns {
    head: Head<{ HEADER + 2 }>,
    kind: u16,
    left: u32,
}

impl Dns {
    fn pass(&mut self, count: u32, notes: &mut Notes) {
        notes.header += count;
        self.left -= count;
        if self.left == 0 {
            notes.push(self.kind);
        }
    }
}

impl Stream for Dns {
    fn begin(&mut self) {
        *self = Self::default();
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        let &[high, low, _, _, flags, ..] = data else {
            return false;
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        kind(flags).is_some() && length >= HEADER && length + 2 <= data.len()
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if self.left > 0 {
                let step = data.len().min(self.left as usize);
                self.pass(step as u32, notes);
                data = &data[step..];
                continue;
            }
            let (head, taken) = self.head.take(&mut data);
            notes.header += taken;
            let Some(head) = head else { break };
            let length = u32::from(u16::from_be_bytes([head[0], head[1]]));
            let (Some(kind), Some(left)) = (kind(head[4]), length.checked_sub(HEADER as u32))
            else {
                return false;
            };
            (self.kind, self.left) = (kind, left);
            self.pass(0, notes);
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = count <= self.left;
        if inside {
            self.pass(count, notes);
        }
        inside
    }
}
