//! A non-blocking stream of lines in both directions: JSON objects, and bare record lines for speed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

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
}

impl Channel {
    /// Takes a connected stream socket and makes it non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        crate::os::set_nonblocking(fd.as_raw_fd())?;
        Ok(Self {
            fd,
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Reads what is there; at most 1 MiB at a time so that one busy peer does not starve the others.
    pub fn read(&mut self) -> Incoming {
        let (mut closed, mut data) = (false, false);
        let mut chunk = [0u8; 16384];
        for _ in 0..64 {
            match crate::os::read(self.raw(), &mut chunk) {
                Ok(0) => {
                    closed = true;
                    break;
                }
                Ok(n) => {
                    data = true;
                    self.input.extend_from_slice(&chunk[..n]);
                    if n < chunk.len() {
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
        let mut done = 0;
        while done < self.output.len() {
            match crate::os::write(self.raw(), &self.output[done..]) {
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    done = self.output.len();
                    break;
                }
            }
        }
        if done == self.output.len() {
            // A fresh vector gives the pages back: a node's memory is counted.
            self.output = Vec::new();
        } else {
            self.output.drain(..done);
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
    }

    pub fn wants_write(&self) -> bool {
        !self.output.is_empty()
    }
}
