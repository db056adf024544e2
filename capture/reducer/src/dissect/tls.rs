//! Dissects TLS (RFC 8446, 5246) into records and unencrypted handshake messages. The content of application
//! data is payload, everything else is header.

use super::head::Head;
use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "tls",
    type_name,
    tcp_ports: &[443, 853, 8443, 8883],
    streams: Some(|| [Box::<Tls>::default(), Box::<Tls>::default()]),
    ..Dissector::NONE
};

const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// The longest content of a record: 2^14 bytes, plus 2048 for the cipher (RFC 5246, 6.2.3).
const LARGEST: u32 = (1 << 14) + 2048;
/// The number of the first type of handshake messages; lower numbers are types of
/// records.
const MESSAGES: u16 = 256;

fn type_name(kind: u16) -> String {
    let name = match kind.checked_sub(MESSAGES) {
        None => match kind {
            20 => "CHANGE_CIPHER_SPEC",
            21 => "ALERT",
            22 => "ENCRYPTED_HANDSHAKE",
            23 => "APPLICATION_DATA",
            _ => "HEARTBEAT",
        },
        Some(message) => match message {
            0 => "HELLO_REQUEST",
            1 => "CLIENT_HELLO",
            2 => "SERVER_HELLO",
            4 => "NEW_SESSION_TICKET",
            8 => "ENCRYPTED_EXTENSIONS",
            11 => "CERTIFICATE",
            12 => "SERVER_KEY_EXCHANGE",
            13 => "CERTIFICATE_REQUEST",
            14 => "SERVER_HELLO_DONE",
            15 => "CERTIFICATE_VERIFY",
            16 => "CLIENT_KEY_EXCHANGE",
            20 => "FINISHED",
            22 => "CERTIFICATE_STATUS",
            other => return format!("HANDSHAKE_{other}"),
        },
    };
    name.into()
}

#[derive(Default)]
struct Tls {
    head: Head<5>,
    record: u8,
    left: u32,
    /// True after ChangeCipherSpec, after which handshake messages are encrypted.
    encrypted: bool,
    message_head: Head<4>,
    message: u8,
    message_left: u32,
}

/// Returns content type and length of the record that begins with `head`; None if the bytes do not begin a
/// record.
fn record(head: &[u8]) -> Option<(u8, u32)> {
    let &[kind, 3, minor, high, low, ..] = head else {
        return None;
    };
    let length = u32::from(u16::from_be_bytes([high, low]));
    let valid = (20..=24).contains(&kind) && minor <= 4 && length <= LARGEST;
    valid.then_some((kind, length))
}

impl Tls {
    fn in_clear(&self) -> bool {
        self.record == HANDSHAKE && !self.encrypted
    }

    /// Consumes `count` bytes of the record's content.
    fn pass(&mut self, count: u32, notes: &mut Notes) {
        if self.record != APPLICATION_DATA {
            notes.header += count;
        }
        self.left -= count;
        if self.left > 0 || self.in_clear() {
            return;
        }
        notes.push(self.record.into());
        self.encrypted |= self.record == CHANGE_CIPHER_SPEC;
    }

    /// Parses handshake messages and adds their types to `notes`; a record may contain several, or a part of
    /// one.
    fn messages(&mut self, mut data: &[u8], notes: &mut Notes) {
        while !data.is_empty() {
            if self.message_left == 0 {
                let Some(head) = self.message_head.take(&mut data).0 else {
                    return;
                };
                self.message = head[0];
                self.message_left = u32::from_be_bytes([0, head[1], head[2], head[3]]);
            }
            let step = data.len().min(self.message_left as usize);
            data = &data[step..];
            self.message_left -= step as u32;
            if self.message_left == 0 {
                notes.push(MESSAGES + u16::from(self.message));
            }
        }
    }
}

impl Stream for Tls {
    fn begin(&mut self) {
        *self = Self::default();
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        record(data).is_some()
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if self.left > 0 {
                let (content, rest) = data.split_at(data.len().min(self.left as usize));
                if self.in_clear() {
                    self.messages(content, notes);
                }
                self.pass(content.len() as u32, notes);
                data = rest;
                continue;
            }
            let (head, taken) = self.head.take(&mut data);
            notes.header += taken;
            let Some(head) = head else { break };
            let Some((kind, length)) = record(&head) else {
                return false;
            };
            (self.record, self.left) = (kind, length);
            self.pass(0, notes);
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = count <= self.left;
        if !inside || self.in_clear() && count > self.message_left {
            return false;
        }
        if self.in_clear() {
            self.message_left -= count;
            if self.message_left == 0 {
                notes.push(MESSAGES + u16::from(self.message));
            }
        }
        self.pass(count, notes);
        true
    }
}
