//! Bytes and packets between the socket and the protocol's state machine, and the timers that it asks for.

use super::{Client, packets};
use crate::clock;
use crate::os;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{Event, TimerKind};
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Packet};
use std::os::fd::AsRawFd;

impl Client {
    /// Handles the socket's readiness.
    pub(super) fn on_socket(&mut self, revents: i16, now: i64, out: &mut Vec<u8>) {
        if !self.established && !self.establish(now, out) {
            return;
        }
        if revents & libc::POLLOUT != 0 {
            self.write(now, out);
        }
        if revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
            self.read(now, out);
        }
        self.pump(now, out);
    }

    pub(super) fn fire_timers(&mut self, now: i64, out: &mut Vec<u8>) {
        while let Some(i) = self.timers.iter().position(|(_, at)| now >= *at) {
            let (kind, _) = self.timers.swap_remove(i);
            if kind == TimerKind::PingrespRecv {
                self.closing = Some("no PINGRESP in time".to_owned());
            }
            let events = self.conn.notify_timer_fired(kind);
            self.apply(events, now, out);
        }
    }

    pub(super) fn send(&mut self, packet: Packet, now: i64, out: &mut Vec<u8>) {
        let events = self.conn.send(packet);
        self.apply(events, now, out);
    }

    fn read(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(fd) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        let mut chunk = [0u8; 16_384];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.lost("closed by the broker", now, out),
            // The process may have waited for a CPU before the read: what came in meanwhile is dated after it.
            Ok(n) => self.take(&chunk[..n], clock::lab_ns().max(now), out),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => self.lost(&e.to_string(), now, out),
        }
    }

    fn take(&mut self, bytes: &[u8], now: i64, out: &mut Vec<u8>) {
        let mut cursor = Cursor::new(bytes);
        while (cursor.position() as usize) < bytes.len() && self.socket.is_some() {
            let events = self.conn.recv(&mut cursor);
            self.apply(events, now, out);
        }
    }

    /// Carries out what the state machine asks for, then writes.
    fn apply(&mut self, events: Vec<Event>, now: i64, out: &mut Vec<u8>) {
        let mut close = false;
        for event in events {
            if self.socket.is_none() {
                // A packet before this event ended the connection: what was meant for it must not reach the next.
                return;
            }
            match event {
                Event::RequestSendPacket { packet, .. } => self.emit(&packet),
                Event::NotifyPacketReceived(packet) => self.on_packet(packet, now, out),
                Event::RequestTimerReset { kind, duration_ms } => {
                    self.timers.retain(|(k, _)| *k != kind);
                    self.timers
                        .push((kind, now + duration_ms as i64 * 1_000_000));
                }
                Event::RequestTimerCancel(kind) => self.timers.retain(|(k, _)| *k != kind),
                Event::NotifyError(e) => self.closing = Some(format!("{e:?}")),
                Event::RequestClose => close = true,
                Event::NotifyPacketIdReleased(_) => {}
            }
        }
        self.write(now, out);
        if close && self.socket.is_some() {
            let why = self.closing.take().unwrap_or_else(|| "protocol".to_owned());
            self.lost(&why, now, out);
        }
    }

    pub(super) fn emit(&mut self, packet: &Packet) {
        self.output
            .extend_from_slice(&packet.to_continuous_buffer());
        if let Some(id) = packets::outgoing_publish(packet) {
            self.delivery.emitted(id.map(u64::from), self.output.len());
        }
    }

    /// Writes what the socket takes and learns which messages have left.
    pub(super) fn write(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(fd) = self
            .socket
            .as_ref()
            .filter(|_| self.established)
            .map(AsRawFd::as_raw_fd)
        else {
            return;
        };
        while !self.output.is_empty() {
            match os::write(fd, &self.output) {
                Ok(n) => {
                    self.output.drain(..n);
                    self.delivery.written(n, now, out);
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                // The read that follows learns of the broken connection and says why.
                Err(_) => return,
            }
        }
        self.output = Vec::new();
    }
}
