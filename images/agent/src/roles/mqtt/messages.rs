//! What a client does on the broker's packets, and which messages it hands to the protocol when.

use super::Mqtt;
use super::packets::{self, Meaning};
use crate::os::Res;
use crate::roles::broker_client::Line;
use crate::roles::socket::BACKLOG_BYTES;
use mqtt_protocol_core::mqtt::packet::Packet;

impl Mqtt {
    pub(super) fn on_packet(
        &mut self,
        packet: Packet,
        line: &mut Line,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        match packets::understand(packet) {
            Meaning::Accepted { session, window } => {
                line.delivery.set_window(window);
                self.on_accepted(session, line, now, out)?;
            }
            Meaning::Refused(why) => return Err(format!("refused: {why}")),
            Meaning::Subscribed => {
                self.subscribed = true;
                line.note("subscribed", now, "", out);
            }
            Meaning::SubscribeRefused(why) => {
                let text = format!("subscription refused: {why}");
                line.note("failed", now, &text, out);
            }
            Meaning::Message { dup, payload } => line.received(dup, &payload, now, out),
            Meaning::Settled { id, taken } => line.delivery.settled(id.into(), taken, now, out),
            // The state machine takes nothing more from here on; the end of the stream is not waited for.
            Meaning::Closing(why) => return Err(why),
            Meaning::Nothing => {}
        }
        Ok(())
    }

    fn on_accepted(
        &mut self,
        session: bool,
        line: &mut Line,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        line.ready();
        let detail = if session {
            "session present"
        } else {
            "new session"
        };
        line.welcome(detail, now, out);
        if !session {
            line.delivery.session_lost(out);
        }
        if self.spec.subscribe.is_empty() || (session && self.subscribed) {
            return Ok(());
        }
        let packet = self
            .conn
            .acquire_packet_id()
            .map_err(|e| format!("{e:?}"))
            .and_then(|id| packets::subscribe(self.version, id, &self.spec));
        match packet {
            Ok(packet) => self.send(packet, line, now, out)?,
            Err(text) => line.note("failed", now, &text, out),
        }
        Ok(())
    }

    /// Hands queued messages to the state machine while the window is open.
    pub(super) fn publish(&mut self, line: &mut Line, now: i64, out: &mut Vec<u8>) -> Res<()> {
        while line.is_up() && self.output.len() < BACKLOG_BYTES {
            let Some(body) = line.delivery.next() else {
                break;
            };
            let level = self.spec.publish.as_ref().map_or(0, |p| p.qos);
            let id = if level > 0 {
                self.conn.acquire_packet_id().ok()
            } else {
                None
            };
            let topic = self.spec.publish.as_ref().map_or("", |p| p.topic.as_str());
            let sent = match packets::publish(self.version, id, level, topic, body) {
                Ok(packet) => self.send(packet, line, now, out),
                Err(text) => {
                    line.note("failed", now, &text, out);
                    Ok(())
                }
            };
            line.delivery.refused(out);
            sent?;
        }
        Ok(())
    }
}
