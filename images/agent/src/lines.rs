//! Control messages: one line of JSON each over TCP, to neighbours that listen and from those that called.

use crate::os::Res;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Who takes so long to answer is asked again in the next period.
const PATIENCE: Duration = Duration::from_millis(500);
/// A line that is longer comes from a stranger.
const LONGEST: usize = 65_536;

/// Lines that come in; those who called may stay.
pub struct Inbox {
    listener: Option<TcpListener>,
    callers: Vec<Caller>,
}

struct Caller {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Inbox {
    pub fn open(port: Option<u16>) -> Res<Self> {
        let listener = port.map(|port| {
            let listener =
                TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port)));
            let listener =
                listener.map_err(|e| format!("listen: port {port}: {e}; choose another"))?;
            listener.set_nonblocking(true).map_err(|e| e.to_string())?;
            Ok::<_, String>(listener)
        });
        Ok(Self {
            listener: listener.transpose()?,
            callers: Vec::new(),
        })
    }

    pub fn fds(&self) -> Vec<RawFd> {
        let listener = self.listener.iter().map(AsRawFd::as_raw_fd);
        listener
            .chain(self.callers.iter().map(|c| c.stream.as_raw_fd()))
            .collect()
    }

    /// All whole messages that have come, and lines that are none.
    pub fn take<T: DeserializeOwned>(&mut self) -> Vec<Res<T>> {
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            if stream.set_nonblocking(true).is_ok() {
                self.callers.push(Caller {
                    stream,
                    read: Vec::new(),
                });
            }
        }
        let mut found = Vec::new();
        self.callers.retain_mut(|caller| {
            let there = caller.fill();
            while let Some(line) = caller.line() {
                let parsed = serde_json::from_slice(&line);
                found.push(parsed.map_err(|e| format!("{}: {e}", String::from_utf8_lossy(&line))));
            }
            there && caller.read.len() < LONGEST
        });
        found
    }
}

impl Caller {
    /// False once the other side is gone.
    fn fill(&mut self) -> bool {
        let mut part = [0u8; 4096];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(n) => self.read.extend(&part[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.read.iter().position(|b| *b == b'\n')?;
        let mut line: Vec<u8> = self.read.drain(..=end).collect();
        line.pop();
        Some(line)
    }
}

/// A neighbour that listens and is told how things stand, again whenever its connection was lost.
pub struct Outbox {
    pub to: SocketAddr,
    stream: Option<TcpStream>,
    news: String,
    told: bool,
}

impl Outbox {
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            stream: None,
            news: String::new(),
            told: true,
        }
    }

    /// How things stand now; `send` says it, if it is new.
    pub fn tell(&mut self, message: &impl Serialize) -> Res<()> {
        let line = serde_json::to_string(message).map_err(|e| e.to_string())? + "\n";
        if line != self.news {
            (self.news, self.told) = (line, false);
        }
        Ok(())
    }

    /// Says what is new, and to one who was away how things stand; whether something was said, or why it could not be.
    pub fn send(&mut self) -> Res<bool> {
        if self.stream.as_ref().is_some_and(is_closed) {
            (self.stream, self.told) = (None, false);
        }
        if self.told {
            return Ok(false);
        }
        let wrong = |e: std::io::Error| format!("{}: {e}", self.to);
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.to).map_err(wrong)?,
        };
        stream.write_all(self.news.as_bytes()).map_err(wrong)?;
        (self.stream, self.told) = (Some(stream), true);
        Ok(true)
    }
}

fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Neighbours say nothing on these connections, so whatever can be read is their end.
fn is_closed(stream: &TcpStream) -> bool {
    let unread = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0u8; 1]));
    let blocks = stream.set_nonblocking(false);
    blocks.is_err() || !matches!(unread, Err(e) if e.kind() == ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn until(inbox: &mut Inbox, count: usize) -> Vec<Res<Value>> {
        let mut found = Vec::new();
        for _ in 0..500 {
            found.extend(inbox.take());
            if found.len() >= count {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        found
    }

    #[test]
    fn messages_arrive_and_what_is_none_is_said() {
        let mut inbox = Inbox::open(Some(0)).unwrap();
        let port = inbox
            .listener
            .as_ref()
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut outbox = Outbox::new(SocketAddr::from(([127, 0, 0, 1], port)));
        outbox.tell(&json!({"flow": "a", "bps": 5})).unwrap();
        outbox.send().unwrap();
        assert_eq!(until(&mut inbox, 1), [Ok(json!({"flow": "a", "bps": 5}))]);
        outbox.tell(&json!({"flow": "a", "bps": 5})).unwrap();
        assert_eq!(outbox.send(), Ok(false), "that is no news");
        let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stranger.write_all(b"GET / HTTP/1.0\n{\"half\"").unwrap();
        let said = until(&mut inbox, 1);
        assert!(
            said[0]
                .as_ref()
                .unwrap_err()
                .starts_with("GET / HTTP/1.0: expected")
        );
        assert_eq!(inbox.callers.len(), 2);
        drop(stranger);
        until(&mut inbox, 1);
        assert_eq!(inbox.callers.len(), 1);
    }

    #[test]
    fn who_was_away_is_told_when_he_is_back() {
        let mut first = Inbox::open(Some(0)).unwrap();
        let port = first
            .listener
            .as_ref()
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut outbox = Outbox::new(SocketAddr::from(([127, 0, 0, 1], port)));
        outbox.tell(&json!(1)).unwrap();
        outbox.send().unwrap();
        assert_eq!(until(&mut first, 1), [Ok(json!(1))]);
        drop(first);
        outbox.tell(&json!(2)).unwrap();
        assert!(outbox.send().is_err());
        let mut second = Inbox::open(Some(port)).unwrap();
        outbox.tell(&json!(3)).unwrap();
        outbox.send().unwrap();
        assert_eq!(until(&mut second, 1), [Ok(json!(3))]);
        second.callers.clear();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(outbox.send(), Ok(true), "it is told again");
        assert_eq!(until(&mut second, 1), [Ok(json!(3))]);
    }
}
