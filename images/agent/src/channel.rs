//! Reads and writes lines on a socket or serial port without blocking: JSON objects, and records as plain
//! lines, which are faster to write.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const CHUNK: usize = 16_384;

/// The result of a read. `lines` has the complete lines that are not empty; `closed` is true if the peer has
/// closed the stream or if reading failed.
pub struct Incoming {
    pub lines: Vec<String>,
    /// True if any byte arrived, even one of an incomplete line.
    pub data: bool,
    pub closed: bool,
}

/// One end of a connection: its descriptor, the received bytes of an incomplete line, and the unsent
/// bytes.
pub struct Channel {
    fd: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Number of bytes at the beginning of `output` that are already written.
    taken: usize,
}

impl Channel {
    /// Wraps a connected stream socket and makes it non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        crate::os::set_nonblocking(fd.as_raw_fd())?;
        Ok(Self {
            fd,
            input: Vec::new(),
            output: Vec::new(),
            taken: 0,
        })
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Reads the available data, at most 1 MiB so that one busy peer does not starve the others, and returns
    /// the complete lines. Keeps an incomplete line for the next call.
    pub fn read(&mut self) -> Incoming {
        let (mut closed, mut data) = (false, false);
        for _ in 0..64 {
            match crate::os::append(self.fd.as_raw_fd(), &mut self.input, CHUNK) {
                Ok(0) => {
                    closed = true;
                    break;
                }
                Ok(n) => {
                    data = true;
                    if n < CHUNK {
                        break;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    closed = true;
                    break;
                }
            }
        }
        Incoming {
            lines: self.take_lines(),
            data,
            closed,
        }
    }

    fn take_lines(&mut self) -> Vec<String> {
        let Some(end) = self.input.iter().rposition(|b| *b == b'\n') else {
            if self.input.is_empty() {
                self.input = Vec::new();
            }
            return Vec::new();
        };
        let rest = self.input.split_off(end + 1);
        let whole = std::mem::replace(&mut self.input, rest);
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        whole[..end]
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect()
    }

    /// Queues a line, to which a newline is added, and writes as much as the socket accepts.
    pub fn send(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
        self.flush();
    }

    /// Queues bytes that already end in a newline, and writes as much as the socket accepts.
    pub fn send_lines(&mut self, lines: &[u8]) {
        self.output.extend_from_slice(lines);
        self.flush();
    }

    /// Writes as much output as the socket accepts. A write error drops the output; the next read then
    /// reports the closed connection.
    pub fn flush(&mut self) {
        while self.taken < self.output.len() {
            match crate::os::write(self.raw(), &self.output[self.taken..]) {
                Ok(n) => self.taken += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.taken = self.output.len(),
            }
        }
        if self.taken == self.output.len() {
            // A new vector, because clearing the old one would not free its memory, which counts as the
            // node's.
            self.forget_output();
        } else if self.taken > self.output.len() / 2 {
            // The bytes already written are removed only now and then, so that not every write to a slow
            // peer moves the buffer.
            self.output.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Drops incomplete input and unsent output, which the next peer must not receive.
    pub fn forget(&mut self) {
        self.input = Vec::new();
        self.forget_output();
    }

    /// Drops unsent output.
    pub fn forget_output(&mut self) {
        self.output = Vec::new();
        self.taken = 0;
    }

    pub fn wants_write(&self) -> bool {
        !self.output.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_slow_reader_gets_every_line_in_order() {
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(mine.into()).unwrap();
        let mut sent = String::new();
        for number in 0..300_000 {
            sent += &format!("line {number}\n");
            channel.send(&format!("line {number}"));
        }
        assert!(channel.wants_write());
        let (mut got, mut chunk) = (Vec::new(), [0; 50_000]);
        while got.len() < sent.len() {
            let n = theirs.read(&mut chunk).unwrap();
            got.extend_from_slice(&chunk[..n]);
            channel.flush();
        }
        assert!(got == sent.as_bytes() && !channel.wants_write());
        channel.send("one more");
        let n = theirs.read(&mut chunk).unwrap();
        assert_eq!(&chunk[..n], b"one more\n");
    }
}
