//! Moves bytes and packets between the link and the protocol's state machine, and runs its timers.

use super::{Mqtt, packets, session, websocket};
use crate::os::Res;
use crate::roles::broker_client::Link;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{Event, TimerKind};
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Packet};

impl Mqtt {
    pub(super) fn fire_timers(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        while let Some(i) = self.timers.iter().position(|(_, at)| now >= *at) {
            let (kind, _) = self.timers.swap_remove(i);
            if kind == TimerKind::PingrespRecv {
                link.error = Some("no PINGRESP in time".to_owned());
            }
            let events = self.conn.notify_timer_fired(kind);
            self.apply(events, link, now, out)?;
        }
        Ok(())
    }

    pub(super) fn send(
        &mut self,
        packet: Packet,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let events = self.conn.send(packet);
        self.apply(events, link, now, out)
    }

    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let mut cursor = Cursor::new(bytes);
        while (cursor.position() as usize) < bytes.len() {
            let events = session::receive(&mut self.conn, &mut cursor)?;
            self.apply(events, link, now, out)?;
        }
        Ok(())
    }

    /// Carries out the state machine's requests, then writes the output. Returns an error if the connection
    /// must end; the caller then discards the rest of the received bytes, which must not reach the next
    /// connection.
    fn apply(
        &mut self,
        events: Vec<Event>,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let mut close = false;
        for event in events {
            match event {
                Event::RequestSendPacket { packet, .. } => self.emit(&packet, link)?,
                Event::NotifyPacketReceived(packet) => self.on_packet(packet, link, now, out)?,
                Event::RequestTimerReset { kind, duration_ms } => {
                    self.timers.retain(|(k, _)| *k != kind);
                    self.timers
                        .push((kind, now + duration_ms as i64 * 1_000_000));
                }
                Event::RequestTimerCancel(kind) => self.timers.retain(|(k, _)| *k != kind),
                Event::NotifyError(e) => link.error = Some(format!("{e:?}")),
                Event::RequestClose => close = true,
                Event::NotifyPacketIdReleased(_) => {}
            }
        }
        link.write(&mut self.output, now, out);
        if close {
            return Err("protocol".to_owned());
        }
        Ok(())
    }

    /// Appends a packet to the output, in a WebSocket as one frame, and records a PUBLISH in the ledger.
    pub(super) fn emit(&mut self, packet: &Packet, link: &mut Link) -> Res<()> {
        let bytes = packet.to_continuous_buffer();
        if self.websocket.is_some() {
            websocket::packet(&bytes, &mut self.output)?;
        } else {
            self.output.extend_from_slice(&bytes);
        }
        if let Some(id) = packets::outgoing_publish(packet) {
            link.delivery.emitted(id.map(u64::from), self.output.len());
        }
        Ok(())
    }
}
