//! Dissects HTTP/2 (RFC 9113) in the clear, and so gRPC, into requests by method and responses by status; the
//! contents of DATA frames are payload, everything else is header.
//!
//! A message is noted at the end of its stream's direction, with the stream's number. A response whose trailer
//! has a grpc-status other than 0 has the type `GRPC_` and that number.

mod hpack;
mod huffman;

use std::collections::BTreeMap;

use hpack::{Field, Hpack};

use super::head::Head;
use super::{Dissector, Notes, Stream, http};

pub const DISSECTOR: Dissector = Dissector {
    name: "http2",
    type_name,
    tcp_ports: &[50051],
    streams: Some(|| [Box::<Http2>::default(), Box::<Http2>::default()]),
    ..Dissector::NONE
};

/// The client's first bytes (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const PUSH_PROMISE: u8 = 5;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// The largest number of bytes kept of a header block, and of streams that are open at once; with more, the
/// position counts as lost.
const LARGEST_BLOCK: usize = 1 << 16;
const MOST_STREAMS: usize = 4096;
/// Types of messages: methods and statuses have the numbers of the module `http`, and these follow.
const OTHER_METHOD: u16 = 99;
const FIRST_INTERIM: u16 = 100;
const FIRST_FINAL: u16 = 200;
const GRPC: u16 = 700;
const RESET: u16 = 900;
const GOING: u16 = 901;

fn type_name(kind: u16) -> String {
    match kind {
        OTHER_METHOD => "OTHER".into(),
        RESET => "RST_STREAM".into(),
        GOING => "GOAWAY".into(),
        GRPC..RESET => format!("GRPC_{}", kind - GRPC),
        _ => (http::DISSECTOR.type_name)(kind),
    }
}

/// Returns whether a connection that begins with `data` is one of HTTP/2.
pub fn begins(data: &[u8]) -> bool {
    let common = data.len().min(PREFACE.len());
    common >= 16 && data[..common] == PREFACE[..common]
}

/// The frame that is being read: its type, flags and stream, and the number of its bytes to come.
#[derive(Clone, Copy, Default)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    left: u32,
}

/// The state of one direction of a connection.
#[derive(Default)]
struct Http2 {
    /// The number of bytes of the preface that have passed; None after it, or without one.
    preface: Option<usize>,
    begun: bool,
    head: Head<HEAD>,
    frame: Option<Frame>,
    /// The bytes of the present frame, if they hold a header block.
    content: Vec<u8>,
    /// The header block so far; CONTINUATION follows unless the frame has END_HEADERS.
    block: Vec<u8>,
    /// The frame that began the block.
    opener: Frame,
    hpack: Hpack,
    /// The types of the messages that have begun but not ended, by their streams.
    open: BTreeMap<u32, u16>,
}

impl Http2 {
    /// Handles the end of a frame; returns false if it is invalid.
    fn end_of_frame(&mut self, frame: Frame, notes: &mut Notes) -> bool {
        let content = std::mem::take(&mut self.content);
        match frame.kind {
            HEADERS | PUSH_PROMISE => {
                let Some(part) = block_of(frame, &content) else {
                    return false;
                };
                self.block = part.to_vec();
                self.opener = frame;
            }
            CONTINUATION => {
                if frame.stream != self.opener.stream
                    || self.block.len() + content.len() > LARGEST_BLOCK
                {
                    return false;
                }
                self.block.extend_from_slice(&content);
            }
            RST_STREAM => {
                self.open.remove(&frame.stream);
                notes.push_numbered(RESET, frame.stream);
                return true;
            }
            GOAWAY => {
                notes.push_numbered(GOING, 0);
                return true;
            }
            DATA => {
                if frame.flags & END_STREAM != 0 {
                    self.end_of_stream(frame.stream, notes);
                }
                return true;
            }
            _ => return true,
        }
        frame.flags & END_HEADERS == 0 || self.end_of_block(notes)
    }

    fn end_of_block(&mut self, notes: &mut Notes) -> bool {
        let block = std::mem::take(&mut self.block);
        let (mut kind, stream) = (
            self.open.get(&self.opener.stream).copied(),
            self.opener.stream,
        );
        let promised = self.opener.kind == PUSH_PROMISE;
        let read = self.hpack.read(&block, |field, value| match field {
            Field::Method => kind = Some(method(value)),
            Field::Status => kind = number(value).filter(|&status| status >= FIRST_INTERIM),
            Field::GrpcStatus => {
                if let Some(code) = number(value).filter(|&code| code > 0 && code < RESET - GRPC) {
                    kind = Some(GRPC + code);
                }
            }
            Field::Other => {}
        });
        if !read {
            return false;
        }
        if promised {
            return true;
        }
        let interim = kind.is_some_and(|kind| (FIRST_INTERIM..FIRST_FINAL).contains(&kind));
        if let Some(kind) = kind.filter(|_| !interim) {
            self.open.insert(stream, kind);
        }
        if self.opener.flags & END_STREAM != 0 {
            self.end_of_stream(stream, notes);
        }
        self.open.len() <= MOST_STREAMS
    }

    fn end_of_stream(&mut self, stream: u32, notes: &mut Notes) {
        if let Some(kind) = self.open.remove(&stream) {
            notes.push_numbered(kind, stream);
        }
    }

    /// Consumes `count` bytes of the frame; returns false if it ends and is invalid.
    fn pass(&mut self, mut frame: Frame, count: u32, notes: &mut Notes) -> bool {
        if frame.kind != DATA {
            notes.header += count;
        }
        frame.left -= count;
        self.frame = (frame.left > 0).then_some(frame);
        frame.left > 0 || self.end_of_frame(frame, notes)
    }

    /// Consumes the head of a frame; returns false if the parser cannot follow the frame.
    fn begin_frame(&mut self, head: [u8; HEAD], notes: &mut Notes) -> bool {
        let frame = Frame {
            left: u32::from_be_bytes([0, head[0], head[1], head[2]]),
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & !(1 << 31),
        };
        let kept = holds_block(frame.kind) && frame.left as usize > LARGEST_BLOCK;
        !kept && self.pass(frame, 0, notes)
    }
}

/// Returns whether frames of this type hold a header block, whose bytes are needed.
fn holds_block(kind: u8) -> bool {
    matches!(kind, HEADERS | PUSH_PROMISE | CONTINUATION)
}

/// Returns the part of a header block in a frame, without padding, priority and promised stream; None if they
/// exceed the frame.
fn block_of(frame: Frame, content: &[u8]) -> Option<&[u8]> {
    let (mut from, mut to) = (0, content.len());
    if frame.flags & PADDED != 0 {
        to = to.checked_sub(usize::from(*content.first()?))?;
        from += 1;
    }
    if frame.kind == HEADERS && frame.flags & PRIORITY != 0 {
        from += 5;
    }
    if frame.kind == PUSH_PROMISE {
        from += 4;
    }
    content.get(from..to)
}

fn method(value: &[u8]) -> u16 {
    http::method(value).unwrap_or(OTHER_METHOD)
}

fn number(value: &[u8]) -> Option<u16> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

impl Stream for Http2 {
    fn begin(&mut self) {
        *self = Self::default();
    }

    /// Returns false, because without the whole connection the tables of its header fields are not known.
    fn plausible(&self, _data: &[u8], _cut: bool) -> bool {
        false
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        if !self.begun && !data.is_empty() {
            self.begun = true;
            // No frame begins with this byte: the frame would have more than 5 MB.
            self.preface = (data[0] == PREFACE[0]).then_some(0);
        }
        while !data.is_empty() {
            if let Some(passed) = self.preface {
                let step = data.len().min(PREFACE.len() - passed);
                if data[..step] != PREFACE[passed..passed + step] {
                    return false;
                }
                notes.header += step as u32;
                self.preface = Some(passed + step).filter(|&passed| passed < PREFACE.len());
                data = &data[step..];
            } else if let Some(frame) = self.frame {
                let step = data.len().min(frame.left as usize);
                if holds_block(frame.kind) {
                    self.content.extend_from_slice(&data[..step]);
                }
                if !self.pass(frame, step as u32, notes) {
                    return false;
                }
                data = &data[step..];
            } else {
                let (head, taken) = self.head.take(&mut data);
                notes.header += taken;
                let Some(head) = head else { break };
                if !self.begin_frame(head, notes) {
                    return false;
                }
            }
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        match self.frame {
            Some(frame) if count <= frame.left && !holds_block(frame.kind) => {
                self.pass(frame, count, notes)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
        let mut out = (content.len() as u32).to_be_bytes()[1..].to_vec();
        out.extend([kind, flags]);
        out.extend(stream.to_be_bytes());
        out.extend_from_slice(content);
        out
    }

    /// Returns types and numbers of the messages, parsed in pieces of `step` bytes; None if the position is
    /// lost.
    fn messages(data: &[u8], step: usize) -> Option<Vec<(String, u32)>> {
        let (mut stream, mut notes) = (Http2::default(), Notes::default());
        let placed = data
            .chunks(step)
            .all(|piece| stream.parse(piece, &mut notes));
        let names = notes.types.iter().map(|&kind| type_name(kind & 0x3ff));
        placed.then(|| names.zip(notes.ids).collect())
    }

    #[test]
    fn requests_end_with_their_streams_however_they_are_cut() {
        let mut data = PREFACE.to_vec();
        data.extend(frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]));
        data.extend(frame(HEADERS, END_HEADERS, 1, &[0x83])); // :method POST
        data.extend(frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x82]));
        data.extend(frame(DATA, END_STREAM, 1, b"content"));
        // The header block is padded, has a priority, and comes in two parts.
        let padded = [2, 0, 0, 0, 0, 9, 0x82, 0, 0];
        data.extend(frame(HEADERS, END_STREAM | PADDED | PRIORITY, 5, &padded));
        data.extend(frame(CONTINUATION, END_HEADERS, 5, &[0x84]));
        data.extend(frame(RST_STREAM, 0, 3, &[0, 0, 0, 8]));
        let expected = [("GET", 3), ("POST", 1), ("GET", 5), ("RST_STREAM", 3)];
        for step in [1, 2, 7, data.len()] {
            let found = messages(&data, step).unwrap();
            assert_eq!(found, expected.map(|(name, id)| (name.to_owned(), id)));
        }
    }

    #[test]
    fn answers_have_their_status_or_that_of_grpc() {
        let grpc = b"\x40\x0bgrpc-status\x015".as_slice();
        let mut data = frame(HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3']);
        data.extend(frame(HEADERS, END_HEADERS, 1, &[0x88])); // :status 200
        data.extend(frame(DATA, 0, 1, b"message"));
        data.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, grpc));
        data.extend(frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x8d])); // 404
        data.extend(frame(HEADERS, END_HEADERS | END_STREAM, 5, &[0x88, 0xbe])); // the new entry
        let expected = [("GRPC_5", 1), ("404", 3), ("GRPC_5", 5)];
        let expected = expected.map(|(name, id)| (name.to_owned(), id));
        assert_eq!(messages(&data, 3).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_followed_is_lost() {
        for wrong in [
            b"PRI * HTTP/1.1".to_vec(),
            frame(
                HEADERS,
                END_HEADERS,
                1,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            ),
            frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x82]),
            frame(CONTINUATION, END_HEADERS, 7, &[0x82]),
        ] {
            assert_eq!(messages(&wrong, 5), None, "{wrong:?}");
        }
    }
}
