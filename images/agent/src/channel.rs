//! A non-blocking stream of lines in both directions: JSON objects, and bare record lines for speed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const CHUNK: usize = 16_384;

/// What a read brought: whole lines, and whether the other side has closed.
pub struct Incoming {
    pub lines: Vec<String>,
    /// Whether there was anything, were it half a line.
    pub data: bool,
    pub closed: bool,
}

pub struct Channel {
    fd: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the output that the peer has taken.
    taken: usize,
}

impl Channel {
    /// Takes a connected stream socket and makes it non-blocking.
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

    /// Reads what is there; at most 1 MiB at a time so that one busy peer does not starve the others.
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

    /// Queues one line and writes as much as the peer takes now.
    pub fn send(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
        self.flush();
    }

    /// Queues bytes that already end in a newline.
    pub fn send_lines(&mut self, lines: &[u8]) {
        self.output.extend_from_slice(lines);
        self.flush();
    }

    /// Writes what the peer takes; a peer that is gone shows itself as closed on the next read.
    pub fn flush(&mut self) {
        while self.taken < self.output.len() {
            match crate::os::write(self.raw(), &self.output[self.taken..]) {
                Ok(n) => self.taken += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.taken = self.output.len(),
            }
        }
        if self.taken == self.output.len() {
            // A fresh vector gives the pages back: a node's memory is counted.
            self.forget_output();
        } else if self.taken > self.output.len() / 2 {
            // Seldom, so that what waits for a slow peer is not moved with every write.
            self.output.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Drops what was half read or not yet taken: the next peer must not get the last one's words.
    pub fn forget(&mut self) {
        self.input = Vec::new();
        self.forget_output();
    }

    /// Drops what was not yet taken.
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
