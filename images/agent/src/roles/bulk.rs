//! Implements bulk transfer, as by iperf3: a sender (TCP at full speed or at a rate, over several streams,
//! or UDP at a rate) and a receiver. Both record their progress each second.

mod pace;
mod sender;
mod sink;
mod stream;
mod tcp_info;

use super::Role;
use super::peers::Peer;
use super::socket::Marks;
use crate::os::Res;
use crate::proto::{self, Item, Session, Totals};
use crate::records;
use crate::roles::earliest;
use sender::Sender;
use serde::Deserialize;
use sink::Sink;
use std::os::fd::RawFd;

const SECOND_NS: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Protocol {
    #[default]
    Tcp,
    Udp,
}

#[derive(Debug, Deserialize)]
struct Spec {
    listen: Option<u16>,
    /// The receiver. The list has exactly one, and is empty at the receiver itself.
    #[serde(default)]
    to: Vec<Peer>,
    #[serde(default)]
    protocol: Protocol,
    /// TCP's congestion control; None: the kernel's default.
    congestion: Option<String>,
    #[serde(flatten)]
    marks: Marks,
    /// Whether the node has IPv6 addresses.
    #[serde(default)]
    ipv6: bool,
    #[serde(default = "one")]
    streams: usize,
    /// Payload rate of all streams together in bits per second; None: as fast as possible.
    rate_bps: Option<u64>,
    /// Payload of a datagram in bytes; None for TCP.
    size: Option<usize>,
    /// Bytes to send; None: as many as possible until the flow's end.
    volume_bytes: Option<u64>,
    #[serde(default)]
    start_ns: i64,
    #[serde(default)]
    stop_ns: i64,
    /// Interval between records of the congestion window; None: no such records.
    window_ns: Option<i64>,
}

fn one() -> usize {
    1
}

/// Cumulative progress of a flow; a figure is None if it is unknown.
#[derive(Debug, Default)]
struct Progress {
    bytes: u64,
    packets: Option<u64>,
    lost: Option<u64>,
    retransmits: Option<u64>,
    rtt_ns: Option<u64>,
}

pub struct Bulk {
    session: Session,
    sender: Option<Sender>,
    sink: Option<Sink>,
    t0_ns: Option<i64>,
    /// The time of the next record of progress, in Unix nanoseconds.
    report_ns: i64,
    /// Interval between records of congestion windows; None: no such records.
    window_ns: Option<i64>,
    /// The time of the next records of congestion windows, in Unix nanoseconds.
    sample_ns: i64,
    /// Whether the start of the session is recorded.
    begun: bool,
    over: bool,
}

/// Creates the role of an item of `workload`, a sender, a receiver or both; binds the receiver's sockets. An
/// error if the settings are invalid or the port cannot be bound.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    Ok(Box::new(Bulk::new(item)?))
}

impl Bulk {
    fn new(item: Item) -> Res<Self> {
        let mut spec: Spec = proto::parse("spec", item.software.spec)?;
        // After a restart the sender does not catch up for the time when the machine was off.
        let resume_ns = item.resume.values().map(|resume| resume.begins_ns).max();
        spec.start_ns = spec.start_ns.max(resume_ns.unwrap_or(0));
        let sink = spec
            .listen
            .map(|port| Sink::bind(port, spec.ipv6))
            .transpose()?;
        let window_ns = spec.window_ns.filter(|every| *every > 0);
        let sender = match (spec.to.as_slice(), item.flows.as_slice()) {
            ([], []) => None,
            ([to], [flow]) => Some(Sender::new(to.clone(), flow.number, spec)?),
            (to, flows) => {
                let (count, peers) = (flows.len(), to.len());
                return Err(format!(
                    "to: write one receiver and one flow, not {peers} and {count}"
                ));
            }
        };
        Ok(Self {
            session: item.software.session,
            sender,
            sink,
            t0_ns: None,
            report_ns: i64::MAX,
            window_ns,
            sample_ns: 0,
            begun: false,
            over: false,
        })
    }

    /// Records the cumulative progress of the sender's flow, if it has begun, and of the receiver's flows
    /// that have received data since the last record.
    fn report(&mut self, now: i64, out: &mut Vec<u8>) {
        let endpoint = &self.session.endpoint;
        if let Some((flow, progress)) = self.sender.as_mut().and_then(Sender::take_progress) {
            record(out, (flow, endpoint, 0), now, &progress);
        }
        for (flow, progress) in self
            .sink
            .as_mut()
            .map(Sink::take_progress)
            .unwrap_or_default()
        {
            record(out, (flow, endpoint, 1), now, &progress);
        }
    }

    /// Records the congestion windows of an active sender if that is due, at multiples of the interval from
    /// t0.
    fn sample(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        let (Some(every), Some(sender)) = (self.window_ns, &self.sender) else {
            return;
        };
        if !sender.active() || now < self.sample_ns {
            return;
        }
        let whose = (sender.flow(), self.session.endpoint.as_str());
        for (stream, window) in sender.windows() {
            records::window(out, whose, stream, now, &window);
        }
        self.sample_ns = now - (now - t0) % every + every;
    }

    fn note(&mut self, now: i64, out: &mut Vec<u8>) {
        for (what, detail) in self
            .sender
            .as_mut()
            .map(|s| std::mem::take(&mut s.changes))
            .unwrap_or_default()
        {
            self.session.record(what, now, &detail, out);
        }
        if let Some(text) = self.sink.as_mut().and_then(|sink| sink.error.take()) {
            self.session.record("failed", now, &text, out);
        }
    }

    /// Returns when the session of a sender ends, in Unix nanoseconds; None for a receiver, which listens
    /// until `finish`, before `go`, and after the end.
    fn end_ns(&self) -> Option<i64> {
        let leaves = !self.over && self.sink.is_none();
        self.t0_ns
            .filter(|_| leaves)
            .map(|t0| t0 + self.session.disconnect_ns)
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        let was_there = self.t0_ns.is_some() && (self.sink.is_some() || self.connected());
        self.over = true;
        self.report(now, out);
        if let Some(text) = self.sink.as_ref().and_then(Sink::overrun) {
            self.session.record("failed", now, &text, out);
        }
        if was_there {
            self.session.record("disconnected", now, "as planned", out);
        }
        (self.sender, self.sink) = (None, None);
    }
}

fn record(
    out: &mut Vec<u8>,
    (flow, endpoint, leg): (u32, &str, u8),
    at_ns: i64,
    progress: &Progress,
) {
    let Progress {
        bytes,
        packets,
        lost,
        retransmits,
        rtt_ns,
    } = progress;
    let counts = [*packets, *lost, *retransmits, *rtt_ns];
    records::progress(out, flow, endpoint, leg, at_ns, *bytes, counts);
}

impl Role for Bulk {
    fn go(&mut self, t0_ns: i64) {
        if self.t0_ns.is_none() {
            self.t0_ns = Some(t0_ns);
            self.report_ns = t0_ns;
            if let Some(sender) = &mut self.sender {
                sender.go(t0_ns, t0_ns + self.session.connect_ns);
            }
        }
    }

    fn connected(&self) -> bool {
        !self.over && self.sender.as_ref().is_none_or(Sender::connected)
    }

    fn totals(&self) -> Totals {
        Totals {
            foreign: self.sink.as_ref().map_or(0, |sink| sink.foreign),
            pending: self.sender.as_ref().map_or(0, Sender::pending),
            ..Totals::default()
        }
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        if let Some(sender) = &self.sender {
            sender.fds(wait_for);
        }
        if let Some(sink) = &self.sink {
            sink.fds(wait_for);
        }
    }

    fn deadline(&self) -> Option<i64> {
        self.t0_ns?;
        let sender = self.sender.as_ref().and_then(Sender::deadline);
        let moves = self.sink.as_ref().is_some_and(Sink::has_progress)
            || self.sender.as_ref().is_some_and(Sender::active);
        let report = (moves && !self.over).then_some(self.report_ns);
        let samples = self.sender.as_ref().is_some_and(Sender::active) && !self.over;
        let sample = self.window_ns.filter(|_| samples).map(|_| self.sample_ns);
        earliest([sender, report, sample, self.end_ns()])
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        let begun = std::mem::replace(&mut self.begun, true);
        if let Some(sink) = self.sink.as_ref().filter(|_| !begun) {
            self.session.record("listening", sink.bound_ns, "", out);
        }
        let ended = self
            .sender
            .as_mut()
            .is_some_and(|sender| sender.on_time(now));
        self.note(now, out);
        self.sample(t0, now, out);
        if now >= self.report_ns || ended {
            self.report(now, out);
            self.report_ns = now - (now - t0) % SECOND_NS + SECOND_NS;
        }
        if self.end_ns().is_some_and(|end| now >= end) {
            self.leave(now, out);
        }
    }

    fn on_ready(&mut self, fd: RawFd, _revents: i16, now: i64, out: &mut Vec<u8>) {
        if let Some(sender) = &mut self.sender {
            sender.on_ready(fd, now);
        }
        if self.sink.as_mut().is_some_and(|sink| sink.on_ready(fd)) {
            // The last interval ends here.
            self.report(now, out);
        }
        self.note(now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        self.leave(now, out);
    }
}

#[cfg(test)]
mod tests;
