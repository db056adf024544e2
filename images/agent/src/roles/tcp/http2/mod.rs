//! Frames messages as requests and answers of HTTP/2 (RFC 9113): a request is a POST with the message as its
//! body, on a stream of its own; its answer has the status 200 and the reply as its body.
//!
//! The crate h2 has the protocol. It is written for an asynchronous runtime; here its connection reads from
//! and writes to memory (`Memory`), and is polled whenever bytes have come or are to leave. No waker is
//! needed, since nothing but these bytes and our own calls can make progress.

mod client;
mod memory;
mod server;

pub use client::Client;
pub use server::Server;

use crate::os::Res;
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use std::fmt::Display;
use std::task::{Context, Poll, Waker};

/// The first bytes of a client (RFC 9113, 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The protocol's name in TLS (ALPN).
pub const ALPN: &[u8] = b"h2";
/// The bytes that each side may send before the other has read them, on a stream and on a connection: as many
/// as the longest message has, so that the windows of TCP and not those of HTTP/2 limit the rate.
const WINDOW: u32 = super::frames::LONGEST as u32;
/// The most requests that a server takes at once on a connection.
const STREAMS: u32 = 1000;

fn words(error: impl Display) -> String {
    format!("HTTP/2: {error}")
}

/// Runs a poll that needs no waker.
fn poll<T>(work: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    work(&mut Context::from_waker(Waker::noop()))
}

/// A body that leaves as the windows of the other side allow.
struct Leaving {
    stream: SendStream<Bytes>,
    rest: Bytes,
}

impl Leaving {
    fn new(mut stream: SendStream<Bytes>, body: Bytes) -> Self {
        stream.reserve_capacity(body.len());
        Self { stream, rest: body }
    }

    /// Hands over as much of the body as the windows allow.
    fn pump(&mut self) -> Left {
        let mut left = Left::Nothing;
        loop {
            let room = self.stream.capacity().min(self.rest.len());
            let piece = self.rest.split_to(room);
            let last = self.rest.is_empty();
            if (room > 0 || last) && self.stream.send_data(piece, last).is_err() {
                return Left::All;
            }
            if last {
                return Left::All;
            }
            if room > 0 {
                left = Left::Some;
            }
            match poll(|context| self.stream.poll_capacity(context)) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(_) => return Left::All,
                Poll::Pending => return left,
            }
        }
    }
}

/// The part of a body that has left in one go. `All`: its end has, too, or the other side no longer wants it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Some,
    All,
}

/// A body that arrives.
struct Arriving {
    stream: RecvStream,
    body: Vec<u8>,
}

impl Arriving {
    fn new(stream: RecvStream) -> Self {
        let body = Vec::new();
        Self { stream, body }
    }

    /// Takes what has come; returns whether the body is complete. An error if the other side has reset the
    /// stream, or the body is longer than a message may be.
    fn pump(&mut self) -> Res<bool> {
        loop {
            match poll(|context| self.stream.poll_data(context)) {
                Poll::Pending => return Ok(false),
                Poll::Ready(None) => return Ok(true),
                Poll::Ready(Some(piece)) => {
                    let piece = piece.map_err(words)?;
                    self.body.extend_from_slice(&piece);
                    if self.body.len() > super::frames::LONGEST {
                        return Err(words("a body that is too long"));
                    }
                    let flow = self.stream.flow_control();
                    flow.release_capacity(piece.len()).map_err(words)?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
