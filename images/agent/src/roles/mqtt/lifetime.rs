//! A client's way in and out: connecting with a deadline, what a lost connection leaves behind, and leaving for good.

use super::{Client, State, packets, session};
use crate::records;
use crate::roles::socket;
use mqtt_protocol_core::mqtt::connection::Event;
use std::net::TcpStream;

/// A connection attempt (TCP and CONNACK together) is given up after this time.
const CONNECT_LIMIT_NS: i64 = 10_000_000_000;

impl Client {
    pub(super) fn connect(&mut self, now: i64, out: &mut Vec<u8>) {
        records::session(out, &self.session.endpoint, "connecting", now, "");
        // Latency is measured: small packets leave at once.
        match socket::connect(self.broker, self.spec.port, true, self.spec.marks) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.established = false;
                self.closing = None;
                self.state = State::Connecting(now + CONNECT_LIMIT_NS);
            }
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    pub(super) fn establish(&mut self, now: i64, out: &mut Vec<u8>) -> bool {
        let error = match self.socket.as_ref().map(TcpStream::take_error) {
            Some(Ok(None)) => None,
            Some(Ok(Some(e)) | Err(e)) => Some(e.to_string()),
            None => return false,
        };
        if let Some(text) = error {
            self.lost(&text, now, out);
            return false;
        }
        self.established = true;
        match packets::connect(self.version, &self.session.endpoint, &self.spec) {
            Ok(packet) => self.send(packet, now, out),
            Err(text) => self.lost(&text, now, out),
        }
        self.socket.is_some()
    }

    /// The connection (or the attempt) is over; what follows is the reconnect policy.
    pub(super) fn lost(&mut self, why: &str, now: i64, out: &mut Vec<u8>) {
        let what = if self.state == State::Up {
            "disconnected"
        } else {
            "failed"
        };
        let why = self.closing.take().unwrap_or_else(|| why.to_owned());
        records::session(out, &self.session.endpoint, what, now, &why);
        self.close(out);
        self.state = match self.spec.reconnect_ns {
            0 => State::Over,
            wait => State::Waiting(now + wait),
        };
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.socket = None;
        self.established = false;
        self.output = Vec::new();
        self.timers.clear();
        let keeps = !self.spec.clean_session;
        self.conn = session::carry_over(&self.conn, self.version, self.spec.keepalive_s, keeps);
        self.delivery.connection_lost(out);
    }

    /// Says goodbye and never comes back.
    pub(super) fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        let was_up = self.state == State::Up;
        // From here on a close by the broker is the end that we asked for.
        self.state = State::Over;
        if was_up {
            if let Ok(packet) = packets::disconnect(self.version) {
                let events = self.conn.send(packet);
                for event in events {
                    if let Event::RequestSendPacket { packet, .. } = event {
                        self.emit(&packet);
                    }
                }
                self.write(now, out);
            }
            records::session(
                out,
                &self.session.endpoint,
                "disconnected",
                now,
                "as planned",
            );
        }
        self.close(out);
    }
}
