//! Implements the message layer of CoAP (RFC 7252, 4): identifiers, retransmission, acknowledgement, and the
//! recognition of repeated messages. It does no I/O: datagrams wait in `outbox`.

use super::Key;
use super::message::{EMPTY, Kind, Message, Token};
use crate::schedule::uniform;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

const SECOND: i64 = 1_000_000_000;
/// The longest time that a datagram is assumed to be on its way (RFC 7252, 4.8.2).
const MAX_LATENCY_NS: i64 = 100 * SECOND;
/// The least time in which no identifier is used twice: EXCHANGE_LIFETIME of the standard's parameters.
const LIFETIME_NS: i64 = 247 * SECOND;
const STREAM: u64 = 8; // stream of the seed's random numbers; lengths of payloads have 7
/// Factor of the longest first timeout: ACK_RANDOM_FACTOR.
const RANDOM_FACTOR: f64 = 1.5;
const IDENTIFIERS: usize = 1 << 16;

/// The transmission parameters (RFC 7252, 4.8).
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct Timing {
    pub ack_timeout_ns: i64,
    pub max_retransmit: u32,
    pub seed: u64,
}

impl Timing {
    /// Returns the time from the first transmission until the sender gives up: MAX_TRANSMIT_WAIT.
    pub fn wait_ns(&self) -> i64 {
        self.longest_ns(self.max_retransmit + 1)
    }

    /// Returns the longest sum of the first waits.
    fn longest_ns(&self, waits: u32) -> i64 {
        (self.ack_timeout_ns as f64 * RANDOM_FACTOR) as i64 * ((1i64 << waits) - 1)
    }

    fn lifetime_ns(&self) -> i64 {
        let sent_ns = self.longest_ns(self.max_retransmit);
        LIFETIME_NS.max(sent_ns + 2 * MAX_LATENCY_NS + self.ack_timeout_ns)
    }
}

/// A datagram that waits for the socket.
#[derive(Debug)]
pub struct Datagram {
    pub way: Way,
    pub bytes: Vec<u8>,
    /// The message whose first datagram this is, with the index of its receiver; None for other datagrams.
    pub key: Option<(Key, usize)>,
}

/// The two ends of a message's path. The message must leave from the local address `from`; None: from any.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub to: SocketAddr,
    pub from: Option<IpAddr>,
}

impl Way {
    pub const fn to(to: SocketAddr) -> Self {
        Self { to, from: None }
    }
}

/// A confirmable message without an answer.
struct Pending {
    own: Own,
    bytes: Vec<u8>,
    from: Option<IpAddr>,
    tries: u32,
    wait_ns: i64,
    at_ns: i64,
    /// True if the message is not sent again, since the receiver has it or its sender has given it up.
    quiet: bool,
}

/// A message that this side has sent: its receiver, identifier and token, and its key in the delivery ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    pub peer: SocketAddr,
    pub id: u16,
    pub token: Token,
    pub key: Option<Key>,
}

/// A step of a message that this side has sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The message was sent once more.
    Again(Key),
    /// No answer has arrived in time, or the other side has reset the message.
    Lost { own: Own, reset: bool },
    /// The other side has received the message; an answer may follow.
    Acknowledged(Own),
}

#[derive(Default)]
pub struct Layer {
    pub timing: Timing,
    /// For each peer: the last identifier, and the times at which the identifiers in use become free again.
    identifiers: BTreeMap<SocketAddr, (u16, VecDeque<i64>)>,
    pending: BTreeMap<(SocketAddr, u16), Pending>,
    timers: BTreeSet<(i64, SocketAddr, u16)>,
    /// The answer to each received message, kept for repetitions of the message; None before there is one.
    seen: BTreeMap<(SocketAddr, u16), Option<Vec<u8>>>,
    seen_until: VecDeque<(i64, (SocketAddr, u16))>,
    drawn: u64,
    pub outbox: VecDeque<Datagram>,
}

impl Layer {
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            ..Self::default()
        }
    }

    fn draw(&mut self) -> f64 {
        self.drawn += 1;
        uniform(self.timing.seed, STREAM, self.drawn - 1)
    }

    /// Returns an identifier that no other message to this peer uses; None if all are in use.
    fn identifier(&mut self, peer: SocketAddr, now: i64) -> Option<u16> {
        let (lifetime, first) = (self.timing.lifetime_ns(), self.draw());
        let begun = || ((first * 65536.0) as u16, VecDeque::new());
        let (last, used) = self.identifiers.entry(peer).or_insert_with(begun);
        while used.front().is_some_and(|free| *free <= now) {
            used.pop_front();
        }
        if used.len() == IDENTIFIERS {
            return None;
        }
        used.push_back(now + lifetime);
        *last = last.wrapping_add(1);
        Some(*last)
    }

    /// Sends a confirmable or non-confirmable message and returns its identifier; None if no identifier is
    /// free. `key` is the message's key in the delivery ledger and the index of its receiver; `first`: this
    /// is the first CoAP message of that message.
    pub fn send(
        &mut self,
        mut message: Message,
        way: Way,
        key: Option<(Key, usize)>,
        first: bool,
        now: i64,
    ) -> Option<u16> {
        message.id = self.identifier(way.to, now)?;
        let (bytes, peer, id) = (message.encoded(), way.to, message.id);
        if message.kind == Kind::Confirmable {
            let share = 1.0 + (RANDOM_FACTOR - 1.0) * self.draw();
            let wait_ns = (self.timing.ack_timeout_ns as f64 * share) as i64;
            let (token, key) = (message.token, key.map(|(key, _)| key));
            let pending = Pending {
                own: Own {
                    peer,
                    id,
                    token,
                    key,
                },
                bytes: bytes.clone(),
                from: way.from,
                tries: 0,
                wait_ns,
                at_ns: now + wait_ns,
                quiet: false,
            };
            self.timers.insert((pending.at_ns, peer, id));
            self.pending.insert((peer, id), pending);
        }
        self.put(way, bytes, key.filter(|_| first));
        Some(id)
    }

    fn put(&mut self, way: Way, bytes: Vec<u8>, key: Option<(Key, usize)>) {
        let datagram = Datagram { way, bytes, key };
        self.outbox.push_back(datagram);
    }

    /// Sends the answer to a received message, and keeps its bytes for repetitions of the message.
    pub fn answer(&mut self, request: &Message, mut answer: Message, way: Way, now: i64) {
        answer.token = request.token;
        if request.kind == Kind::Confirmable {
            (answer.kind, answer.id) = (Kind::Acknowledgement, request.id);
        } else {
            let Some(id) = self.identifier(way.to, now) else {
                return; // as if it were lost: nobody retransmits it
            };
            (answer.kind, answer.id) = (Kind::NonConfirmable, id);
        }
        self.reply(request.id, answer, way);
    }

    /// Acknowledges or resets the received message `id`.
    pub fn signal(&mut self, kind: Kind, id: u16, way: Way) {
        self.reply(id, Message::empty(kind, id), way);
    }

    fn reply(&mut self, to: u16, message: Message, way: Way) {
        let bytes = message.encoded();
        if let Some(seen) = self.seen.get_mut(&(way.to, to)) {
            *seen = Some(bytes.clone());
        }
        self.put(way, bytes, None);
    }

    /// Takes a message. Returns it if it is new and has a code; answers a repetition as it answered the first
    /// one, and passes acknowledgements and resets of own messages to `events`.
    pub fn receive(
        &mut self,
        message: Message,
        way: Way,
        now: i64,
        events: &mut Vec<Event>,
    ) -> Option<Message> {
        let peer = way.to;
        match message.kind {
            Kind::Acknowledgement | Kind::Reset => {
                let pending = self.pending.get(&(peer, message.id))?;
                let own = pending.own;
                if message.kind == Kind::Reset {
                    self.settle(peer, own.id);
                    events.push(Event::Lost { own, reset: true });
                    return None;
                }
                if message.code == EMPTY {
                    self.quieten(peer, own.id, now);
                    events.push(Event::Acknowledged(own));
                    return None;
                }
                self.settle(peer, message.id);
                Some(message)
            }
            Kind::Confirmable | Kind::NonConfirmable => {
                while let Some((_, old)) = self.seen_until.pop_front_if(|(until, _)| *until <= now)
                {
                    self.seen.remove(&old);
                }
                if let Some(answer) = self.seen.get(&(peer, message.id)) {
                    if let (Some(bytes), Kind::Confirmable) = (answer.clone(), message.kind) {
                        self.put(way, bytes, None);
                    }
                    return None;
                }
                let until = now + self.timing.lifetime_ns();
                self.seen.insert((peer, message.id), None);
                self.seen_until.push_back((until, (peer, message.id)));
                if message.code == EMPTY {
                    if message.kind == Kind::Confirmable {
                        self.signal(Kind::Reset, message.id, way); // a ping (RFC 7252, 4.3)
                    }
                    return None;
                }
                Some(message)
            }
        }
    }

    /// Ends the retransmission of a message whose answer has arrived.
    pub fn settle(&mut self, peer: SocketAddr, id: u16) {
        if let Some(pending) = self.pending.remove(&(peer, id)) {
            self.timers.remove(&(pending.at_ns, peer, id));
        }
    }

    /// Ends the retransmission of a message, and keeps it for a while, since its answer may still arrive.
    pub fn quieten(&mut self, peer: SocketAddr, id: u16, now: i64) {
        let wait_ns = self.timing.wait_ns();
        if let Some(pending) = self.pending.get_mut(&(peer, id)).filter(|p| !p.quiet) {
            self.timers.remove(&(pending.at_ns, peer, id));
            (pending.quiet, pending.at_ns) = (true, now + wait_ns);
            self.timers.insert((pending.at_ns, peer, id));
        }
    }

    /// Gives up a message whose datagram the kernel has refused, if the message is confirmable.
    pub fn refused(&mut self, datagram: &Datagram) -> Option<Event> {
        let id = u16::from_be_bytes([datagram.bytes[2], datagram.bytes[3]]);
        let own = self.pending.get(&(datagram.way.to, id))?.own;
        self.settle(own.peer, own.id);
        Some(Event::Lost { own, reset: false })
    }

    pub fn deadline(&self) -> Option<i64> {
        self.timers.first().map(|(at, ..)| *at)
    }

    /// Sends due messages again, each time after twice the wait before, and gives up messages that were sent
    /// again `max_retransmit` times.
    pub fn on_time(&mut self, now: i64, events: &mut Vec<Event>) {
        while let Some((at, peer, id)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            let most = self.timing.max_retransmit;
            let Some(pending) = self.pending.get_mut(&(peer, id)) else {
                continue;
            };
            if pending.quiet || pending.tries == most {
                let own = pending.own;
                self.pending.remove(&(peer, id));
                events.push(Event::Lost { own, reset: false });
                continue;
            }
            pending.tries += 1;
            pending.wait_ns *= 2;
            pending.at_ns = now + pending.wait_ns;
            let (bytes, from) = (pending.bytes.clone(), pending.from);
            events.extend(pending.own.key.map(Event::Again));
            self.timers.insert((pending.at_ns, peer, id));
            self.put(Way { to: peer, from }, bytes, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::GET;
    use super::*;

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5683);
    const WAY: Way = Way::to(PEER);

    fn layer() -> Layer {
        Layer::new(Timing {
            ack_timeout_ns: 2 * SECOND,
            max_retransmit: 4,
            seed: 1,
        })
    }

    fn request(kind: Kind, id: u16) -> Message {
        let mut message = Message::of(GET);
        (message.kind, message.id, message.token) = (kind, id, Token::of(7));
        message
    }

    #[test]
    fn an_unanswered_message_is_sent_five_times_and_then_lost() {
        let (mut layer, mut events, mut times) = (layer(), Vec::new(), vec![0]);
        layer.send(request(Kind::Confirmable, 0), WAY, None, true, 0);
        assert_eq!(layer.timing.wait_ns(), 93 * SECOND);
        while let Some(at) = layer.deadline() {
            layer.on_time(at, &mut events);
            times.push(at);
        }
        assert_eq!(layer.outbox.len(), 5);
        let first = times[1];
        assert!((2 * SECOND..=3 * SECOND).contains(&first), "{first}");
        let steps: Vec<i64> = times.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(steps, [1, 2, 4, 8, 16].map(|times| times * first));
        assert!(matches!(events[..], [Event::Lost { reset: false, .. }]));
    }

    #[test]
    fn a_repetition_gets_the_same_answer_and_is_passed_on_once() {
        let (mut layer, mut events) = (layer(), Vec::new());
        let asked = request(Kind::Confirmable, 9);
        let first = layer.receive(asked.clone(), WAY, 0, &mut events);
        layer.answer(&first.unwrap(), Message::of(0x45), WAY, 0);
        assert_eq!(layer.receive(asked.clone(), WAY, SECOND, &mut events), None);
        let sent: Vec<&[u8]> = layer.outbox.iter().map(|d| &d.bytes[..]).collect();
        assert_eq!(sent, [b"\x64\x45\0\x09\0\0\0\x07"; 2]);
        let later = layer.receive(asked, WAY, 248 * SECOND, &mut events);
        assert!(later.is_some(), "the identifier is free again");
    }

    #[test]
    fn an_acknowledged_message_is_not_sent_again_and_a_reset_ends_it() {
        let (mut layer, mut events) = (layer(), Vec::new());
        let asked = request(Kind::Confirmable, 0);
        let id = layer.send(asked, WAY, None, true, 0).unwrap();
        let taken = Message::empty(Kind::Acknowledgement, id);
        layer.receive(taken, WAY, 1, &mut events);
        assert!(matches!(events.pop(), Some(Event::Acknowledged(_))));
        assert_eq!(layer.deadline(), Some(93 * SECOND + 1));
        layer.receive(Message::empty(Kind::Reset, id), WAY, 2, &mut events);
        assert!(matches!(
            events.pop(),
            Some(Event::Lost { reset: true, .. })
        ));
        assert_eq!(layer.deadline(), None);
    }

    #[test]
    fn no_identifier_is_used_twice_within_its_lifetime() {
        let (mut layer, quick) = (layer(), request(Kind::NonConfirmable, 0));
        let mut send = |at| layer.send(quick.clone(), WAY, None, true, at);
        let ids: BTreeSet<_> = (0..IDENTIFIERS).filter_map(|_| send(0)).collect();
        assert_eq!(ids.len(), IDENTIFIERS);
        assert_eq!(send(246 * SECOND), None);
        assert!(send(247 * SECOND).is_some());
    }
}
