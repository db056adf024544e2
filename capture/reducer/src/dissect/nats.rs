//! Dissects the client protocol of NATS (docs.nats.io, "Client Protocol") into operations. Control lines,
//! headers of messages and ends of lines count as header; payloads of PUB and MSG are data.

use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "nats",
    type_name,
    tcp_ports: &[4222],
    streams: Some(|| [Box::<Nats>::default(), Box::<Nats>::default()]),
    ..Dissector::NONE
};

/// The operations; the index of each is its number less 1.
const NAMES: [&str; 12] = [
    "INFO", "CONNECT", "PUB", "HPUB", "SUB", "UNSUB", "MSG", "HMSG", "PING", "PONG", "+OK", "-ERR",
];
/// The longest control line of a server with default settings (`max_control_line`). INFO and CONNECT may be
/// longer, but only their first word matters.
const KEPT: usize = 4096;
/// The largest message that a server can be set to accept (`max_payload`: 64 MiB).
const LARGEST: u64 = 64 << 20;
const END: &[u8] = b"\r\n";

fn type_name(kind: u16) -> String {
    NAMES[usize::from(kind - 1)].into()
}

/// A message whose payload follows its line.
#[derive(Clone, Copy)]
struct Message {
    kind: u16,
    /// The number of bytes of its headers, which are the beginning of its content.
    headers: u64,
    total: u64,
    /// The number of bytes that have been consumed.
    at: u64,
}

#[derive(Default)]
struct Nats {
    line: Vec<u8>,
    message: Option<Message>,
}

/// Returns the number of the operation whose line begins like this; None if no operation's does. `whole` is
/// true if the line has no further bytes.
fn operation(line: &[u8], whole: bool) -> Option<u16> {
    let end = line.iter().position(u8::is_ascii_whitespace);
    let word = line[..end.unwrap_or(line.len())].to_ascii_uppercase();
    let fits = |name: &&str| {
        let name = name.as_bytes();
        if end.is_some() || whole {
            name == word
        } else {
            name.starts_with(&word)
        }
    };
    let place = NAMES.iter().position(fits)?;
    Some(place as u16 + 1)
}

/// Returns the message that a line announces; Some(None) for a line that announces no message, None for an
/// invalid line.
fn announced(kind: u16, line: &[u8]) -> Option<Option<Message>> {
    let text = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().skip(1).collect();
    let (numbers, most) = match type_name(kind).as_str() {
        "PUB" => (1, 3),
        "HPUB" => (2, 4),
        "MSG" => (1, 4),
        "HMSG" => (2, 5),
        _ => return Some(None),
    };
    if words.len() < numbers + 1 || words.len() > most {
        return None;
    }
    let number = |back: usize| -> Option<u64> { words[words.len() - back].parse().ok() };
    let (total, headers) = (number(1)?, if numbers == 2 { number(2)? } else { 0 });
    let message = Message {
        kind,
        headers,
        total,
        at: 0,
    };
    (headers <= total && total <= LARGEST).then_some(Some(message))
}

impl Nats {
    /// Consumes `count` bytes of the message's content and its end of line; counts those that are header.
    fn pass(&mut self, mut message: Message, count: u64, notes: &mut Notes) {
        let (from, to) = (message.at, message.at + count);
        let headers = to.min(message.headers) - from.min(message.headers);
        let end = to.max(message.total) - from.max(message.total);
        notes.header += (headers + end) as u32;
        message.at = to;
        let over = to == message.total + END.len() as u64;
        self.message = (!over).then_some(message);
        if over {
            notes.push(message.kind);
        }
    }
}

impl Stream for Nats {
    fn begin(&mut self) {
        *self = Self::default();
    }

    fn plausible(&self, data: &[u8], cut: bool) -> bool {
        let end = data.iter().position(|&byte| byte == b'\n');
        let line = &data[..end.unwrap_or(data.len())];
        let kind = operation(line, end.is_some());
        kind.is_some_and(|kind| {
            line.len() > 2 && (end.is_none() && cut || announced(kind, line).is_some())
        })
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if let Some(message) = self.message {
                let left = message.total + END.len() as u64 - message.at;
                let step = left.min(data.len() as u64);
                self.pass(message, step, notes);
                data = &data[step as usize..];
                continue;
            }
            let end = data.iter().position(|&byte| byte == b'\n');
            let (part, rest) = data.split_at(end.map_or(data.len(), |end| end + 1));
            data = rest;
            notes.header += part.len() as u32;
            let room = KEPT.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(&part[..room]);
            let Some(kind) = operation(&self.line, end.is_some()) else {
                return false;
            };
            if end.is_none() {
                continue;
            }
            match announced(kind, &std::mem::take(&mut self.line)) {
                None => return false,
                Some(None) => notes.push(kind),
                Some(message) => self.message = message,
            }
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = |message: &Message| message.at + u64::from(count) <= message.total;
        let message = self.message.filter(inside);
        if let Some(message) = message {
            self.pass(message, count.into(), notes);
        }
        message.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &[u8] = b"INFO {\"server_id\":\"x\"}\r\nPUB a.b 5\r\nhello\r\nmsg a.b 1 reply 2\r\n\r\n\r\n\
        HPUB a 12 15\r\nNATS/1.0\r\n\r\nabc\r\nPING\r\n+OK\r\n-ERR 'Unknown'\r\nMSG a 1 0\r\n\r\nUNSUB 1\r\n";
    const TYPES: [&str; 9] = [
        "INFO", "PUB", "MSG", "HPUB", "PING", "+OK", "-ERR", "MSG", "UNSUB",
    ];

    /// Parses a stream in pieces; returns the operations, the number of header bytes, and whether all pieces
    /// could be parsed.
    fn follow<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, usize, bool) {
        let (mut stream, mut notes) = (Nats::default(), Notes::default());
        notes.app = Some(0);
        let known = pieces.all(|piece| stream.parse(piece, &mut notes));
        let types = notes.types.iter().map(|kind| type_name(*kind)).collect();
        (types, notes.header as usize, known)
    }

    #[test]
    fn operations_are_noted_where_they_end_however_the_stream_is_cut() {
        for cut in 1..STREAM.len() {
            let (types, header, known) = follow(STREAM.chunks(cut));
            assert!(known && types == TYPES, "{cut}: {types:?}");
            assert_eq!(header, STREAM.len() - 5 - 2 - 3, "{cut}");
        }
        assert!(Nats::default().plausible(STREAM, false));
    }

    #[test]
    fn what_is_no_operation_loses_the_position() {
        for wrong in [
            &b"HTTP/1.1 200 OK\r\n"[..],
            b"PUB a\r\n",
            b"PUB a x\r\n",
            b"MSG a 99999999999\r\n",
            b"HPUB a 9 3\r\n",
            b"\r\n",
        ] {
            assert!(!follow([wrong].into_iter()).2, "{wrong:?}");
            assert!(!Nats::default().plausible(wrong, false), "{wrong:?}");
        }
    }

    #[test]
    fn bytes_that_were_not_captured_are_payload_only() {
        let (mut stream, mut notes) = (Nats::default(), Notes::default());
        assert!(stream.parse(b"PUB a 9\r\nab", &mut notes) && stream.skip(7, &mut notes));
        assert!(!stream.skip(1, &mut notes), "the end of the message's line");
        assert!(stream.parse(b"\r\nPING\r\n", &mut notes));
        assert_eq!((notes.types.len(), notes.header), (2, 9 + 2 + 6));
    }

    proptest! {
        #[test]
        fn any_bytes_are_followed_or_not(mut bytes: Vec<u8>, cut in 1usize..40) {
            bytes.splice(..0, *b"PUB a 3\r\n");
            prop_assert!(follow(bytes.chunks(cut)).1 <= bytes.len());
            Nats::default().plausible(&bytes, cut % 2 == 0);
        }
    }
}
