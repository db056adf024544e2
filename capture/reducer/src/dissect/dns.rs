//! Dissects DNS (RFC 1035) over UDP and TCP, and multicast DNS, into queries and responses. A response with
//! an error has its code as type. The whole message counts as header, and its identifier is its number.

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

/// The names of types: a query, a response without an error, and responses by their code (RFC 1035, 4.1.1).
const NAMES: [&str; 7] = [
    "QUERY", "RESPONSE", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED",
];

fn type_name(kind: u16) -> String {
    let name = NAMES.get(usize::from(kind - QUERY));
    name.map_or_else(|| format!("RCODE_{}", kind - RESPONSE), |&name| name.into())
}

/// Returns the message's type from the header's third and fourth bytes; None if its operation code is not
/// assigned.
fn kind(flags: [u8; 2]) -> Option<u16> {
    let known = flags[0] >> 3 & 0xf <= LAST_OPCODE;
    let response = RESPONSE + u16::from(flags[1] & 0xf);
    known.then_some(if flags[0] & 0x80 == 0 {
        QUERY
    } else {
        response
    })
}

fn datagram(data: &[u8], length: usize, notes: &mut Notes) -> bool {
    notes.header = length as u32;
    let &[high, low, first, second, ..] = data else {
        return false;
    };
    let id = u16::from_be_bytes([high, low]).into();
    let found = kind([first, second]).filter(|_| length >= HEADER);
    found
        .inspect(|&kind| notes.push_numbered(kind, id))
        .is_some()
}

#[derive(Default)]
struct Dns {
    head: Head<{ HEADER + 2 }>,
    kind: u16,
    id: u32,
    left: u32,
}

impl Dns {
    fn pass(&mut self, count: u32, notes: &mut Notes) {
        notes.header += count;
        self.left -= count;
        if self.left == 0 {
            notes.push_numbered(self.kind, self.id);
        }
    }
}

impl Stream for Dns {
    fn begin(&mut self) {
        *self = Self::default();
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        let &[high, low, _, _, first, second, ..] = data else {
            return false;
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        kind([first, second]).is_some() && length >= HEADER && length + 2 <= data.len()
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
            let (Some(kind), Some(left)) =
                (kind([head[4], head[5]]), length.checked_sub(HEADER as u32))
            else {
                return false;
            };
            (self.kind, self.left) = (kind, left);
            self.id = u16::from_be_bytes([head[2], head[3]]).into();
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
