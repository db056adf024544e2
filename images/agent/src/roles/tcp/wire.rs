//! Frames the messages of one connection, by a length before each or by HTTP/1.1, and encrypts them if the
//! settings have TLS.

use super::frames::{self, Frames};
use super::http;
use crate::os::{self, Res};
use crate::roles::broker_client::tls::Channel;
use std::os::fd::RawFd;

/// The framing of the messages that a connection receives.
pub enum Wire {
    Lengths(Frames),
    Http(http::Messages),
}

impl Wire {
    pub fn new(http: bool) -> Self {
        if http {
            Self::Http(http::Messages::default())
        } else {
            Self::Lengths(Frames::default())
        }
    }

    /// Passes the messages that the bytes complete to `take` until it returns false, as `Frames::feed_while`
    /// does.
    pub fn feed_while(&mut self, bytes: &[u8], take: impl FnMut(&[u8]) -> bool) -> Res<()> {
        match self {
            Self::Lengths(frames) => frames.feed_while(bytes, take),
            Self::Http(messages) => messages.feed_while(bytes, take),
        }
    }

    /// Returns whether the other side ends the connection after the last message.
    pub fn closes(&self) -> bool {
        matches!(self, Self::Http(messages) if messages.closes)
    }
}

/// Appends the message that `write` writes; if there are settings of HTTP, as a request to `host`. Appends
/// nothing if `write` writes nothing.
pub fn append(
    http: Option<&http::Settings>,
    host: &str,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let Some(settings) = http else {
        return frames::append(out, write);
    };
    let mut body = Vec::new();
    write(&mut body);
    if !body.is_empty() {
        http::request(settings, host, &body, out);
    }
}

/// Writes as much of `output` as the socket accepts, and removes it; returns the number of bytes that have
/// left. The next read returns the reason of a broken connection.
pub fn send(fd: RawFd, channel: Option<&mut Channel>, output: &mut Vec<u8>) -> usize {
    let before = output.len();
    let Some(channel) = channel else {
        while !output.is_empty() {
            let Ok(n) = os::write(fd, output) else { break };
            output.drain(..n);
        }
        return before - output.len();
    };
    while channel.flush(fd) {
        let left = channel.take_left();
        let more = channel.encrypt(&output[left..]);
        output.drain(..left);
        if !more {
            break;
        }
    }
    before - output.len()
}
