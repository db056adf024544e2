//! Moves messages between a link and its socket: writes queued messages, and takes the answers.

use super::{CONFIRM_NS, Change, Leaving, Link, Settings, State, UNKNOWN, Wire};
use crate::clock;
use crate::os;
use crate::payload::{self, Purpose};
use crate::roles::ledger::Ledger;
use crate::roles::socket::{self, BACKLOG_BYTES};
use crate::roles::tcp::{http2, wire};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};

impl Link {
    /// Reads once from the socket, and takes the messages; handles the end of the connection.
    pub(super) fn read(
        &mut self,
        now: i64,
        settings: &Settings,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) {
        let Some(fd) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        let mut chunk = [0u8; 16_384];
        match os::read(fd, &mut chunk) {
            // A server of HTTP may end a connection on which no request is open.
            Ok(0) if settings.http.is_some() && self.up() && self.has_no_request() => {
                self.hang_up(ledger);
            }
            Ok(0) => self.lost("closed by the peer", now, settings, ledger, out),
            Ok(n) => {
                let done = self.receive(fd, &chunk[..n], ledger, out);
                if let Err(text) = done {
                    self.lost(&text, now, settings, ledger, out);
                } else if self.wire.closes() || self.ends_with_answer(settings) {
                    self.hang_up(ledger);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, settings, ledger, out),
        }
    }

    fn has_no_request(&self) -> bool {
        self.unanswered.is_empty() && self.leaving.is_empty()
    }

    /// Returns whether the answer to the only request of the connection has arrived.
    fn ends_with_answer(&self, settings: &Settings) -> bool {
        let single = settings.http.as_ref().is_some_and(|http| !http.keep_alive);
        single && self.up() && self.written > 0 && self.has_no_request()
    }

    /// Decrypts received bytes if the connection has TLS, and takes the messages in them.
    fn receive(
        &mut self,
        fd: RawFd,
        bytes: &[u8],
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) -> os::Res<()> {
        let Some(channel) = &mut self.tls else {
            return self.take(bytes, ledger, out);
        };
        let mut plain = Vec::new();
        let done = channel.read(bytes, &mut plain);
        // This sends an answer of the handshake, or the alert with the reason for the connection's end.
        channel.flush(fd);
        if let Some(detail) = channel.take_handshake() {
            if matches!(self.wire, Wire::Http2(_)) && !channel.speaks(http2::ALPN) {
                return Err("the server speaks no HTTP/2".to_owned());
            }
            if !self.quiet {
                self.changes.push(Change::Tls(detail));
            }
            self.arrive();
        }
        done?;
        self.take(&plain, ledger, out)
    }

    pub(in super::super) fn take(
        &mut self,
        bytes: &[u8],
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) -> os::Res<()> {
        let (from, now) = ((self.index, self.peer.endpoint.as_str()), clock::lab_ns());
        self.wire.feed_while(bytes, |message| {
            let reply = payload::read(message).filter(|m| m.purpose == Purpose::Reply);
            match reply.and_then(|reply| ledger.answered(&reply, from, now, out)) {
                Some(key) => drop(self.unanswered.remove(&key)),
                None => self.foreign += 1,
            }
            true
        })?;
        self.collect();
        Ok(())
    }

    /// Moves what HTTP/2 has to send to the output, with the rest of a message for which there is room now.
    pub(super) fn collect(&mut self) {
        let whole = self.wire.drain(&mut self.output);
        let end = self.written + self.output.len() as u64;
        if let Some(last) = self
            .leaving
            .back_mut()
            .filter(|last| whole && last.to == UNKNOWN)
        {
            last.to = end;
        }
    }

    /// Writes queued messages to the socket, one write each, while the link is up, its output has fewer than
    /// `BACKLOG_BYTES`, and fewer than `inflight` messages are in the output or, as requests, unanswered.
    pub fn pump(&mut self, settings: &Settings, ledger: &mut Ledger, out: &mut Vec<u8>) {
        if self.state == State::Idle && !self.queue.is_empty() {
            self.quiet = true;
            self.connect(clock::lab_ns(), settings, ledger, out);
        }
        self.collect();
        while self.up()
            && self.output.len() < BACKLOG_BYTES
            && self.unanswered.len() + self.leaving.len() < settings.inflight
            && self.wire.free()
        {
            let Some(key) = self.queue.pop_front() else {
                break;
            };
            let from = self.written + self.output.len() as u64;
            let (http, host) = (settings.http.as_ref(), self.peer.endpoint.as_str());
            let to = (host, settings.tls.is_some());
            let (wire, output) = (&mut self.wire, &mut self.output);
            let done = wire.append(http, to, key, output, |out| ledger.write(&key, out));
            if let Err(text) = done {
                self.queue.push_front(key);
                return self.lost(&text, clock::lab_ns(), settings, ledger, out);
            }
            let whole = self.wire.drain(&mut self.output);
            let end = self.written + self.output.len() as u64;
            if end > from {
                let to = if whole { end } else { UNKNOWN };
                self.leaving.push_back(Leaving { from, to, key });
                self.write(ledger, out);
            }
        }
        if self.up() && matches!(self.wire, Wire::Http2(_)) {
            self.write(ledger, out);
        }
    }

    /// Writes as much output as the socket accepts, and records the messages that were written completely.
    pub(super) fn write(&mut self, ledger: &mut Ledger, out: &mut Vec<u8>) {
        let Some(fd) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        if !self.established {
            return;
        }
        self.written += wire::send(fd, self.tls.as_mut(), &mut self.output) as u64;
        let now = clock::lab_ns();
        while let Some(leaving) = self.leaving.pop_front_if(|l| l.to <= self.written) {
            // Only requests with missing replies occupy the window.
            if ledger.waits_for_answers(&leaving.key) {
                self.unanswered.insert(leaving.key);
            } else if ledger.is_open(&leaving.key) {
                if self.unconfirmed.is_empty() {
                    self.confirm_ns = now + CONFIRM_NS;
                }
                self.unconfirmed.push_back((leaving.to, leaving.key));
            }
            ledger.taken(&leaving.key, now, out);
        }
        if now >= self.confirm_ns {
            self.confirm(now, ledger, out);
        }
    }

    /// Records the messages without a reply that the peer's kernel has acknowledged; none if the kernel does
    /// not state how many bytes are outstanding.
    pub fn confirm(&mut self, now: i64, ledger: &mut Ledger, out: &mut Vec<u8>) {
        self.confirm_ns = now + CONFIRM_NS;
        let Some(socket) = self
            .socket
            .as_ref()
            .filter(|_| !self.unconfirmed.is_empty())
        else {
            return;
        };
        // If the kernel does not report the number, no byte counts as acknowledged.
        let outstanding = socket::outstanding(socket).unwrap_or(self.written);
        let acknowledged = self.written.saturating_sub(outstanding);
        while let Some((_, key)) = self.unconfirmed.pop_front_if(|(to, _)| *to <= acknowledged) {
            ledger.confirmed(&key, now, out);
        }
    }
}
