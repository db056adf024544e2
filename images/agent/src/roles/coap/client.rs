//! Implements a CoAP client: requests and messages without replies, which each server gets one after the
//! other, blocks in both directions (RFC 7959), and the observation of resources (RFC 7641).

use super::layer::{Event, Way};
use super::message::{
    self, BLOCK1, BLOCK2, CONTINUE, ETAG, GET, Kind, Message, NO_ANSWER, NO_RESPONSE, OBSERVE,
    PATH, POST, TAG, Token, printed,
};
use super::{Context, Core, LONGEST, Settings, Side};
use crate::payload::{self, Purpose};
use crate::records::{self, Outcome};
use crate::roles::ledger::Key;
use crate::roles::peers::Peer;
use crate::schedule::uniform;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// The time without a notification after which a client registers again: Max-Age (RFC 7252, 5.10.5).
const REFRESH_NS: i64 = 60_000_000_000;
/// The most datagrams that wait for the socket before messages without an answer are dropped.
const WAITING: usize = 1000;
const STREAM: u64 = 9; // stream of the seed's random numbers; the message layer has 8

/// One server: how many transfers to the server wait for answers, and the messages that wait for their turn.
struct Lane {
    peer: Peer,
    open: usize,
    queue: VecDeque<(Key, Vec<u8>)>,
    token: u32,
    refresh_ns: Option<i64>,
    /// The version of the representation that came last.
    version: Option<u32>,
}

impl Lane {
    fn address(&self) -> SocketAddr {
        SocketAddr::new(self.peer.address, self.peer.port)
    }
}

/// An exchange of a client, with one token for all its blocks; `quiet`: the server does not answer it.
#[derive(Default)]
struct Transfer {
    /// The index of the server.
    lane: usize,
    /// The message in the delivery ledger; None for an observation and for the rest of a notification.
    key: Option<Key>,
    observes: bool,
    body: Vec<u8>,
    exponent: u8,
    /// The offset of the block that was sent last.
    from: usize,
    answer: Vec<u8>,
    version: Option<u32>,
    tag: Option<u32>,
    id: u16,
    quiet: bool,
}

impl Transfer {
    /// Returns the message of the present block: one of the request's body or, after it, of the answer.
    fn message(&self, token: u32, settings: &Settings) -> Message {
        let mut message = Message::of(if self.key.is_some() { POST } else { GET });
        if !settings.confirmable && self.key.is_some() {
            message.kind = Kind::NonConfirmable;
        }
        message.token = Token::of(token);
        for part in &settings.path {
            message.put(PATH, part.as_bytes());
        }
        if self.observes {
            message.put_number(OBSERVE, 0);
        }
        if self.quiet {
            message.put_number(NO_RESPONSE, NO_ANSWER);
        }
        if let Some(tag) = self.tag {
            message.put(TAG, &tag.to_be_bytes());
        }
        message.put_part(&self.body, self.from, self.exponent);
        let early = self.exponent < 6 && !self.observes && !self.quiet;
        if early || !self.answer.is_empty() {
            message.put_wish(self.answer.len(), self.exponent);
        }
        message
    }
}

pub struct Client {
    lanes: Vec<Lane>,
    transfers: BTreeMap<u32, Transfer>,
    next: u32,
}

impl Client {
    pub fn new(to: Vec<Peer>, seed: u64) -> Self {
        let lane = |peer| Lane {
            peer,
            open: 0,
            queue: VecDeque::new(),
            token: 0,
            refresh_ns: None,
            version: None,
        };
        Self {
            lanes: to.into_iter().map(lane).collect(),
            transfers: BTreeMap::new(),
            next: (uniform(seed, STREAM, 0) * f64::from(u32::MAX)) as u32,
        }
    }

    fn begin_message(&mut self, lane: usize, key: Key, body: Vec<u8>, cx: &mut Context) {
        let reply = payload::read(&body).map_or(0, |one| one.reply_bytes as usize);
        let exponent = cx.core.settings.block;
        let blockwise = body.len().max(reply) > message::size(exponent);
        let transfer = Transfer {
            quiet: !is_answered(&key, cx.core),
            tag: blockwise.then_some(self.next),
            key: Some(key),
            lane,
            body,
            exponent,
            ..Transfer::default()
        };
        self.begin_transfer(transfer, cx);
    }

    fn begin_transfer(&mut self, transfer: Transfer, cx: &mut Context) {
        let token = self.next;
        self.next = self.next.wrapping_add(1);
        let (lane, key, quiet) = (transfer.lane, transfer.key, transfer.quiet);
        self.transfers.insert(token, transfer);
        if !self.transmit(token, true, cx) {
            self.transfers.remove(&token);
            if let Some(key) = key {
                cx.core.ledger.failed(&key, lane, Outcome::Dropped, cx.out);
            }
        } else if quiet {
            self.transfers.remove(&token);
        } else if key.is_some() {
            self.lanes[lane].open += 1;
        }
    }

    /// Sends the transfer's present block; returns false if no identifier is free.
    fn transmit(&mut self, token: u32, first: bool, cx: &mut Context) -> bool {
        let Some(transfer) = self.transfers.get_mut(&token) else {
            return true;
        };
        let message = transfer.message(token, &cx.core.settings);
        let way = Way::to(self.lanes[transfer.lane].address());
        let key = transfer.key.map(|key| (key, transfer.lane));
        let Some(id) = cx.core.layer.send(message, way, key, first, cx.now) else {
            let text = "no message identifier is free".to_owned();
            cx.core.error(text, cx.now, cx.out);
            return false;
        };
        transfer.id = id;
        true
    }

    /// Removes a transfer, and begins the next transfer to its server.
    fn end(&mut self, token: u32, cx: &mut Context) {
        if let Some(transfer) = self.transfers.remove(&token)
            && transfer.key.is_some()
        {
            self.lanes[transfer.lane].open -= 1;
            self.next_turn(transfer.lane, cx);
        }
    }

    /// Records why a transfer fails, and ends it; the client registers a failed observation again later.
    fn fail(&mut self, token: u32, text: String, cx: &mut Context) {
        cx.core.error(text, cx.now, cx.out);
        if self.transfers.get(&token).is_some_and(|one| !one.observes) {
            self.end(token, cx);
        }
    }

    fn next_turn(&mut self, lane: usize, cx: &mut Context) {
        while self.lanes[lane].open < cx.core.settings.nstart
            && let Some((key, body)) = self.lanes[lane].queue.pop_front()
        {
            if cx.core.ledger.is_open(&key) {
                self.begin_message(lane, key, body, cx);
            }
        }
    }

    fn on_answer(&mut self, token: u32, answer: Message, cx: &mut Context) {
        let Some(transfer) = self.transfers.get_mut(&token) else {
            return;
        };
        if !answer.is_success() {
            let peer = &self.lanes[transfer.lane].peer.endpoint;
            let text = format!("{peer} answers {}", printed(answer.code));
            return self.fail(token, text, cx);
        }
        if answer.code == CONTINUE {
            let echoed = answer.block(BLOCK1);
            if let Some(block) = echoed.filter(|block| block.from() == transfer.from) {
                transfer.from += message::size(transfer.exponent);
                transfer.exponent = transfer.exponent.min(block.exponent);
                self.transmit(token, false, cx);
            }
            return;
        }
        if transfer.observes {
            let lane = transfer.lane;
            return self.on_notification(lane, answer, cx);
        }
        let at = answer.block(BLOCK2).map_or(0, |block| block.from());
        let changed = transfer.key.is_none() && answer.number(ETAG) != transfer.version;
        if changed || at != transfer.answer.len() || at + answer.payload.len() > LONGEST {
            return self.end(token, cx); // a newer representation, or blocks out of order
        }
        transfer.answer.extend_from_slice(&answer.payload);
        if let Some(block) = answer.block(BLOCK2).filter(|block| block.more) {
            transfer.exponent = transfer.exponent.min(block.exponent);
            transfer.body = Vec::new();
            self.transmit(token, false, cx);
            return;
        }
        let (lane, key) = (transfer.lane, transfer.key);
        let whole = std::mem::take(&mut transfer.answer);
        match key {
            Some(key) => self.settle(lane, key, &whole, cx),
            None => take_notification(&whole, cx),
        }
        self.end(token, cx);
    }

    fn settle(&mut self, lane: usize, key: Key, answer: &[u8], cx: &mut Context) {
        let reply = payload::read(answer).filter(|one| one.purpose == Purpose::Reply);
        let peer = (lane, self.lanes[lane].peer.endpoint.as_str());
        match reply {
            Some(reply) => {
                let known = cx.core.ledger.answered(&reply, peer, cx.now, cx.out);
                cx.core.foreign += u64::from(known.is_none());
            }
            None if answer.is_empty() && !cx.core.ledger.waits_for_answers(&key) => {
                cx.core.ledger.confirmed(&key, cx.now, cx.out)
            }
            None => cx.core.foreign += 1,
        }
    }

    fn on_notification(&mut self, lane: usize, answer: Message, cx: &mut Context) {
        let of = &mut self.lanes[lane];
        of.refresh_ns = Some(cx.now + REFRESH_NS);
        let registered = answer.kind == Kind::Acknowledgement;
        if registered && answer.number(OBSERVE).is_some() {
            let (session, server) = (&cx.core.session, &of.peer.endpoint);
            session.record("subscribed", cx.now, server, cx.out);
        }
        // The answer to a repeated registration carries a representation that may have arrived before.
        let again = registered && of.version == answer.number(ETAG);
        if again || answer.payload.is_empty() {
            return;
        }
        of.version = answer.number(ETAG);
        let Some(block) = answer.block(BLOCK2).filter(|block| block.more) else {
            return take_notification(&answer.payload, cx);
        };
        let rest = Transfer {
            lane,
            exponent: cx.core.settings.block.min(block.exponent),
            version: answer.number(ETAG),
            answer: answer.payload,
            ..Transfer::default()
        };
        self.begin_transfer(rest, cx);
    }

    /// Records an answer that arrives after its request has expired. Any other message that answers none of
    /// this side's requests counts as foreign, and is answered with a reset.
    fn on_stranger(&mut self, message: &Message, way: Way, cx: &mut Context) {
        let reply = payload::read(&message.payload).filter(|one| one.purpose == Purpose::Reply);
        let lane = self.lanes.iter().position(|lane| lane.address() == way.to);
        let known = reply.zip(lane).and_then(|(reply, lane)| {
            let peer = (lane, self.lanes[lane].peer.endpoint.as_str());
            cx.core.ledger.answered(&reply, peer, cx.now, cx.out)
        });
        cx.core.foreign += u64::from(known.is_none());
        if message.kind != Kind::Acknowledgement {
            cx.core.layer.signal(Kind::Reset, message.id, way);
        }
    }
}

/// Returns whether the servers answer this open message.
fn is_answered(key: &Key, core: &Core) -> bool {
    core.settings.confirmable || core.ledger.waits_for_answers(key)
}

/// Records a notification, or counts it as foreign.
fn take_notification(body: &[u8], cx: &mut Context) {
    let Some(one) = payload::read(body).filter(|one| one.purpose == Purpose::Stream) else {
        cx.core.foreign += 1;
        return;
    };
    cx.core.received += 1;
    let endpoint = &cx.core.session.endpoint;
    records::received(cx.out, one.flow, one.seq, endpoint, 0, cx.now, false);
}

impl Side for Client {
    fn begin(&mut self, cx: &mut Context) {
        let (observes, exponent) = (cx.core.settings.observe, cx.core.settings.block);
        for lane in (0..self.lanes.len()).filter(|_| observes) {
            let token = self.next;
            self.next = self.next.wrapping_add(1);
            self.lanes[lane].token = token;
            let observation = Transfer {
                lane,
                exponent,
                observes: true,
                ..Transfer::default()
            };
            self.transfers.insert(token, observation);
            self.lanes[lane].refresh_ns = Some(cx.now);
        }
        self.on_time(cx);
    }

    fn due(&mut self, key: Key, body: Vec<u8>, cx: &mut Context) {
        let waits = is_answered(&key, cx.core);
        for lane in cx.core.ledger.receivers(&key) {
            let of = &mut self.lanes[lane];
            let full = if waits {
                of.queue.len() >= cx.core.settings.queue
            } else {
                cx.core.layer.outbox.len() >= WAITING
            };
            if !waits && !full || waits && of.open < cx.core.settings.nstart {
                self.begin_message(lane, key, body.clone(), cx);
            } else if full {
                cx.core.ledger.failed(&key, lane, Outcome::Dropped, cx.out);
            } else {
                of.queue.push_back((key, body.clone()));
            }
        }
    }

    fn receive(&mut self, message: Message, way: Way, cx: &mut Context) {
        let token = message.token.number();
        let ours = token.filter(|token| {
            let lane = self.transfers.get(token).map(|one| one.lane);
            lane.is_some_and(|lane| self.lanes[lane].address() == way.to)
        });
        let Some(token) = ours.filter(|_| !message.is_request()) else {
            return self.on_stranger(&message, way, cx);
        };
        if message.kind == Kind::Confirmable {
            cx.core.layer.signal(Kind::Acknowledgement, message.id, way);
        }
        if let Some(transfer) = self.transfers.get(&token) {
            cx.core.layer.settle(way.to, transfer.id); // a separate answer acknowledges too (RFC 7252, 4.2)
        }
        self.on_answer(token, message, cx);
    }

    fn event(&mut self, event: Event, cx: &mut Context) {
        if let Event::Lost { own, reset } = event
            && let Some(token) = own.token.number()
            && let Some(transfer) = self.transfers.get(&token)
        {
            let how = ["does not answer", "resets a message"][usize::from(reset)];
            let text = format!("{} {how}", self.lanes[transfer.lane].peer.endpoint);
            self.fail(token, text, cx);
        }
    }

    fn expired(&mut self, cx: &mut Context) {
        let closed = |key| !cx.core.ledger.is_open(&key);
        let late = |(_, one): &(&u32, &Transfer)| one.key.is_some_and(closed);
        let late = self.transfers.iter().filter(late);
        let late: Vec<u32> = late.map(|(token, _)| *token).collect();
        for token in late {
            if let Some(transfer) = self.transfers.get(&token) {
                let address = self.lanes[transfer.lane].address();
                cx.core.layer.quieten(address, transfer.id, cx.now);
            }
            self.end(token, cx);
        }
    }

    fn deadline(&self) -> Option<i64> {
        self.lanes.iter().filter_map(|lane| lane.refresh_ns).min()
    }

    fn on_time(&mut self, cx: &mut Context) {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].refresh_ns.is_some_and(|at| at <= cx.now) {
                self.lanes[lane].refresh_ns = Some(cx.now + REFRESH_NS);
                self.transmit(self.lanes[lane].token, true, cx);
            }
        }
    }
}
