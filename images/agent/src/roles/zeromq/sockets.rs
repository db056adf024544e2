//! Opens the ZeroMQ sockets of one side, sends through them, and receives from them in turn.

use super::library::{self as zmq, Context, Library, Socket};
use super::spec::{Kind, Spec};
use crate::os::Res;
use crate::records::Outcome;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;

/// The longest message in bytes that is received whole; longer ones are truncated.
const LONGEST: usize = 1 << 20;
/// The interval between attempts to connect, in milliseconds.
const RECONNECT_MS: i32 = 100;

/// A received message or event.
pub enum Incoming {
    /// A message to this side, with its body.
    Message(Vec<u8>),
    /// A reply, with the receiver's name and the body.
    Answer(Vec<u8>, Vec<u8>),
    Connected,
    Lost,
}

pub struct Sockets {
    kind: Kind,
    main: Socket,
    /// The socket for replies: REP on the side that sends, REQ on the other; None if replies use the main
    /// connection.
    answers: Option<Socket>,
    monitor: Option<Socket>,
    /// True if the REQ waits for the confirmation of its last message.
    unconfirmed: bool,
    room: Vec<u8>,
}

impl Sockets {
    /// Opens all sockets of this side and binds or connects them; an error if libzmq is missing or, with
    /// multicast, lacks PGM. `name` is the routing id of this side.
    pub fn open(spec: &Spec, name: &str) -> Res<Self> {
        let library = Library::load()?;
        if spec.is_multicast() && !library.has("pgm") {
            return Err(
                "transport: this libzmq was built without PGM; Debian's libzmq5 has it".to_owned(),
            );
        }
        let context = Rc::new(Context::new(library)?);
        let main = Socket::new(&context, socket_type(spec.socket))?;
        set_up(&main, spec, name)?;
        let watched = !spec.sends() && !spec.is_multicast();
        let monitor = watched.then(|| main.monitored("monitor")).transpose()?;
        let address = address(spec);
        if spec.sends() && !spec.is_multicast() {
            main.bind(&address)?;
        } else {
            main.connect(&address)?;
        }
        Ok(Self {
            kind: spec.socket,
            main,
            answers: answering(spec, &context)?,
            monitor,
            unconfirmed: false,
            room: vec![0; LONGEST],
        })
    }

    pub fn fds(&self) -> impl Iterator<Item = RawFd> {
        let all = [
            Some(&self.main),
            self.answers.as_ref(),
            self.monitor.as_ref(),
        ];
        all.into_iter().flatten().map(|socket| socket.get(zmq::FD))
    }

    /// Sends a message to all subscribers; the error is the message's outcome.
    pub fn publish(&self, body: &[u8]) -> Result<(), Outcome> {
        self.main.send(&[body]).map_err(|e| outcome(&e))
    }

    /// Sends a message to the receiver with this name; the error is the message's outcome.
    pub fn route(&self, name: &str, body: &[u8]) -> Result<(), Outcome> {
        let taken = self.main.send(&[name.as_bytes(), body]);
        taken.map_err(|e| outcome(&e))
    }

    /// Sends a reply; returns false if libzmq does not accept it yet, or if the REQ waits for the
    /// confirmation of its last reply. The role then tries again after the next event.
    pub fn answer(&mut self, name: &str, body: &[u8]) -> bool {
        match &self.answers {
            Some(_) if self.unconfirmed => false,
            Some(asks) => {
                self.unconfirmed = asks.send(&[name.as_bytes(), body]).is_ok();
                self.unconfirmed
            }
            None => self.main.send(&[body]).is_ok(),
        }
    }

    /// Returns the next event of the connection, else the next message, else the next reply; None if there
    /// is none.
    pub fn next(&mut self) -> Option<Incoming> {
        if let Some(event) = self
            .monitor
            .as_ref()
            .and_then(|m| m.receive(&mut self.room))
        {
            return Some(connection(&event));
        }
        if let Some(found) = self.next_of_main() {
            return Some(found);
        }
        self.next_answer()
    }

    fn next_of_main(&mut self) -> Option<Incoming> {
        let mut parts = self.main.receive(&mut self.room)?;
        let body = parts.pop()?;
        Some(match (self.kind, parts.pop()) {
            (Kind::Router, Some(name)) => Incoming::Answer(name, body),
            _ => Incoming::Message(body),
        })
    }

    fn next_answer(&mut self) -> Option<Incoming> {
        loop {
            let answers = self.answers.as_ref()?;
            let mut parts = answers.receive(&mut self.room)?;
            if self.unconfirmed {
                self.unconfirmed = false;
                continue;
            }
            let (body, name) = (parts.pop()?, parts.pop()?);
            // The REP must confirm the reply, since the REQ sends no further message before that.
            let _confirmed = answers.send(&[b""]);
            return Some(Incoming::Answer(name, body));
        }
    }
}

fn socket_type(kind: Kind) -> i32 {
    match kind {
        Kind::Router => zmq::ROUTER,
        Kind::Dealer => zmq::DEALER,
        Kind::Pub => zmq::PUB,
        Kind::Sub => zmq::SUB,
    }
}

fn set_up(main: &Socket, spec: &Spec, name: &str) -> Res<()> {
    match spec.socket {
        Kind::Router => main.set(zmq::ROUTER_MANDATORY, 1)?,
        Kind::Dealer => main.set_bytes(zmq::ROUTING_ID, name.as_bytes())?,
        Kind::Sub => main.set_bytes(zmq::SUBSCRIBE, b"")?,
        Kind::Pub => {}
    }
    let kbit = spec
        .rate_bps
        .map(|bps| (bps / 1000).clamp(1, i64::from(i32::MAX)) as i32);
    let milliseconds = spec
        .recovery_ns
        .map(|ns| (ns / 1_000_000).clamp(1, i64::from(i32::MAX)) as i32);
    let options = [
        (zmq::SNDHWM, spec.send_queue),
        (zmq::RCVHWM, spec.receive_queue),
        (zmq::RATE, kbit),
        (zmq::RECOVERY_IVL, milliseconds),
        (zmq::MULTICAST_MAXTPDU, spec.tpdu_bytes),
        (zmq::RECONNECT_IVL, Some(RECONNECT_MS)),
        (zmq::IPV6, spec.speaks_ipv6().then_some(1)),
    ];
    let wanted = options
        .into_iter()
        .filter_map(|(option, value)| value.map(|v| (option, v)));
    wanted
        .into_iter()
        .try_for_each(|(option, value)| main.set(option, value))
}

fn address(spec: &Spec) -> String {
    let port = spec.port;
    match (spec.group.zip(spec.own), spec.address) {
        (Some((group, own)), _) if spec.is_multicast() => format!("epgm://{own};{group}:{port}"),
        (_, Some(peer)) => format!("tcp://{}", SocketAddr::new(peer, port)),
        _ => format!("tcp://*:{port}"),
    }
}

fn answering(spec: &Spec, context: &Rc<Context>) -> Res<Option<Socket>> {
    let Some(port) = spec.answers else {
        return Ok(None);
    };
    let socket = match spec.address {
        None => Socket::new(context, zmq::REP)?,
        Some(_) => Socket::new(context, zmq::REQ)?,
    };
    if spec.speaks_ipv6() {
        socket.set(zmq::IPV6, 1)?;
    }
    match spec.address {
        None => socket.bind(&format!("tcp://*:{port}"))?,
        Some(peer) => socket.connect(&format!("tcp://{}", SocketAddr::new(peer, port)))?,
    }
    Ok(Some(socket))
}

/// Parses an event of zmq_socket_monitor(3): a u16 and a u32 in native byte order, then the address. Any
/// event other than a successful handshake is `Lost`.
fn connection(parts: &[Vec<u8>]) -> Incoming {
    let event = parts.first().and_then(|p| p.first_chunk::<2>());
    let number = event.map_or(0, |bytes| i32::from(u16::from_ne_bytes(*bytes)));
    if number == zmq::HANDSHAKEN {
        Incoming::Connected
    } else {
        Incoming::Lost
    }
}

fn outcome(error: &zmq::ZmqError) -> Outcome {
    match error.number {
        libc::EAGAIN => Outcome::Dropped,
        // The error is EHOSTUNREACH: a ROUTER has no peer of that name.
        _ => Outcome::Unsent,
    }
}
