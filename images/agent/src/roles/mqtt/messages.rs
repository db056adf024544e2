//! What a client does on the broker's packets, and which messages it hands to the protocol when.

use super::packets::{self, Meaning};
use super::{Client, State};
use crate::{payload, records};
use mqtt_protocol_core::mqtt::packet::Packet;

/// QoS 0 messages wait in the queue, not in the socket's buffer, once so much is unsent.
const BACKLOG_BYTES: usize = 65_536;

impl Client {
    pub(super) fn on_packet(&mut self, packet: Packet, now: i64, out: &mut Vec<u8>) {
        match packets::understand(packet) {
            Meaning::Accepted { session, window } => {
                self.delivery.set_window(window);
                self.on_accepted(session, now, out);
            }
            Meaning::Refused(why) => self.lost(&format!("refused: {why}"), now, out),
            Meaning::Subscribed => {
                self.subscribed = true;
                records::session(out, &self.session.endpoint, "subscribed", now, "");
            }
            Meaning::SubscribeRefused(why) => {
                records::session(
                    out,
                    &self.session.endpoint,
                    "failed",
                    now,
                    &format!("subscription refused: {why}"),
                );
            }
            Meaning::Message { dup, payload } => self.on_message(dup, &payload, now, out),
            Meaning::Settled { id, taken } => self.delivery.settled(id.into(), taken, now, out),
            // The state machine takes nothing more from here on; the end of the stream is not waited for.
            Meaning::Closing(why) => self.lost(&why, now, out),
            Meaning::Nothing => {}
        }
    }

    fn on_accepted(&mut self, session: bool, now: i64, out: &mut Vec<u8>) {
        self.state = State::Up;
        let detail = if session {
            "session present"
        } else {
            "new session"
        };
        records::session(out, &self.session.endpoint, "connected", now, detail);
        if !session {
            self.delivery.session_lost(out);
        }
        if self.spec.subscribe.is_empty() || (session && self.subscribed) {
            return;
        }
        let packet = self
            .conn
            .acquire_packet_id()
            .map_err(|e| format!("{e:?}"))
            .and_then(|id| packets::subscribe(self.version, id, &self.spec));
        match packet {
            Ok(packet) => self.send(packet, now, out),
            Err(text) => records::session(out, &self.session.endpoint, "failed", now, &text),
        }
    }

    fn on_message(&mut self, dup: bool, bytes: &[u8], now: i64, out: &mut Vec<u8>) {
        match payload::read(bytes) {
            Some(who) => {
                self.totals.received += 1;
                records::received(out, who.flow, who.seq, &self.session.endpoint, 0, now, dup);
            }
            None => self.totals.foreign += 1,
        }
    }

    /// Hands queued messages to the protocol while the window is open.
    pub(super) fn pump(&mut self, now: i64, out: &mut Vec<u8>) {
        while self.state == State::Up && self.output.len() < BACKLOG_BYTES {
            let Some(body) = self.delivery.next() else {
                return;
            };
            let level = self.spec.publish.as_ref().map_or(0, |p| p.qos);
            let id = if level > 0 {
                self.conn.acquire_packet_id().ok()
            } else {
                None
            };
            let topic = self.spec.publish.as_ref().map_or("", |p| p.topic.as_str());
            match packets::publish(self.version, id, level, topic, body) {
                Ok(packet) => self.send(packet, now, out),
                Err(text) => records::session(out, &self.session.endpoint, "failed", now, &text),
            }
            self.delivery.refused(out);
        }
    }
}
