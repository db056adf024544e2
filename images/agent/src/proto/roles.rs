//! Defines the settings of the agent's roles in requests (sessions, flows), and the message counts in
//! answers.

use crate::os::Res;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    Shared,
    Own,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    #[default]
    Periodic,
    Poisson,
    /// The ticks are evenly spaced, and all senders have the same ones.
    Together,
}

/// A step of a schedule's rate: from `from_ns` (an offset from t0) on, the schedule has `per_s` ticks a
/// second. A tick is a time at which messages are due.
#[derive(Debug, Clone, Deserialize)]
pub struct Rate {
    pub from_ns: i64,
    pub per_s: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Schedule {
    pub kind: StreamKind,
    pub rates: Vec<Rate>,
    pub seed: u64,
    #[serde(default)]
    pub index: u64,
    #[serde(default = "one")]
    pub count: u64,
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The number of messages that are due at each tick.
    #[serde(default = "once")]
    pub burst: u32,
}

fn one() -> u64 {
    1
}

fn once() -> u32 {
    1
}

#[derive(Debug, Clone, Deserialize)]
pub struct Payload {
    pub kind: String,
    /// The length of each payload; with `sizes` their mean.
    pub bytes: usize,
    /// The distribution of the lengths; None: all are equal.
    #[serde(default)]
    pub sizes: Option<Sizes>,
}

/// The distribution of lengths between `least` and `most` bytes, drawn by the seed for each message.
#[derive(Debug, Clone, Deserialize)]
pub struct Sizes {
    pub least: usize,
    pub most: usize,
    /// The scale in bytes of an exponential distribution that begins at `least` and is cut at `most`; None:
    /// all lengths are equally likely.
    #[serde(default)]
    pub scale: Option<f64>,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    Publish,
    Request,
    Push,
    Stream,
}

/// The settings of a flow that its sender needs. Times are offsets from t0.
#[derive(Debug, Clone, Deserialize)]
pub struct Flow {
    /// The number that identifies the flow in records and payloads.
    pub number: u32,
    pub pattern: Pattern,
    pub payload: Payload,
    /// The schedule of the messages; None for a greedy sender.
    pub schedule: Option<Schedule>,
    pub start_ns: i64,
    pub stop_ns: i64,
    pub reply: Option<Payload>,
    #[serde(default)]
    pub spread: Spread,
}

impl Flow {
    /// Returns an error if messages or replies are longer than `most` bytes.
    pub fn fits(&self, most: usize) -> Res<()> {
        let answer = self.reply.as_ref().map_or(0, |reply| reply.bytes);
        let longest = self.payload.bytes.max(answer);
        if longest <= most {
            return Ok(());
        }
        Err(format!(
            "flow {}: a message of {longest} bytes is too long; write {most} at most",
            self.number
        ))
    }
}

/// Selects which of a flow's receivers get a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    #[default]
    All,
    /// Each message goes to one receiver: the one with index seq modulo the number of receivers.
    RoundRobin,
}

/// The point at which a flow's sender resumes after its machine has restarted. Times are offsets from t0.
#[derive(Debug, Clone, Deserialize)]
pub struct ResumePoint {
    /// The number below which all messages have records, except those in `open`.
    pub next: u64,
    #[serde(default)]
    pub open: Vec<u64>,
    pub ended_ns: i64,
    /// The time at which the machine runs again, as an offset from t0.
    pub begins_ns: i64,
}

/// The session of a role: when it connects and disconnects (offsets from t0), and its name in records.
#[derive(Debug, Clone, Deserialize)]
pub struct Session {
    pub endpoint: String,
    pub connect_ns: i64,
    pub disconnect_ns: i64,
    /// Whether the role is a server, which listens from the start and does not count as a client.
    #[serde(default)]
    pub listens: bool,
}

/// Software whose protocol the agent itself speaks (a role).
#[derive(Debug, Clone, Deserialize)]
pub struct Played {
    pub name: String,
    pub kind: String,
    pub session: Session,
    /// The settings of this kind of software.
    pub spec: serde_json::Value,
}

/// One item of `workload`: a role, its flows, and the resume points of flows that resume, by flow number.
#[derive(Debug, Clone, Deserialize)]
pub struct Item {
    pub software: Played,
    #[serde(default)]
    pub flows: Vec<Flow>,
    #[serde(default)]
    pub resume: BTreeMap<u32, ResumePoint>,
}

/// Message counts of a role or node since `go`; `pending` counts messages without a final record.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Totals {
    pub scheduled: u64,
    pub sent: u64,
    pub settled: u64,
    pub received: u64,
    pub dropped: u64,
    pub foreign: u64,
    pub pending: u64,
    pub connected: u64,
    pub clients: u64,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, o: Self) {
        self.scheduled += o.scheduled;
        self.sent += o.sent;
        self.settled += o.settled;
        self.received += o.received;
        self.dropped += o.dropped;
        self.foreign += o.foreign;
        self.pending += o.pending;
        self.connected += o.connected;
        self.clients += o.clients;
    }
}
