//! Implements a concentrator (PDC): it requests header, configuration and data from its stations, and
//! records every data frame.

use super::frame::{self, Command, Kind};
use super::stream::Stream;
use super::{Spec, StationAddress, Transport};
use crate::clock;
use crate::os::Res;
use crate::proto::{Item, Session, Totals};
use crate::records;
use crate::roles::Role;
use crate::roles::datagrams;
use crate::roles::socket::{self, CONNECT_LIMIT_NS, Marks};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// Delay before an unanswered request is repeated, in nanoseconds.
const RETRY_NS: i64 = 1_000_000_000;
/// Delay before a reconnection, in nanoseconds.
const RECONNECT_NS: i64 = 1_000_000_000;
const LONGEST: usize = 65_535;
/// The most datagrams to receive before the role checks the clock again.
const AT_ONCE: usize = 64;

enum Channel {
    Tcp(Stream),
    Udp(UdpSocket),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The concentrator waits until this time before it connects.
    Waiting(i64),
    /// The concentrator is connecting; the attempt fails at this time.
    Connecting(i64),
    /// The concentrator waits for the configuration; it repeats the request at this time.
    Requesting(i64),
    /// The configuration is known, and the station sends data.
    Configured,
    Over,
}

struct Link {
    to: StationAddress,
    state: State,
    channel: Option<Channel>,
    /// Length of a data frame's content, from the station's configuration frame.
    content: usize,
}

pub struct Pdc {
    session: Session,
    transport: Transport,
    marks: Marks,
    ipv6: bool,
    links: Vec<Link>,
    t0_ns: Option<i64>,
    began: bool,
    over: bool,
    /// True once all stations have sent their configuration, and the step `subscribed` is recorded.
    subscribed: bool,
    counts: Totals,
    input: Vec<u8>,
}

impl Pdc {
    pub fn new(item: Item, spec: Spec) -> Self {
        let links = spec.to.into_iter().map(|to| Link {
            to,
            state: State::Over,
            channel: None,
            content: 0,
        });
        Self {
            session: item.software.session,
            transport: spec.transport,
            marks: spec.marks,
            ipv6: spec.ipv6,
            links: links.collect(),
            t0_ns: None,
            began: false,
            over: false,
            subscribed: false,
            counts: Totals::default(),
            input: Vec::new(),
        }
    }

    fn begin(&mut self, place: usize, now: i64, out: &mut Vec<u8>) {
        let to = &self.links[place].to;
        self.session.record("connecting", now, &to.endpoint, out);
        let opened = match self.transport {
            Transport::Tcp => socket::connect(to.address, to.port, true, self.marks)
                .map(|socket| Channel::Tcp(Stream::new(socket))),
            Transport::Udp => datagrams::bound(0, self.ipv6).and_then(|socket| {
                socket::mark(&socket, self.marks)?;
                socket.connect(SocketAddr::new(to.address, to.port))?;
                Ok(Channel::Udp(socket))
            }),
        };
        match opened {
            Ok(channel) => {
                let connects = matches!(channel, Channel::Tcp(_));
                self.links[place].channel = Some(channel);
                self.links[place].state = State::Connecting(now + CONNECT_LIMIT_NS);
                if !connects {
                    self.request(place, now, out);
                }
            }
            Err(e) => self.lost(place, &e.to_string(), now, out),
        }
    }

    /// Requests header and configuration of the station at index `place`; once the configuration has arrived,
    /// the concentrator turns data on. If the request cannot be sent, the connection is lost.
    fn request(&mut self, place: usize, now: i64, out: &mut Vec<u8>) {
        self.links[place].state = State::Requesting(now + RETRY_NS);
        for word in [Command::SendHeader, Command::SendConfiguration2] {
            if let Err(text) = self.command(place, word, now) {
                return self.lost(place, &text, now, out);
            }
        }
    }

    fn command(&mut self, place: usize, word: Command, now: i64) -> Res<()> {
        let link = &mut self.links[place];
        let mut bytes = Vec::new();
        frame::command(link.to.idcode, word, now, &mut bytes);
        match &mut link.channel {
            Some(Channel::Tcp(stream)) => stream.send(&bytes).map(drop),
            Some(Channel::Udp(socket)) => match socket.send(&bytes) {
                // The station does not listen yet, or the queue is full, so the request is repeated later.
                Err(e)
                    if e.kind() != ErrorKind::ConnectionRefused
                        && e.kind() != ErrorKind::WouldBlock =>
                {
                    Err(e.to_string())
                }
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Handles the end of a connection or an attempt: records `why`, as `disconnected` if data was turned on,
    /// else as `failed`, and reconnects after `RECONNECT_NS`.
    fn lost(&mut self, place: usize, why: &str, now: i64, out: &mut Vec<u8>) {
        self.subscribed = false;
        let link = &mut self.links[place];
        let lost = link.state == State::Configured;
        link.channel = None;
        link.state = State::Waiting(now + RECONNECT_NS);
        let what = if lost { "disconnected" } else { "failed" };
        records::connection(
            out,
            &self.session.endpoint,
            what,
            now,
            why,
            &link.to.endpoint,
        );
    }

    fn take(&mut self, place: usize, bytes: &[u8], now: i64, out: &mut Vec<u8>) {
        let link = &mut self.links[place];
        let Ok(frame) = frame::read(bytes) else {
            self.counts.foreign += 1; // wrong checksum, or no frame
            return;
        };
        match frame.kind {
            _ if frame.idcode != link.to.idcode => self.counts.foreign += 1,
            Kind::Header => {}
            Kind::Configuration2 => match frame::announced(frame.content) {
                Some(content) => {
                    link.content = content;
                    self.configured(place, now, out);
                }
                None => self.counts.foreign += 1,
            },
            Kind::Data
                if link.state == State::Configured && frame.content.len() == link.content =>
            {
                if let Some(number) = frame::number(frame.content) {
                    self.counts.received += 1;
                    let (flow, endpoint) = (link.to.flow, &self.session.endpoint);
                    records::received(out, flow, u64::from(number), endpoint, 0, now, false);
                }
            }
            _ => self.counts.foreign += 1,
        }
    }

    fn configured(&mut self, place: usize, now: i64, out: &mut Vec<u8>) {
        if let Err(text) = self.command(place, Command::On, now) {
            return self.lost(place, &text, now, out);
        }
        self.links[place].state = State::Configured;
        if !self.subscribed
            && self
                .links
                .iter()
                .all(|link| link.state == State::Configured)
        {
            self.subscribed = true;
            self.session
                .record("connected", now, &self.links[place].to.endpoint, out);
            self.session.record("subscribed", now, "", out);
        }
    }

    fn receive(&mut self, place: usize, now: i64, out: &mut Vec<u8>) {
        let mut frames = Vec::new();
        let received = match &mut self.links[place].channel {
            Some(Channel::Tcp(stream)) => stream
                .flush()
                .and_then(|()| stream.receive(|bytes| frames.push(bytes.to_vec()))),
            Some(Channel::Udp(socket)) => {
                self.input.resize(LONGEST, 0);
                for _ in 0..AT_ONCE {
                    let Ok(n) = socket.recv(&mut self.input) else {
                        break;
                    };
                    frames.push(self.input[..n].to_vec());
                }
                Ok(())
            }
            None => Ok(()),
        };
        for bytes in frames {
            self.take(place, &bytes, clock::lab_ns(), out);
        }
        if let Err(text) = received {
            self.lost(place, &text, now, out);
        }
    }

    /// Turns off the data of all stations and closes the connections.
    fn leave(&mut self, now: i64, out: &mut Vec<u8>) {
        for place in 0..self.links.len() {
            if self.links[place].state == State::Configured {
                _ = self.command(place, Command::Off, now); // a lost station needs no command
            }
            self.links[place].channel = None;
            self.links[place].state = State::Over;
        }
        if self.began && !self.over {
            self.session.record("disconnected", now, "as planned", out);
        }
        (self.over, self.subscribed) = (true, false);
    }
}

impl Role for Pdc {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns.get_or_insert(t0_ns);
    }

    fn connected(&self) -> bool {
        self.subscribed
    }

    fn totals(&self) -> Totals {
        self.counts
    }

    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        for link in &self.links {
            match &link.channel {
                Some(Channel::Tcp(stream)) => {
                    let opens = matches!(link.state, State::Connecting(_));
                    wait_for(stream.raw(), opens || stream.waits());
                }
                Some(Channel::Udp(socket)) => wait_for(socket.as_raw_fd(), false),
                None => {}
            }
        }
    }

    fn deadline(&self) -> Option<i64> {
        let t0 = self.t0_ns.filter(|_| !self.over)?;
        if !self.began {
            return Some(t0 + self.session.connect_ns);
        }
        let links = self.links.iter().filter_map(|link| match link.state {
            State::Waiting(at) | State::Connecting(at) | State::Requesting(at) => Some(at),
            State::Configured | State::Over => None,
        });
        links.chain([t0 + self.session.disconnect_ns]).min()
    }

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns.filter(|_| !self.over) else {
            return;
        };
        if !self.began && now >= t0 + self.session.connect_ns {
            self.began = true;
            self.links
                .iter_mut()
                .for_each(|link| link.state = State::Waiting(now));
        }
        if now >= t0 + self.session.disconnect_ns {
            return self.leave(now, out);
        }
        for place in 0..self.links.len() {
            match self.links[place].state {
                State::Waiting(at) if now >= at => self.begin(place, now, out),
                State::Connecting(at) if now >= at => {
                    self.lost(place, "no connection in time", now, out);
                }
                State::Requesting(at) if now >= at => self.request(place, now, out),
                _ => {}
            }
        }
    }

    fn on_ready(&mut self, fd: RawFd, _revents: i16, now: i64, out: &mut Vec<u8>) {
        let ours = |link: &Link| match &link.channel {
            Some(Channel::Tcp(stream)) => stream.raw() == fd,
            Some(Channel::Udp(socket)) => socket.as_raw_fd() == fd,
            None => false,
        };
        let Some(place) = self.links.iter().position(ours) else {
            return;
        };
        if let (State::Connecting(_), Some(Channel::Tcp(stream))) =
            (self.links[place].state, &self.links[place].channel)
        {
            match stream.socket().take_error() {
                Ok(None) if socket::established(stream.socket()) => self.request(place, now, out),
                Ok(None) => {}
                Ok(Some(e)) | Err(e) => self.lost(place, &e.to_string(), now, out),
            }
            return;
        }
        self.receive(place, now, out);
    }

    fn finish(&mut self, now: i64, out: &mut Vec<u8>) {
        for place in 0..self.links.len() {
            self.receive(place, now, out);
        }
        self.leave(now, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn every_established_connection_that_ends_is_disconnected() {
        let session = json!({"endpoint": "c", "connect_ns": 0, "disconnect_ns": 1});
        let software =
            json!({"name": "s", "kind": "synchrophasor", "session": session, "spec": null});
        let item = from_value(json!({"software": software, "flows": []})).unwrap();
        let to: Vec<_> = (0..3)
            .map(|n| json!({"endpoint": n.to_string(), "address": "127.0.0.1", "port": 1, "idcode": n, "flow": n}))
            .collect();
        let mut pdc = Pdc::new(
            item,
            from_value(json!({"transport": "tcp", "to": to})).unwrap(),
        );
        (pdc.links[0].state, pdc.links[1].state) = (State::Configured, State::Configured);
        let mut out = Vec::new();
        (0..3).for_each(|place| pdc.lost(place, "cut", 5, &mut out));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "C,c,disconnected,5,cut,0\nC,c,disconnected,5,cut,1\nC,c,failed,5,cut,2\n"
        );
    }
}
