//! Dissects PostgreSQL's protocol, version 3, into messages by name; the contents of queries and rows are
//! payload, and type and length of each message are header.
//!
//! A client's first message has no type, only a code. If the server grants a request for encryption, all
//! further bytes are unreadable.

use std::cell::RefCell;
use std::rc::Rc;

use super::head::Head;
use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "postgresql",
    type_name,
    tcp_ports: &[5432],
    streams: Some(streams),
    ..Dissector::NONE
};

/// This is added to the types of a server's messages, since client and server use the same letters.
const SERVER: u16 = 256;
const STARTUP: u16 = 1;
const REQUEST_ENCRYPTION: u16 = 2;
const CANCEL: u16 = 3;
const ENCRYPTION_ANSWER: u16 = 4;
/// Codes that a first message has in place of a version ("Message Formats" in PostgreSQL's documentation).
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCELLING: u32 = 80_877_102;
/// The highest minor version of protocol 3 that a client may request.
const VERSION_3: u32 = 3 << 16;
/// The largest message: the server accepts 1 GiB (PQ_LARGE_MESSAGE_LIMIT).
const LARGEST: u32 = 1 << 30;
/// The largest first message (MAX_STARTUP_PACKET_LENGTH).
const LARGEST_STARTUP: u32 = 10_000;

const CLIENT_NAMES: [(u8, &str); 14] = [
    (b'B', "BIND"),
    (b'C', "CLOSE"),
    (b'D', "DESCRIBE"),
    (b'E', "EXECUTE"),
    (b'F', "FUNCTION_CALL"),
    (b'H', "FLUSH"),
    (b'P', "PARSE"),
    (b'Q', "QUERY"),
    (b'S', "SYNC"),
    (b'X', "TERMINATE"),
    (b'c', "COPY_DONE"),
    (b'd', "COPY_DATA"),
    (b'f', "COPY_FAIL"),
    (b'p', "PASSWORD"),
];
const SERVER_NAMES: [(u8, &str); 23] = [
    (b'1', "PARSE_COMPLETE"),
    (b'2', "BIND_COMPLETE"),
    (b'3', "CLOSE_COMPLETE"),
    (b'A', "NOTIFICATION"),
    (b'C', "COMMAND_COMPLETE"),
    (b'D', "DATA_ROW"),
    (b'E', "ERROR"),
    (b'G', "COPY_IN"),
    (b'H', "COPY_OUT"),
    (b'I', "EMPTY_QUERY"),
    (b'K', "BACKEND_KEY"),
    (b'N', "NOTICE"),
    (b'R', "AUTHENTICATION"),
    (b'S', "PARAMETER_STATUS"),
    (b'T', "ROW_DESCRIPTION"),
    (b'V', "FUNCTION_RESULT"),
    (b'W', "COPY_BOTH"),
    (b'Z', "READY"),
    (b'c', "COPY_DONE"),
    (b'd', "COPY_DATA"),
    (b'n', "NO_DATA"),
    (b's', "PORTAL_SUSPENDED"),
    (b't', "PARAMETER_DESCRIPTION"),
];

fn type_name(kind: u16) -> String {
    let named = |names: &[(u8, &str)], letter: u16| {
        let found = names.iter().find(|(known, _)| u16::from(*known) == letter);
        found.map_or("UNKNOWN", |(_, name)| name).to_owned()
    };
    match kind {
        STARTUP => "STARTUP".into(),
        REQUEST_ENCRYPTION => "REQUEST_ENCRYPTION".into(),
        CANCEL => "CANCEL".into(),
        ENCRYPTION_ANSWER => "ENCRYPTION_ANSWER".into(),
        SERVER.. => named(&SERVER_NAMES, kind - SERVER),
        _ => named(&CLIENT_NAMES, kind),
    }
}

/// The state that both directions share.
#[derive(Default)]
struct Shared {
    /// The direction (0 or 1) that sent a first message, and so is the client's.
    client: Option<u8>,
    /// Whether the client waits for the answer to a request for encryption.
    asked: bool,
    encrypted: bool,
}

fn streams() -> super::Streams {
    let shared = Rc::<RefCell<Shared>>::default();
    let one = |side| {
        Box::new(Postgresql {
            side,
            shared: shared.clone(),
            first: true,
            head: Head::default(),
            startup: Head::default(),
            kind: 0,
            left: 0,
        })
    };
    [one(0), one(1)]
}

struct Postgresql {
    side: u8,
    shared: Rc<RefCell<Shared>>,
    /// True if the next message may be a client's first one, without a type.
    first: bool,
    head: Head<5>,
    startup: Head<8>,
    kind: u16,
    left: u32,
}

impl Postgresql {
    /// Returns whether this direction is the server's; None if no first message was captured.
    fn is_server(&self) -> Option<bool> {
        self.shared
            .borrow()
            .client
            .map(|client| client != self.side)
    }

    /// Reads the head of a first message; returns None if more bytes are missing, otherwise whether it is
    /// valid.
    fn begins(&mut self, data: &mut &[u8], notes: &mut Notes) -> Option<bool> {
        let (head, taken) = self.startup.take(data);
        notes.header += taken;
        let head = head?;
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let code = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        self.kind = match code {
            SSL | GSS => REQUEST_ENCRYPTION,
            CANCELLING => CANCEL,
            _ if code >> 16 == VERSION_3 >> 16 => STARTUP,
            _ => return Some(false),
        };
        if !(8..=LARGEST_STARTUP).contains(&length) {
            return Some(false);
        }
        self.first = self.kind == REQUEST_ENCRYPTION;
        let mut shared = self.shared.borrow_mut();
        shared.client = Some(self.side);
        shared.asked = self.first;
        drop(shared);
        self.left = length - 8;
        self.pass(0, notes);
        Some(true)
    }

    /// Reads the head of a message with a type; returns the same values as `begins`.
    fn message(&mut self, data: &mut &[u8], notes: &mut Notes) -> Option<bool> {
        let (head, taken) = self.head.take(data);
        notes.header += taken;
        let head = head?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let Some(kind) = kind_of(head[0], self.is_server()) else {
            return Some(false);
        };
        if !(4..=LARGEST).contains(&length) {
            return Some(false);
        }
        self.kind = kind;
        self.left = length - 4;
        self.pass(0, notes);
        Some(true)
    }

    fn pass(&mut self, count: u32, notes: &mut Notes) {
        self.left -= count;
        if self.left == 0 {
            notes.push(self.kind);
        }
    }
}

/// Returns the type of a message that begins with this letter; None if that side sends no such message. If
/// the side is not known, the letter alone decides, since only one side uses most letters.
fn kind_of(letter: u8, server: Option<bool>) -> Option<u16> {
    let among = |names: &[(u8, &str)]| names.iter().any(|(known, _)| *known == letter);
    match server {
        Some(true) => among(&SERVER_NAMES).then_some(SERVER + u16::from(letter)),
        Some(false) => among(&CLIENT_NAMES).then_some(letter.into()),
        None if among(&SERVER_NAMES) && !among(&CLIENT_NAMES) => Some(SERVER + u16::from(letter)),
        None => among(&CLIENT_NAMES).then_some(letter.into()),
    }
}

impl Stream for Postgresql {
    fn begin(&mut self) {
        // A SYN starts both directions anew, and a message in the middle of a connection is not a first
        // message.
        self.first = self.is_server().is_none();
        (self.head, self.startup) = (Head::default(), Head::default());
        (self.kind, self.left) = (0, 0);
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        let &[letter, a, b, c, d, ..] = data else {
            return false;
        };
        let length = u32::from_be_bytes([a, b, c, d]);
        let typed = kind_of(letter, self.is_server()).is_some() && (4..=LARGEST).contains(&length);
        let first = letter == 0 && self.is_server().is_none();
        typed || first
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if self.shared.borrow().encrypted {
                return true; // payload that nobody can read
            }
            if self.left > 0 {
                let step = data.len().min(self.left as usize);
                self.pass(step as u32, notes);
                data = &data[step..];
                continue;
            }
            let asked = self.shared.borrow().asked && self.is_server() == Some(true);
            if asked {
                let granted = data[0] != b'N';
                let mut shared = self.shared.borrow_mut();
                (shared.asked, shared.encrypted) = (false, granted);
                drop(shared);
                notes.header += 1;
                notes.push(ENCRYPTION_ANSWER);
                data = &data[1..];
                continue;
            }
            let starts = self.first
                && self.is_server() != Some(true)
                && (data[0] == 0 || self.startup.begun());
            let valid = if starts {
                self.begins(&mut data, notes)
            } else {
                self.message(&mut data, notes)
            };
            if valid == Some(false) {
                return false;
            }
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = count <= self.left || self.shared.borrow().encrypted;
        if inside && count <= self.left {
            self.pass(count, notes);
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32 + 4).to_be_bytes();
        [&[letter][..], &length, content].concat()
    }

    fn first(code: u32, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32 + 8).to_be_bytes();
        [&length[..], &code.to_be_bytes(), content].concat()
    }

    fn parse(stream: &mut dyn Stream, data: &[u8], step: usize) -> Option<Vec<String>> {
        let mut notes = Notes::default();
        let placed = data.chunks(step).all(|one| stream.parse(one, &mut notes));
        let kind = |&noted: &u16| type_name(noted & 0x3ff);
        placed.then(|| notes.types.iter().map(kind).collect())
    }

    #[test]
    fn a_session_is_named_from_both_sides_however_it_is_cut() {
        for step in [1, 2, 3, 7, 100] {
            let [mut client, mut server] = streams();
            let mut ask = |data: &[u8]| parse(&mut *client, data, step).unwrap();
            let mut answer = |data: &[u8]| parse(&mut *server, data, step).unwrap();
            assert_eq!(ask(&first(SSL, b"")), ["REQUEST_ENCRYPTION"]);
            assert_eq!(answer(b"N"), ["ENCRYPTION_ANSWER"]);
            assert_eq!(ask(&first(VERSION_3, b"user\0me\0\0")), ["STARTUP"]);
            let ready = message(b'Z', b"I");
            let both = [message(b'R', &[0; 4]), ready.clone()].concat();
            assert_eq!(answer(&both), ["AUTHENTICATION", "READY"]);
            assert_eq!(ask(&message(b'Q', b"select 1\0")), ["QUERY"]);
            let rows = [message(b'D', b"row"), message(b'E', b""), ready].concat();
            assert_eq!(answer(&rows), ["DATA_ROW", "ERROR", "READY"]);
            assert_eq!(ask(&message(b'X', b"")), ["TERMINATE"]);
        }
    }

    #[test]
    fn nothing_is_read_once_it_is_encrypted() {
        let [mut client, mut server] = streams();
        parse(&mut *client, &first(SSL, b""), 8).unwrap();
        parse(&mut *server, b"S", 1).unwrap();
        let [sent, received] =
            [&mut client, &mut server].map(|side| parse(&mut **side, b"\x16\x03\x01Q", 2));
        assert_eq!((sent, received), (Some(vec![]), Some(vec![])));
    }

    #[test]
    fn what_is_no_message_loses_the_position() {
        for data in [
            &b"\0\0\0\x08\0\x01\0\0"[..],
            b"\0\0\0\x03\0\x03\0\0",
            b"!\0\0\0\x04",
            b"Q\0\0\0\x01",
        ] {
            let [mut client, _] = streams();
            assert_eq!(parse(&mut *client, data, 8), None, "{data:?}");
        }
    }
}
