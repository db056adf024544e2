//! Implements a server of CoAP with one resource at all its paths: answers requests, in blocks where they are
//! long (RFC 7959), and notifies the observers of its resource (RFC 7641).

use super::layer::{Event, Way};
use super::message::{
    self, BAD_OPTION, BAD_REQUEST, BLOCK1, BLOCK2, Block, CHANGED, CONTENT, CONTINUE, ETAG, GET,
    INCOMPLETE, Kind, Message, NO_RESPONSE, NOT_ALLOWED, OBSERVE, POST, TAG, TOO_LARGE, Token,
    UNAVAILABLE,
};
use super::{Context, LONGEST, Side};
use crate::payload::{self, Identity, Purpose};
use crate::records::{self, Outcome};
use crate::roles::ledger::Key;
use crate::roles::peers;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The most incomplete bodies, and the most answers of which clients may request further blocks.
const MOST_TRANSFERS: usize = 4096;
const MOST_OBSERVERS: usize = 65_536;
/// Numbers of notifications have 24 bits (RFC 7641, 4.4).
const SEQUENCES: u32 = 1 << 24;

/// A body that has arrived in part.
struct Upload {
    body: Vec<u8>,
    until: i64,
}

/// A client that observes the resource.
struct Observer {
    way: Way,
    /// Whether a confirmable notification waits for its acknowledgement.
    open: bool,
    /// The newest notification, which waits for that acknowledgement.
    waiting: Option<(Key, usize)>,
}

#[derive(Default)]
pub struct Server {
    /// By client and Request-Tag.
    uploads: BTreeMap<(SocketAddr, u32), Upload>,
    answers: BTreeMap<(SocketAddr, u32), (Identity, i64)>,
    observers: BTreeMap<(SocketAddr, Token), Observer>,
    /// The version of the resource, and its representation; None before the first one.
    resource: Option<(u32, Vec<u8>)>,
    sequence: u32,
}

/// Puts the block of `body` that begins at offset `from` into an answer; returns false beyond the body's end.
fn put_block(answer: &mut Message, body: &[u8], from: usize, exponent: u8) -> bool {
    let Some((block, range)) = Block::at(from, body.len(), exponent) else {
        return body.is_empty() && from == 0;
    };
    answer.payload = body[range].to_vec();
    if block.more || from > 0 {
        answer.put_block(BLOCK2, block);
    }
    true
}

impl Server {
    fn get(&mut self, request: &Message, way: Way, cx: &mut Context) -> Message {
        let observer = (way.to, request.token);
        let mut answer = Message::of(CONTENT);
        match request.number(OBSERVE) {
            Some(0) if self.observers.len() < MOST_OBSERVERS => {
                let of = Observer {
                    way,
                    open: false,
                    waiting: None,
                };
                self.observers.entry(observer).or_insert(of).way = way;
                answer.put_number(OBSERVE, self.sequence);
            }
            Some(1) => drop(self.observers.remove(&observer)),
            _ => {}
        }
        let (from, exponent) = wanted(request, cx);
        if let Some((version, body)) = &self.resource {
            answer.put(ETAG, &version.to_be_bytes());
            if !put_block(&mut answer, body, from, exponent) {
                return Message::of(BAD_OPTION);
            }
        }
        answer
    }

    /// Returns the answer to a POST; None if the client requests no answer.
    fn post(&mut self, request: &Message, way: Way, cx: &mut Context) -> Option<Message> {
        let block1 = request.block(BLOCK1);
        let which = (way.to, request.number(TAG).unwrap_or(0));
        let echoed = |code| {
            let mut answer = Message::of(code);
            if let Some(block) = block1 {
                answer.put_block(BLOCK1, block);
            }
            answer
        };
        let refusal = |code| Some(echoed(code));
        let (from, exponent) = wanted(request, cx);
        if from > 0 {
            let Some((identity, _)) = self.answers.get(&which) else {
                return refusal(INCOMPLETE);
            };
            let mut answer = Message::of(CHANGED);
            let known = put_block(&mut answer, &reply(identity), from, exponent);
            return if known {
                Some(answer)
            } else {
                refusal(BAD_OPTION)
            };
        }
        let body = match block1 {
            None => request.payload.clone(),
            Some(block) => match self.add(which, block, &request.payload, cx) {
                Ok(Some(body)) => body,
                Ok(None) => return refusal(CONTINUE),
                Err(code) => return refusal(code),
            },
        };
        let identity = payload::read(&body);
        let asked =
            |one: &Identity| one.purpose != Purpose::Reply && one.reply_bytes as usize <= LONGEST;
        let Some(identity) = identity.filter(asked) else {
            cx.core.foreign += 1;
            return refusal(BAD_REQUEST);
        };
        cx.core.received += 1;
        let Identity { flow, seq, .. } = identity;
        records::received(
            cx.out,
            flow,
            seq,
            &cx.core.session.endpoint,
            0,
            cx.now,
            false,
        );
        let mut answer = echoed(CHANGED);
        if identity.purpose == Purpose::Request {
            put_block(&mut answer, &reply(&identity), 0, exponent);
            if answer.block(BLOCK2).is_some() {
                if self.answers.len() >= MOST_TRANSFERS {
                    self.answers.retain(|_, (_, until)| *until > cx.now);
                }
                if self.answers.len() < MOST_TRANSFERS {
                    let until = cx.now + cx.core.layer.timing.wait_ns();
                    self.answers.insert(which, (identity, until));
                }
            }
        }
        (request.number(NO_RESPONSE).unwrap_or(0) & 2 == 0).then_some(answer)
    }

    /// Adds a block to a body; returns the whole body after its last block, or the code of a refusal.
    fn add(
        &mut self,
        which: (SocketAddr, u32),
        block: Block,
        payload: &[u8],
        cx: &Context,
    ) -> Result<Option<Vec<u8>>, u8> {
        if block.number == 0 {
            if self.uploads.len() >= MOST_TRANSFERS {
                self.uploads.retain(|_, upload| upload.until > cx.now);
            }
            if self.uploads.len() >= MOST_TRANSFERS {
                return Err(UNAVAILABLE);
            }
            let until = cx.now + cx.core.layer.timing.wait_ns();
            let body = Vec::new();
            self.uploads.insert(which, Upload { body, until });
        }
        let upload = self.uploads.get_mut(&which).ok_or(INCOMPLETE)?;
        let fits = !block.more || payload.len() == message::size(block.exponent);
        if block.from() != upload.body.len() || !fits {
            self.uploads.remove(&which);
            return Err(INCOMPLETE);
        }
        upload.until = cx.now + cx.core.layer.timing.wait_ns();
        upload.body.extend_from_slice(payload);
        if upload.body.len() > LONGEST {
            self.uploads.remove(&which);
            return Err(TOO_LARGE);
        }
        if block.more {
            return Ok(None);
        }
        Ok(self.uploads.remove(&which).map(|upload| upload.body))
    }

    /// Sends the present representation to an observer, as message `key` of the delivery ledger.
    fn notify(
        &mut self,
        which: (SocketAddr, Token),
        key: Option<(Key, usize)>,
        cx: &mut Context,
    ) -> bool {
        let (Some(observer), Some((version, body))) =
            (self.observers.get_mut(&which), &self.resource)
        else {
            return false;
        };
        let mut message = Message {
            kind: if cx.core.settings.confirmable {
                Kind::Confirmable
            } else {
                Kind::NonConfirmable
            },
            token: which.1,
            ..Message::of(CONTENT)
        };
        message.put(ETAG, &version.to_be_bytes());
        message.put_number(OBSERVE, self.sequence);
        put_block(&mut message, body, 0, cx.core.settings.block);
        observer.open = cx.core.settings.confirmable;
        cx.core
            .layer
            .send(message, observer.way, key, true, cx.now)
            .is_some()
    }

    /// Sends the notification that waits for an observer, if there is one.
    fn next_turn(&mut self, which: (SocketAddr, Token), cx: &mut Context) {
        let Some(observer) = self.observers.get_mut(&which) else {
            return;
        };
        observer.open = false;
        if let Some((key, receiver)) = observer.waiting.take()
            && !self.notify(which, Some((key, receiver)), cx)
        {
            cx.core
                .ledger
                .failed(&key, receiver, Outcome::Dropped, cx.out);
        }
    }
}

/// Returns the offset of the block that a request names, and the exponent of its size.
fn wanted(request: &Message, cx: &Context) -> (usize, u8) {
    let own = cx.core.settings.block;
    request
        .block(BLOCK2)
        .map_or((0, own), |block| (block.from(), own.min(block.exponent)))
}

fn reply(request: &Identity) -> Vec<u8> {
    let mut body = Vec::new();
    peers::reply(request, &mut body);
    body
}

impl Side for Server {
    fn begin(&mut self, _cx: &mut Context) {}

    /// Notifies the observers of a new representation. Planned receivers that have not registered get
    /// nothing, and a notification that still waits for an earlier one's acknowledgement is dropped.
    fn due(&mut self, key: Key, body: Vec<u8>, cx: &mut Context) {
        let version = payload::read(&body).map_or(0, |one| one.seq as u32);
        self.sequence = (self.sequence + 1) % SEQUENCES;
        self.resource = Some((version, body));
        let planned = cx.core.ledger.receivers(&key);
        let all: Vec<_> = self.observers.keys().copied().collect();
        for (receiver, which) in all.iter().enumerate() {
            let of = Some((key, receiver)).filter(|_| planned.contains(&receiver));
            let Some(observer) = self.observers.get_mut(which) else {
                continue;
            };
            if observer.open {
                if let Some((old, receiver)) = std::mem::replace(&mut observer.waiting, of) {
                    cx.core
                        .ledger
                        .failed(&old, receiver, Outcome::Dropped, cx.out);
                }
            } else if !self.notify(*which, of, cx)
                && let Some((key, receiver)) = of
            {
                cx.core
                    .ledger
                    .failed(&key, receiver, Outcome::Dropped, cx.out);
            }
        }
        for receiver in planned.skip(all.len()) {
            cx.core
                .ledger
                .failed(&key, receiver, Outcome::Unsent, cx.out);
        }
    }

    fn receive(&mut self, request: Message, way: Way, cx: &mut Context) {
        if !request.is_request() {
            cx.core.foreign += 1;
            if request.kind != Kind::Acknowledgement {
                cx.core.layer.signal(Kind::Reset, request.id, way);
            }
            return;
        }
        let head = Message {
            kind: request.kind,
            id: request.id,
            token: request.token,
            ..Message::default()
        };
        let answer = if request.has_bad_option() {
            cx.core.foreign += 1;
            Some(Message::of(BAD_OPTION))
        } else {
            match request.code {
                GET => Some(self.get(&request, way, cx)),
                POST => self.post(&request, way, cx),
                _ => {
                    cx.core.foreign += 1;
                    Some(Message::of(NOT_ALLOWED))
                }
            }
        };
        match answer {
            Some(answer) => cx.core.layer.answer(&head, answer, way, cx.now),
            None if head.kind == Kind::Confirmable => {
                cx.core.layer.signal(Kind::Acknowledgement, head.id, way);
            }
            None => {}
        }
    }

    fn event(&mut self, event: Event, cx: &mut Context) {
        match event {
            Event::Acknowledged(own) => {
                cx.core.layer.settle(own.peer, own.id);
                if let Some(key) = own.key {
                    cx.core.ledger.confirmed(&key, cx.now, cx.out);
                }
                self.next_turn((own.peer, own.token), cx);
            }
            Event::Lost { own, .. } => {
                let gone = self.observers.remove(&(own.peer, own.token));
                if let Some((key, receiver)) = gone.and_then(|observer| observer.waiting) {
                    cx.core
                        .ledger
                        .failed(&key, receiver, Outcome::Unsent, cx.out);
                }
            }
            Event::Again(_) => {}
        }
    }
}
