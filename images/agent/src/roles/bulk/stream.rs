//! Implements one TCP connection of a bulk transfer.

use crate::os;
use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

pub struct Stream {
    pub socket: TcpStream,
    pub up: bool,
    written: u64,
    /// True if the next write waits until the socket is writable, because the socket's buffer is full or
    /// other streams have their turn.
    pub full: bool,
}

impl Stream {
    /// Takes over a socket whose connection is being established.
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            up: false,
            written: 0,
            full: false,
        }
    }

    /// Returns an error with the reason if the connection has ended or could not be established.
    pub fn check(&self) -> Result<(), String> {
        match self.socket.take_error() {
            Ok(None) => {}
            Ok(Some(e)) | Err(e) => return Err(e.to_string()),
        }
        // The receiver sends nothing, so readable data can only be the end of the stream.
        match os::read(self.socket.as_raw_fd(), &mut [0; 16]) {
            Ok(0) if self.up => Err("closed by the peer".to_owned()),
            Err(e) if e.kind() != ErrorKind::WouldBlock && self.up => Err(e.to_string()),
            _ => Ok(()),
        }
    }

    /// Writes the rest of the header that identifies the flow or, once that is written, bytes of `zeros`;
    /// returns the number of bytes written.
    pub fn write(&mut self, identity: &Identity, zeros: &[u8]) -> usize {
        let mut head = Vec::new();
        let offer: &[u8] = if self.written < Bytes.smallest() as u64 {
            Bytes.write(identity, Bytes.smallest(), &mut head);
            &head[self.written as usize..]
        } else {
            zeros
        };
        let taken = os::write(self.socket.as_raw_fd(), offer).unwrap_or(0);
        self.full = taken < offer.len();
        self.written += taken as u64;
        taken
    }
}
