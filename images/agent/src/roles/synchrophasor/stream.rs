//! Sends and receives frames of C37.118 over one TCP connection.

use super::frame;
use crate::os::{self, Res};
use crate::roles::socket::BACKLOG_BYTES;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

pub struct Stream {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Stream {
    /// Takes over a non-blocking socket.
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    pub fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Returns whether output waits for space in the socket's buffer.
    pub fn waits(&self) -> bool {
        !self.output.is_empty()
    }

    /// Queues a frame and writes as much as the socket accepts; returns false, without queueing it, if more
    /// than `BACKLOG_BYTES` of output already wait. An error if the connection has ended.
    pub fn send(&mut self, frame: &[u8]) -> Res<bool> {
        if self.output.len() > BACKLOG_BYTES {
            return Ok(false);
        }
        self.output.extend_from_slice(frame);
        self.flush().map(|()| true)
    }

    pub fn flush(&mut self) -> Res<()> {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(n) => drop(self.output.drain(..n)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// Reads once from the socket and passes completed frames to `take`; an error if the connection has ended
    /// or the peer has sent bytes that do not begin a frame.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Res<()> {
        let mut chunk = [0; 16_384];
        match os::read(self.raw(), &mut chunk) {
            Ok(0) => return Err("closed by the peer".to_owned()),
            Ok(n) => self.input.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e.to_string()),
        }
        let mut at = 0;
        while let Some(size) = frame::size(&self.input[at..])? {
            let Some(whole) = self.input.get(at..at + size) else {
                break;
            };
            take(whole);
            at += size;
        }
        self.input.drain(..at);
        Ok(())
    }
}
