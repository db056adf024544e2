//! Implements a station (PMU): it measures at the times of its flow's schedule, and sends each measurement
//! to all concentrators that have turned data on.

use super::frame::{self, Command, Kind, Station};
use super::stream::Stream;
use super::{Spec, Transport};
use crate::clock;
use crate::os::Res;
use crate::proto::{Item, Session, Totals};
use crate::records::{Message, Outcome};
use crate::roles::Role;
use crate::roles::datagrams::{self, Ends};
use crate::roles::sends::Sends;
use crate::roles::socket::{self, Marks};
use std::io::{self, ErrorKind};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// The most concentrators; the limit protects against foreign programs that open many connections.
const MOST_CONSUMERS: usize = 1000;
/// The longest datagram in bytes.
const LONGEST: usize = 65_535;

enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

enum Channel {
    Tcp(Stream),
    Udp(Ends),
}

/// A concentrator that has connected over TCP, or that has sent a command over UDP.
struct Consumer {
    channel: Channel,
    wants_data: bool,
}

pub struct Pmu {
    session: Session,
    station: Station,
    sends: Sends,
    rates: Vec<(i64, f64)>,
    listener: Listener,
    marks: Marks,
    consumers: Vec<Consumer>,
    opened_ns: i64,
    t0_ns: Option<i64>,
    listening: bool,
    counts: Totals,
    output: Vec<u8>,
}

impl Pmu {
    pub fn new(item: Item, spec: Spec) -> Res<Self> {
        let session = item.software.session.clone();
        let station = spec
            .station
            .ok_or("spec: station: missing; write its measurements")?;
        let [flow]: [_; 1] = item.flows.try_into().map_err(|flows: Vec<_>| {
            format!("flows: {}; a station has one, its data", flows.len())
        })?;
        if flow.payload.bytes != station.data_bytes() {
            return Err(format!(
                "flow {}: payload.bytes: {}; a data frame has {}",
                flow.number,
                flow.payload.bytes,
                station.data_bytes()
            ));
        }
        let rates = flow
            .schedule
            .iter()
            .flat_map(|schedule| schedule.rates.iter().map(|step| (step.from_ns, step.per_s)))
            .collect();
        let resume = item.resume.get(&flow.number).cloned();
        let port = spec.listen.unwrap_or_default();
        let listener = open(spec.transport, port, spec.marks, spec.ipv6)
            .map_err(|e| format!("listen: port {port}: {e}; choose another"))?;
        Ok(Self {
            sends: Sends::with_own_encoding(flow, &session, resume)?,
            session,
            station,
            rates,
            listener,
            marks: spec.marks,
            consumers: Vec::new(),
            opened_ns: clock::lab_ns(),
            t0_ns: None,
            listening: false,
            counts: Totals::default(),
            output: Vec::new(),
        })
    }

    fn raw(&self) -> RawFd {
        match &self.listener {
            Listener::Tcp(listener) => listener.as_raw_fd(),
            Listener::Udp(socket) => socket.as_raw_fd(),
        }
    }

    fn accept(&mut self, now: i64, out: &mut Vec<u8>) {
        let Listener::Tcp(listener) = &self.listener else {
            return;
        };
        loop {
            let accepted = listener.accept().and_then(|(socket, _)| {
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
                socket::mark(&socket, self.marks)?;
                Ok(socket)
            });
            match accepted {
                Ok(socket) if self.consumers.len() < MOST_CONSUMERS => {
                    self.consumers.push(Consumer {
                        channel: Channel::Tcp(Stream::new(socket)),
                        wants_data: false,
                    })
                }
                Ok(_) => self.counts.foreign += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(e) => return self.session.record("failed", now, &e.to_string(), out),
            }
        }
    }

    fn datagrams(&mut self, now: i64) {
        let mut bytes = vec![0; LONGEST];
        loop {
            let Listener::Udp(socket) = &self.listener else {
                return;
            };
            let Ok((n, ends)) = datagrams::receive(socket, &mut bytes) else {
                return;
            };
            let Some(word) = self.command(&bytes[..n]) else {
                self.counts.foreign += 1;
                continue;
            };
            let same = |one: &Consumer| matches!(one.channel, Channel::Udp(known) if known == ends);
            let place = self.consumers.iter().position(same).or_else(|| {
                (self.consumers.len() < MOST_CONSUMERS).then(|| {
                    self.consumers.push(Consumer {
                        channel: Channel::Udp(ends),
                        wants_data: false,
                    });
                    self.consumers.len() - 1
                })
            });
            if let Some(place) = place {
                self.execute(place, word, now);
            }
        }
    }

    /// Decodes a command to this station; None for any other frame.
    fn command(&self, bytes: &[u8]) -> Option<Command> {
        let frame = frame::read(bytes).ok()?;
        let ours = frame.kind == Kind::Command && frame.idcode == self.station.idcode;
        frame::command_of(frame.content).filter(|_| ours)
    }

    fn execute(&mut self, place: usize, word: Command, now: i64) {
        let mut answer = std::mem::take(&mut self.output);
        answer.clear();
        match word {
            Command::Off => self.consumers[place].wants_data = false,
            Command::On => self.consumers[place].wants_data = true,
            Command::SendHeader => self.station.header(now, &mut answer),
            Command::SendConfiguration1 => {
                self.station
                    .configuration(Kind::Configuration1, self.rate(now), now, &mut answer);
            }
            Command::SendConfiguration2 => {
                self.station
                    .configuration(Kind::Configuration2, self.rate(now), now, &mut answer);
            }
        }
        if !answer.is_empty() {
            _ = send(&self.listener, &mut self.consumers[place], &answer); // the next read finds a closed connection
        }
        self.output = answer;
    }

    /// Returns the present rate of the schedule in data frames a second; a negative number means seconds per
    /// frame, and 0 means no rate.
    fn rate(&self, now: i64) -> i16 {
        let at = now - self.t0_ns.unwrap_or(now);
        let step = self.rates.iter().rev().find(|(from, _)| *from <= at);
        match step.or(self.rates.first()).map_or(0.0, |(_, per_s)| *per_s) {
            0.0 => 0,
            per_s if per_s < 1.0 => -(1.0 / per_s).round().min(f64::from(i16::MAX)) as i16,
            per_s => per_s.round().min(f64::from(i16::MAX)) as i16,
        }
    }

    /// Reads and executes commands from a connection, and sends waiting output if the connection is writable;
    /// returns false when the connection has ended.
    fn serve(&mut self, place: usize, revents: i16, now: i64) -> bool {
        let mut commands = Vec::new();
        let Channel::Tcp(stream) = &mut self.consumers[place].channel else {
            return true;
        };
        if revents & libc::POLLOUT != 0 && stream.flush().is_err() {
            return false;
        }
        let received = stream.receive(|bytes| commands.push(bytes.to_vec()));
        for bytes in commands {
            match self.command(&bytes) {
                Some(word) => self.execute(place, word, now),
                None => self.counts.foreign += 1,
            }
        }
        received.is_ok()
    }

    fn send_due(&mut self, t0: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(mut message) = self.sends.take_due(t0, now, out) {
            let outcome = self.measure(&mut message);
            self.counts.sent += u64::from(outcome == Outcome::Sent);
            self.counts.dropped += u64::from(outcome == Outcome::Dropped);
            self.sends.record(out, &message, 0, outcome);
        }
    }

    /// Sends a measurement to all concentrators that have turned data on; returns the outcome: `Sent` if at
    /// least one socket has accepted it, `Dropped` if no socket has, `Unsent` if there are no such
    /// concentrators.
    fn measure(&mut self, message: &mut Message) -> Outcome {
        let mut wanted = false;
        self.output.clear();
        self.station
            .data(message.seq, message.scheduled_ns, &mut self.output);
        for consumer in self.consumers.iter_mut().filter(|one| one.wants_data) {
            wanted = true;
            if send(&self.listener, consumer, &self.output) {
                message.attempts = 1;
            }
        }
        if message.attempts == 0 {
            return if wanted {
                Outcome::Dropped
            } else {
                Outcome::Unsent
            };
        }
        message.sent_ns = clock::lab_ns();
        Outcome::Sent
    }

    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        self.sends.stop();
        self.consumers.clear();
        if std::mem::take(&mut self.listening) {
            self.session.record("disconnected", now, "as planned", out);
        }
    }
}

fn open(transport: Transport, port: u16, marks: Marks, ipv6: bool) -> io::Result<Listener> {
    Ok(match transport {
        Transport::Tcp => {
            let listener = TcpListener::bind((socket::any(ipv6), port))?;
            listener.set_nonblocking(true)?;
            Listener::Tcp(listener)
        }
        Transport::Udp => {
            let socket = datagrams::bound(port, ipv6)?;
            socket::mark(&socket, marks)?;
            Listener::Udp(socket)
        }
    })
}

/// Sends a frame to a concentrator; returns whether the socket has accepted it.
fn send(listener: &Listener, consumer: &mut Consumer, frame: &[u8]) -> bool {
    match (&mut consumer.channel, listener) {
        (Channel::Tcp(stream), _) => stream.send(frame).unwrap_or(false),
        (Channel::Udp(ends), Listener::Udp(socket)) => {
            datagrams::answer(socket, frame, *ends).is_ok()
        }
        (Channel::Udp(_), Listener::Tcp(_)) => false,
    }
}

impl Role for Pmu {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn connected(&self) -> bool {
        self.listening
    }

    fn totals(&self) -> Totals {
        Totals {
            scheduled: self.sends.scheduled(),
            ..self.counts
        }
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        wait_for(self.raw(), false);
        for consumer in &self.consumers {
            if let Channel::Tcp(stream) = &consumer.channel {
                wait_for(stream.raw(), stream.waits());
            }
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns?;
        if !self.listening {
            return Some(t0);
        }
        self.sends.next_ns().map(|at| t0 + at)
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else {
            return;
        };
        if !self.listening {
            self.listening = true;
            self.session.record("listening", self.opened_ns, "", out);
        }
        self.send_due(t0, now, out);
    }

    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>) {
        if fd == self.raw() {
            self.accept(now, out);
            self.datagrams(now);
            return;
        }
        let ours =
            |one: &Consumer| matches!(&one.channel, Channel::Tcp(stream) if stream.raw() == fd);
        if let Some(place) = self.consumers.iter().position(ours)
            && !self.serve(place, revents, now)
        {
            self.consumers.swap_remove(place);
        }
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        if let Some(t0) = self.t0_ns {
            self.send_due(t0, now, out);
        }
        self.leave(now, out);
    }
}
