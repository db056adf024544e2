//! Handles the broker's packets, and passes queued messages to the protocol.

use super::Mqtt;
use super::packets::{self, Meaning};
use crate::os::Res;
use crate::roles::broker_client::Link;
use crate::roles::socket::BACKLOG_BYTES;
use mqtt_protocol_core::mqtt::packet::Packet;

impl Mqtt {
    pub(super) fn on_packet(
        &mut self,
        packet: Packet,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        match packets::understand(packet) {
            Meaning::Accepted { session, window } => {
                link.delivery.set_window(window);
                self.on_accepted(session, link, now, out)?;
            }
            Meaning::Refused(why) => return Err(format!("refused: {why}")),
            Meaning::Subscribed => {
                self.subscribed = true;
                link.note("subscribed", now, "", out);
            }
            Meaning::SubscribeRefused(why) => {
                let text = format!("subscription refused: {why}");
                link.note("failed", now, &text, out);
            }
            Meaning::Message { dup, payload } => link.received(dup, &payload, now, out),
            Meaning::Settled { id, taken } => link.delivery.settled(id.into(), taken, now, out),
            // The state machine accepts no more input, so end the connection now.
            Meaning::Closing(why) => return Err(why),
            Meaning::Nothing => {}
        }
        Ok(())
    }

    fn on_accepted(
        &mut self,
        session: bool,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        link.ready();
        let detail = if session {
            "session present"
        } else {
            "new session"
        };
        link.welcome(detail, now, out);
        if !session {
            link.delivery.session_lost(out);
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
            Ok(packet) => self.send(packet, link, now, out)?,
            Err(text) => link.note("failed", now, &text, out),
        }
        Ok(())
    }

    /// Passes queued messages to the state machine while the window is open.
    pub(super) fn publish(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        while link.is_up() && self.output.len() < BACKLOG_BYTES {
            let Some(body) = link.delivery.next() else {
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
                Ok(packet) => self.send(packet, link, now, out),
                Err(text) => {
                    link.note("failed", now, &text, out);
                    Ok(())
                }
            };
            link.delivery.refused(out);
            sent?;
        }
        Ok(())
    }
}
