//! Implements the state machine of one AMQP connection with one channel: it receives bytes and times, and
//! returns bytes and events, without any I/O.

mod content;
mod setup;

use super::methods::{self, CHANNEL, Method};
use super::spec::Spec;
use super::wire::{self, AROUND, BODY, HEADER, HEARTBEAT, METHOD, put_frame};
use content::Content;
use setup::Step;
use std::collections::VecDeque;

const GREETING: &[u8] = b"AMQP\x00\x00\x09\x01";
const FRAME_MOST: u32 = 131_072;
const BASIC: u16 = 60;
/// The property flag that announces a delivery mode, the fourth flag from the left.
const WITH_DELIVERY_MODE: u16 = 1 << 12;
const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;
const SECOND: i64 = 1_000_000_000;

/// An event that the state machine reports to the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The broker has accepted the login.
    Connected,
    /// The subscription is active.
    Subscribed,
    /// The setup is complete; the client may publish.
    Ready,
    Confirmed {
        tag: u64,
        multiple: bool,
        taken: bool,
    },
    Message {
        redelivered: bool,
        body: Vec<u8>,
    },
    /// A fault of the broker that does not end the connection.
    Warning(String),
    /// The connection is unusable, with the reason.
    Closed(String),
}

pub struct Connection {
    spec: Spec,
    /// Bytes for the broker; the caller sends and removes them.
    pub output: Vec<u8>,
    input: Vec<u8>,
    /// Remaining setup steps; the first one has been requested and is not answered yet.
    steps: VecDeque<Step>,
    frame_most: usize,
    queue: String,
    content: Option<Content>,
    next_tag: u64,
    heartbeat_ns: Option<i64>,
    heard_ns: i64,
    said_ns: i64,
    over: bool,
}

impl Connection {
    /// Starts a connection: the output holds the protocol header.
    pub fn new(spec: Spec, now: i64) -> Self {
        Self {
            steps: setup::steps(&spec),
            output: GREETING.to_vec(),
            input: Vec::new(),
            frame_most: FRAME_MOST as usize,
            queue: String::new(),
            content: None,
            next_tag: 1,
            heartbeat_ns: None,
            heard_ns: now,
            said_ns: now,
            over: false,
            spec,
        }
    }

    /// Returns when to call `on_time` next; None without heartbeats.
    pub fn deadline(&self) -> Option<i64> {
        let each = self.heartbeat_ns?;
        Some((self.said_ns + each / 2).min(self.heard_ns + 2 * each))
    }

    /// Sends heartbeats, and closes the connection after two intervals without bytes from the broker
    /// (specification, 4.2.7).
    pub fn on_time(&mut self, now: i64, events: &mut Vec<Event>) {
        let Some(each) = self.heartbeat_ns else {
            return;
        };
        if now >= self.heard_ns + 2 * each {
            self.end("no heartbeat in time".to_owned(), events);
        } else if now >= self.said_ns + each / 2 {
            put_frame(&mut self.output, HEARTBEAT, 0, |_| {});
            self.said_ns = now;
        }
    }

    /// Records that the socket has accepted bytes at `now`, which postpones the next heartbeat.
    pub fn sent(&mut self, now: i64) {
        self.said_ns = now;
    }

    /// Processes bytes from the broker and appends events; keeps an incomplete frame for the next call.
    pub fn receive(&mut self, bytes: &[u8], now: i64, events: &mut Vec<Event>) {
        self.heard_ns = now;
        let kept = std::mem::take(&mut self.input);
        if kept.is_empty() {
            let used = self.frames(bytes, events);
            self.input = bytes[used..].to_vec();
        } else {
            let mut all = kept;
            all.extend_from_slice(bytes);
            let used = self.frames(&all, events);
            all.drain(..used);
            self.input = all;
        }
    }

    /// Processes the complete frames in `bytes`, until the connection ends; returns their total length.
    fn frames(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> usize {
        let mut used = 0;
        while !self.over {
            match wire::frame(&bytes[used..], self.frame_most) {
                Ok(None) => break,
                Ok(Some((frame, size))) => {
                    used += size;
                    self.on_frame(&frame, events);
                }
                Err(why) => self.end(why, events),
            }
        }
        used
    }

    fn on_frame(&mut self, frame: &wire::Frame, events: &mut Vec<Event>) {
        match frame.kind {
            METHOD => match methods::understand(frame.payload) {
                Some(method) => self.on_method(method, events),
                None => self.end("a method lacks arguments".to_owned(), events),
            },
            HEADER if frame.channel == CHANNEL => self.on_header(frame.payload, events),
            BODY if frame.channel == CHANNEL => self.on_body(frame.payload, events),
            _ => {}
        }
    }

    fn on_method(&mut self, method: Method, events: &mut Vec<Event>) {
        match method {
            Method::Deliver { tag, redelivered } => {
                self.content = Some(Content::new(tag, redelivered));
            }
            Method::Confirmed {
                tag,
                multiple,
                taken,
            } => events.push(Event::Confirmed {
                tag,
                multiple,
                taken,
            }),
            Method::ConnectionClose(why) => {
                methods::close_ok(&mut self.output);
                self.end(format!("closed by the broker: {why}"), events);
            }
            Method::ChannelClose(why) => {
                methods::channel_close_ok(&mut self.output);
                methods::close(&mut self.output);
                self.end(format!("channel closed by the broker: {why}"), events);
            }
            Method::ConsumerCancelled => {
                let why = "the broker ended the consumer: its queue is gone".to_owned();
                events.push(Event::Warning(why));
            }
            Method::Blocked(why) => {
                events.push(Event::Warning(format!("blocked by the broker: {why}")));
            }
            Method::Unblocked => events.push(Event::Warning("no longer blocked".to_owned())),
            method => self.on_answer(method, events),
        }
    }

    /// Handles the broker's answer to the present setup step, and requests the next step; any other method
    /// ends the connection.
    fn on_answer(&mut self, method: Method, events: &mut Vec<Event>) {
        match (self.steps.front().copied(), method) {
            (Some(Step::Login), Method::Start { mechanisms }) => {
                if !mechanisms.split(' ').any(|one| one == "PLAIN") {
                    return self.end(format!("no login by PLAIN, only by {mechanisms}"), events);
                }
                methods::start_ok(&mut self.output, &self.spec);
                self.steps.pop_front();
                return;
            }
            (Some(Step::Tune), Method::Tune { frame_most }) => self.tune(frame_most),
            (Some(Step::Open), Method::ConnectionOpen) => events.push(Event::Connected),
            (Some(Step::Queue), Method::QueueDeclared { name }) => self.queue = name,
            (Some(Step::Consume), Method::Consuming) => events.push(Event::Subscribed),
            (Some(Step::Channel), Method::ChannelOpen)
            | (Some(Step::PublishExchange | Step::ConsumeExchange), Method::ExchangeDeclared)
            | (Some(Step::Bind(_)), Method::QueueBound)
            | (Some(Step::Prefetch), Method::PrefetchSet)
            | (Some(Step::Confirms), Method::ConfirmsOn) => {}
            (step, method) => {
                return self.end(format!("{method:?} does not answer {step:?}"), events);
            }
        }
        self.steps.pop_front();
        match self.steps.front().copied() {
            Some(step) => step.ask(&mut self.output, &self.queue, &self.spec),
            None => events.push(Event::Ready),
        }
    }

    fn tune(&mut self, theirs: u32) {
        let frame_most = if theirs == 0 {
            FRAME_MOST
        } else {
            theirs.min(FRAME_MOST)
        };
        self.frame_most = frame_most as usize;
        let heartbeat_s = self.spec.heartbeat_s;
        self.heartbeat_ns = (heartbeat_s > 0).then(|| i64::from(heartbeat_s) * SECOND);
        methods::tune_ok(&mut self.output, frame_most, heartbeat_s);
    }

    fn on_header(&mut self, payload: &[u8], events: &mut Vec<Event>) {
        let content = self.content.as_mut();
        match content.and_then(|content| content.head(payload)) {
            Some(()) => self.complete(events),
            None => self.end("a message's header comes out of order".to_owned(), events),
        }
    }

    fn on_body(&mut self, payload: &[u8], events: &mut Vec<Event>) {
        let content = self.content.as_mut();
        match content.and_then(|content| content.add(payload)) {
            Some(()) => self.complete(events),
            None => self.end("a message's body comes out of order".to_owned(), events),
        }
    }

    fn complete(&mut self, events: &mut Vec<Event>) {
        let Some(content) = self.content.take_if(|content| content.is_whole()) else {
            return;
        };
        events.push(Event::Message {
            redelivered: content.redelivered,
            body: content.body,
        });
        if self.spec.consume.as_ref().is_some_and(|c| c.acknowledge) {
            methods::acknowledge(&mut self.output, content.tag);
        }
    }

    /// Appends a message to the output. Returns the number by which the broker will confirm it; None without
    /// confirms. Without settings for publishing appends nothing and returns None.
    pub fn publish(&mut self, body: &[u8]) -> Option<u64> {
        let publish = self.spec.publish.as_ref()?;
        let mode = if publish.persistent {
            PERSISTENT
        } else {
            TRANSIENT
        };
        methods::publish(&mut self.output, &publish.exchange.name, &publish.key);
        put_frame(&mut self.output, HEADER, CHANNEL, |out| {
            out.extend_from_slice(&BASIC.to_be_bytes());
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
            out.extend_from_slice(&WITH_DELIVERY_MODE.to_be_bytes());
            out.push(mode);
        });
        for piece in body.chunks(self.frame_most - AROUND) {
            put_frame(&mut self.output, BODY, CHANNEL, |out| {
                out.extend_from_slice(piece);
            });
        }
        if !publish.confirms {
            return None;
        }
        self.next_tag += 1;
        Some(self.next_tag - 1)
    }

    /// Requests the end of the connection, and ignores all later bytes from the broker.
    pub fn leave(&mut self) {
        methods::close(&mut self.output);
        self.over = true;
    }

    fn end(&mut self, why: String, events: &mut Vec<Event>) {
        self.over = true;
        self.heartbeat_ns = None;
        events.push(Event::Closed(why));
    }
}

#[cfg(test)]
mod tests;
