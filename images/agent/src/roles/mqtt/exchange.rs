//! Bytes and packets between the line and the protocol's state machine, and the timers that it asks for.

use super::{Mqtt, packets, session};
use crate::os::Res;
use crate::roles::broker_client::Line;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{Event, TimerKind};
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Packet};

impl Mqtt {
    pub(super) fn fire_timers(&mut self, line: &mut Line, now: i64, out: &mut Vec<u8>) -> Res<()> {
        while let Some(i) = self.timers.iter().position(|(_, at)| now >= *at) {
            let (kind, _) = self.timers.swap_remove(i);
            if kind == TimerKind::PingrespRecv {
                line.trouble = Some("no PINGRESP in time".to_owned());
            }
            let events = self.conn.notify_timer_fired(kind);
            self.apply(events, line, now, out)?;
        }
        Ok(())
    }

    pub(super) fn send(
        &mut self,
        packet: Packet,
        line: &mut Line,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let events = self.conn.send(packet);
        self.apply(events, line, now, out)
    }

    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        line: &mut Line,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let mut cursor = Cursor::new(bytes);
        while (cursor.position() as usize) < bytes.len() {
            let events = session::receive(&mut self.conn, &mut cursor)?;
            self.apply(events, line, now, out)?;
        }
        Ok(())
    }

    /// Carries out what the state machine asks for, then writes. Where a packet ends the connection, what came after
    /// it must not reach the next.
    fn apply(
        &mut self,
        events: Vec<Event>,
        line: &mut Line,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        let mut close = false;
        for event in events {
            match event {
                Event::RequestSendPacket { packet, .. } => self.emit(&packet, line),
                Event::NotifyPacketReceived(packet) => self.on_packet(packet, line, now, out)?,
                Event::RequestTimerReset { kind, duration_ms } => {
                    self.timers.retain(|(k, _)| *k != kind);
                    self.timers
                        .push((kind, now + duration_ms as i64 * 1_000_000));
                }
                Event::RequestTimerCancel(kind) => self.timers.retain(|(k, _)| *k != kind),
                Event::NotifyError(e) => line.trouble = Some(format!("{e:?}")),
                Event::RequestClose => close = true,
                Event::NotifyPacketIdReleased(_) => {}
            }
        }
        line.write(&mut self.output, now, out);
        if close {
            return Err("protocol".to_owned());
        }
        Ok(())
    }

    pub(super) fn emit(&mut self, packet: &Packet, line: &mut Line) {
        self.output
            .extend_from_slice(&packet.to_continuous_buffer());
        if let Some(id) = packets::outgoing_publish(packet) {
            line.delivery.emitted(id.map(u64::from), self.output.len());
        }
    }
}
