//! Frames the messages of one connection, behind their lengths or by HTTP, and encrypts them if the settings
//! have TLS.

use super::frames::{self, Frames};
use super::{http, http2};
use crate::os::{self, Res};
use crate::roles::broker_client::tls::Channel;
use crate::roles::ledger::Key;
use std::os::fd::RawFd;

/// The framing of the messages that a connection receives.
pub enum Wire {
    Lengths(Frames),
    Http(http::Messages),
    Http2(Box<http2::Client<Key>>),
}

impl Wire {
    pub fn new(http: bool) -> Self {
        if http {
            Self::Http(http::Messages::default())
        } else {
            Self::Lengths(Frames::default())
        }
    }

    /// Returns the wire of a client's new connection; None for `http`: messages follow their lengths.
    pub fn begin(http: Option<&http::Settings>) -> Res<Self> {
        Ok(match http {
            Some(settings) if settings.version == 2 => Self::Http2(Box::new(http2::Client::new()?)),
            http => Self::new(http.is_some()),
        })
    }

    /// Passes the messages that the bytes complete to `take` until it returns false, as `Frames::feed_while`.
    pub fn feed_while(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> Res<()> {
        match self {
            Self::Http2(client) => client.feed(bytes, |message| _ = take(message)),
            Self::Lengths(frames) => frames.feed_while(bytes, take),
            Self::Http(messages) => messages.feed_while(bytes, take),
        }
    }

    /// Returns whether the other side ends the connection after the last message.
    pub fn closes(&self) -> bool {
        match self {
            Self::Lengths(_) => false,
            Self::Http(messages) => messages.closes,
            Self::Http2(client) => client.closes(),
        }
    }

    /// Returns whether a message can be appended: with HTTP/2, if the one before has left whole and the
    /// server takes another.
    pub fn free(&mut self) -> bool {
        match self {
            Self::Http2(client) => client.free(),
            _ => true,
        }
    }

    /// Moves what HTTP/2 has to send by itself to the end of `out`; returns whether the message that was
    /// appended last has come out whole.
    pub fn drain(&self, out: &mut Vec<u8>) -> bool {
        let Self::Http2(client) = self else {
            return true;
        };
        client.drain(out);
        !client.holds()
    }

    /// Appends the message `key` that `write` writes, as a request of HTTP to `host` if there are settings
    /// for it; appends nothing if `write` writes nothing. Returns an error if HTTP/2 has failed.
    pub fn append(
        &mut self,
        http: Option<&http::Settings>,
        (host, tls): (&str, bool),
        key: Key,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Res<()> {
        let Some(settings) = http else {
            frames::append(out, write);
            return Ok(());
        };
        let mut body = Vec::new();
        write(&mut body);
        match self {
            _ if body.is_empty() => {}
            Self::Http2(client) => {
                client.request(key, host, &settings.path, tls, body)?;
                client.drain(out);
            }
            _ => http::request(settings, host, &body, out),
        }
        Ok(())
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
