//! Dissects HTTP/1.x (RFC 9112) into requests by method and responses by status; bodies are payload,
//! everything else is header.
//!
//! The type of a message is noted at the end of its body, or at the end of its head if the body lasts until
//! the connection closes.

mod line;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use line::{Field, Line, Start};

use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "http",
    type_name: line::type_name,
    tcp_ports: &[80, 3128, 8080],
    streams: Some(streams),
    ..Dissector::NONE
};

/// The most requests without a response whose methods are kept. The responses to further requests are parsed
/// as responses to GET.
const PIPELINE: usize = 64;
const SWITCHING_PROTOCOLS: u16 = 101;

/// Returns the number of a method's name; None if it is unknown.
pub fn method(name: &[u8]) -> Option<u16> {
    line::method(name)
}

/// The methods of requests without a response so far, shared by both directions.
type Pending = Rc<RefCell<Methods>>;

#[derive(Default)]
struct Methods {
    kept: VecDeque<u16>,
    /// The number of requests after the kept ones; their methods are not known.
    beyond: u64,
}

impl Methods {
    fn push(&mut self, method: u16) {
        if self.beyond == 0 && self.kept.len() < PIPELINE {
            self.kept.push_back(method);
        } else {
            self.beyond += 1;
        }
    }

    /// Removes the oldest request and returns its method; None if it was not kept, or if there is no request.
    fn pop(&mut self) -> Option<u16> {
        let method = self.kept.pop_front();
        if method.is_none() {
            self.beyond = self.beyond.saturating_sub(1);
        }
        method
    }
}

fn streams() -> super::Streams {
    let pending = Pending::default();
    let one = || {
        Box::new(Http {
            state: State::Start,
            line: Line::default(),
            kind: 0,
            body: Body::None,
            pending: pending.clone(),
        })
    };
    [one(), one()]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    None,
    Length(u64),
    Chunked,
    /// The body lasts until the connection ends.
    Endless,
}

#[derive(Clone, Copy)]
enum State {
    Start,
    Fields,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    Trailer,
    Endless,
}

struct Http {
    state: State,
    line: Line,
    /// The method or status of the message that is being parsed.
    kind: u16,
    body: Body,
    pending: Pending,
}

impl Http {
    /// Handles the complete line in `self.line`; returns false if it is invalid.
    fn end_of_line(&mut self, notes: &mut Notes) -> bool {
        match self.state {
            // Empty lines before a message are allowed (RFC 9112, 2.2).
            State::Start if self.line.is_empty() => {}
            State::Start => match self.line.start() {
                Some(start) => self.start(start),
                None => return false,
            },
            State::Fields if self.line.is_empty() => self.end_of_head(notes),
            State::Fields => match self.line.field() {
                Some(Field::Length(length)) if self.body == Body::None => {
                    self.body = Body::Length(length);
                }
                Some(Field::Chunked) => self.body = Body::Chunked,
                _ => {}
            },
            // This is the end of line after a chunk.
            State::ChunkSize if self.line.is_empty() => {}
            State::ChunkSize => match self.line.chunk_size() {
                Some(0) => self.state = State::Trailer,
                Some(size) => self.state = State::Chunk(size),
                None => return false,
            },
            State::Trailer if self.line.is_empty() => self.end(notes),
            _ => {}
        }
        self.line.clear();
        true
    }

    fn start(&mut self, start: Start) {
        (self.state, self.body) = (State::Fields, Body::None);
        match start {
            Start::Request(method) => {
                self.kind = method;
                self.pending.borrow_mut().push(method);
            }
            Start::Response(status) => self.kind = status,
        }
    }

    fn end_of_head(&mut self, notes: &mut Notes) {
        if line::is_status(self.kind) {
            self.body = self.response_body();
        }
        match self.body {
            Body::None | Body::Length(0) => self.end(notes),
            Body::Length(length) => self.state = State::Body(length),
            Body::Chunked => self.state = State::ChunkSize,
            Body::Endless => {
                notes.push(self.kind);
                self.state = State::Endless;
            }
        }
    }

    /// Returns how the length of the present response's body is determined (RFC 9112, 6.3), and removes the
    /// method of its request from `pending`, unless the response is interim.
    fn response_body(&mut self) -> Body {
        let interim = self.kind < 200 && self.kind != SWITCHING_PROTOCOLS;
        if interim {
            return Body::None;
        }
        let method = self.pending.borrow_mut().pop();
        let tunnel = method == Some(line::CONNECT) && self.kind < 300;
        if tunnel || self.kind == SWITCHING_PROTOCOLS {
            Body::Endless
        } else if method == Some(line::HEAD) || matches!(self.kind, 204 | 304) {
            Body::None
        } else if self.body == Body::None {
            Body::Endless
        } else {
            self.body
        }
    }

    fn end(&mut self, notes: &mut Notes) {
        notes.push(self.kind);
        self.state = State::Start;
    }

    /// Consumes the first line of `data`, or the beginning of a line if its end is missing; returns false if
    /// it is invalid.
    fn line(&mut self, data: &mut &[u8], notes: &mut Notes) -> bool {
        let end = data.iter().position(|&byte| byte == b'\n');
        let (line, rest) = data.split_at(end.map_or(data.len(), |end| end + 1));
        *data = rest;
        self.line.extend(line);
        if matches!(self.state, State::Start) && !self.line.may_start() {
            return false;
        }
        notes.header += line.len() as u32;
        end.is_none() || self.end_of_line(notes)
    }

    /// Consumes `count` bytes of a body or chunk, at most the rest of it.
    fn content(&mut self, count: u64, notes: &mut Notes) {
        match &mut self.state {
            State::Body(left) | State::Chunk(left) => *left -= count,
            _ => {}
        }
        match self.state {
            State::Body(0) => self.end(notes),
            State::Chunk(0) => self.state = State::ChunkSize,
            _ => {}
        }
    }

    fn content_left(&self) -> u64 {
        match self.state {
            State::Body(left) | State::Chunk(left) => left,
            State::Endless => u64::MAX,
            _ => 0,
        }
    }
}

impl Stream for Http {
    fn begin(&mut self) {
        self.state = State::Start;
        self.line.clear();
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        let mut line = Line::default();
        line.extend(data.split(|&byte| byte == b'\n').next().unwrap_or_default());
        line.start().is_some()
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            let left = self.content_left();
            if left > 0 {
                let step = (data.len() as u64).min(left);
                self.content(step, notes);
                data = &data[step as usize..];
            } else if !self.line(&mut data, notes) {
                return false;
            }
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = u64::from(count) <= self.content_left();
        if inside {
            self.content(count.into(), notes);
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_keep_the_order_of_requests_beyond_the_kept_methods() {
        let mut methods = Methods::default();
        for _ in 0..PIPELINE + 2 {
            methods.push(line::HEAD);
        }
        assert_eq!(methods.pop(), Some(line::HEAD));
        methods.push(line::CONNECT); // after two that were not kept, so that it is not kept either
        let rest: Vec<_> = (1..PIPELINE + 3).map(|_| methods.pop()).collect();
        assert!(rest[..PIPELINE - 1].iter().all(|m| *m == Some(line::HEAD)));
        assert_eq!(rest[PIPELINE - 1..], [None, None, None]);
        methods.push(line::CONNECT);
        assert_eq!(methods.pop(), Some(line::CONNECT));
        assert_eq!(methods.pop(), None);
    }
}
