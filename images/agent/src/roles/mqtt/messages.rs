//! Handles the broker's packets, and passes queued messages to the protocol.

use super::packets::{self, Meaning};
use super::{Mqtt, identifiers, sparkplug};
use crate::os::Res;
use crate::payload::{self, Purpose};
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
                self.subscribing = self.subscribing.saturating_sub(1);
                if self.subscribing == 0 {
                    self.subscribed = true;
                    link.note("subscribed", now, "", out);
                    self.change_subscription(link, now, out)?;
                }
            }
            Meaning::Unsubscribed => {
                self.subscribed = false;
                link.note("unsubscribed", now, "", out);
                self.change_subscription(link, now, out)?;
            }
            Meaning::UnsubscribeRefused(why) => {
                let text = format!("unsubscription refused: {why}");
                link.note("failed", now, &text, out);
            }
            Meaning::SubscribeRefused(why) => {
                let text = format!("subscription refused: {why}");
                link.note("failed", now, &text, out);
            }
            Meaning::Message {
                dup,
                retained,
                topic,
                identity,
                identifiers,
                exchange,
                payload,
            } => {
                if let Some(why) = identifiers::fault(&self.spec.subscribe, &topic, &identifiers) {
                    link.note("misidentified", now, &why, out);
                }
                if let Some((request, by)) = self.own_reply(&topic, &exchange) {
                    link.replied(dup, &request, by, now, out);
                    return Ok(());
                }
                let who = identity.or_else(|| payload::read(&payload));
                let who = who.filter(|who| who.purpose != Purpose::Reply); // to another client
                let is_will = || who.is_none() && self.spec.wills.contains(&topic);
                if retained {
                    link.note("retained", now, &topic, out);
                } else if let Some(what) = sparkplug::certificate(&topic) {
                    link.note(what, now, &topic, out);
                } else if is_will() {
                    link.note("will", now, &topic, out);
                } else {
                    link.received(dup, who, now, out);
                    self.reply(exchange, link, now, out)?;
                }
            }
            Meaning::Settled { id, taken, why } => {
                if !taken {
                    link.note("refused", now, &why, out);
                }
                if !self.replies.settled(id) {
                    link.delivery.settled(id.into(), taken, now, out);
                }
            }
            // The state machine accepts no more input, so the connection ends now.
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
        self.accepted_once = true;
        link.ready();
        let detail = if session {
            "session present"
        } else {
            "new session"
        };
        link.welcome(detail, now, out);
        if !session {
            self.replies.session_lost();
            link.delivery.session_lost(out);
        }
        self.be_born(link, now, out)?;
        if !session && !self.pauses.is_empty() {
            self.subscribed = false;
        }
        if self.spec.subscribe.is_empty() && self.spec.response_topic().is_none() {
            return Ok(());
        }
        if (session && self.subscribed) || !self.pauses.wants(now) {
            return self.change_subscription(link, now, out);
        }
        self.subscribe(link, now, out)
    }

    /// Subscribes or unsubscribes the client if its subscription differs from the plan. Does nothing without
    /// planned times or a connection; the answer to an open request calls it again.
    pub(super) fn change_subscription(
        &mut self,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let wanted = self.pauses.wants(now);
        if self.pauses.is_empty() || !link.is_up() || wanted == self.subscribed {
            return Ok(());
        }
        if wanted {
            return self.subscribe(link, now, out);
        }
        let packet = self
            .conn
            .acquire_packet_id()
            .map_err(|e| format!("{e:?}"))
            .and_then(|id| packets::unsubscribe(self.version, id, &self.spec));
        match packet {
            Ok(packet) => {
                link.note("unsubscribing", now, "", out);
                self.send(packet, link, now, out)?;
            }
            Err(text) => link.note("failed", now, &text, out),
        }
        Ok(())
    }

    /// Subscribes to all topics, and to the replies to the client's own requests, with one packet for each
    /// subscription identifier.
    fn subscribe(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let mut made = Vec::new();
        for wanted in self.spec.packets_of_subscriptions() {
            let id = self.conn.acquire_packet_id();
            let packet = id.map_err(|e| format!("{e:?}"));
            made.push(packet.and_then(|id| packets::subscribe(self.version, id, &wanted)));
        }
        if let Some(one) = self.spec.response_subscription() {
            let id = self.conn.acquire_packet_id();
            let packet = id.map_err(|e| format!("{e:?}"));
            made.push(packet.and_then(|id| packets::subscribe(self.version, id, &[&one])));
        }
        for packet in made {
            match packet {
                Ok(packet) => {
                    self.subscribing += 1;
                    self.send(packet, link, now, out)?;
                }
                Err(text) => link.note("failed", now, &text, out),
            }
        }
        Ok(())
    }

    /// Passes queued messages to the state machine while the client may publish, the window is open and the
    /// output is shorter than `BACKLOG_BYTES`. A message that the machine refuses is recorded as unsent.
    pub(super) fn publish(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        self.send_replies(link, now, out)?;
        while link.is_up() && self.output.len() < BACKLOG_BYTES {
            let Some(settings) = &self.spec.publish else {
                break;
            };
            let Some((who, mut body)) = link.delivery.next() else {
                break;
            };
            if let Some(content) = &settings.content {
                body = content.fill(&who, link.delivery.payload_bytes());
            }
            if settings.sparkplug.is_some() {
                self.numbers.stamp(&mut body);
            }
            let id = if settings.qos > 0 {
                self.conn.acquire_packet_id().ok()
            } else {
                None
            };
            let sent = match packets::publish(self.version, id, settings, &who, body) {
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
