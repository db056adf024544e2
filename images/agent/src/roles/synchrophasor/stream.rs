//! Frames over one TCP connection: those that came, whole, and those that wait for room in the socket.

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
    /// Of a socket that does not block.
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

    /// Whether room in the socket is waited for.
    pub fn waits(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the frame is on its way; one that finds too much before it is not.
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

    /// Hands over the frames that the next bytes complete; what is no frame ends the connection, as its end does.
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
