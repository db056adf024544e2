//! What roles of the agent play: sessions, the flows that they send, and what they count of it.

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
    /// Evenly spaced, all senders at the same times.
    Together,
}

/// From `from_ns` on, `per_s` ticks a second.
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
    /// Messages at every tick.
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
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    Publish,
    Request,
    Push,
    Stream,
}

/// What of a flow its sender needs to know.
#[derive(Debug, Clone, Deserialize)]
pub struct Flow {
    /// Its name in records and payloads.
    pub number: u32,
    pub pattern: Pattern,
    pub payload: Payload,
    /// None: greedy.
    pub schedule: Option<Schedule>,
    pub start_ns: i64,
    pub stop_ns: i64,
    pub reply: Option<Payload>,
    #[serde(default)]
    pub spread: Spread,
}

impl Flow {
    /// Whether its messages and answers have at most so many bytes; else why not.
    pub fn fits(&self, most: usize) -> Res<()> {
        let answer = self.reply.as_ref().map_or(0, |reply| reply.bytes);
        let longest = self.payload.bytes.max(answer);
        if longest <= most {
            return Ok(());
        }
        Err(format!(
            "flow {}: {longest} bytes are too long a message; ask for {most} at most",
            self.number
        ))
    }
}

/// To whom of a flow's receivers a message goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    #[default]
    All,
    /// To one: number seq modulo their count.
    RoundRobin,
}

/// A life of a flow's sender before this one, which its machine's end cut off. Offsets count from t0.
#[derive(Debug, Clone, Deserialize)]
pub struct Earlier {
    /// All messages below it stand in the records, but for those of `open`.
    pub next: u64,
    #[serde(default)]
    pub open: Vec<u64>,
    pub ended_ns: i64,
    /// When the machine was up again.
    pub begins_ns: i64,
}

/// When a role comes and goes (offsets from t0), and its name in records.
#[derive(Debug, Clone, Deserialize)]
pub struct Session {
    pub endpoint: String,
    pub connect_ns: i64,
    pub disconnect_ns: i64,
    /// A server's side, which is there from the start and not counted as a client.
    #[serde(default)]
    pub listens: bool,
}

/// A software that is a role of the agent.
#[derive(Debug, Clone, Deserialize)]
pub struct Played {
    pub name: String,
    pub kind: String,
    pub session: Session,
    /// The kind's own.
    pub spec: serde_json::Value,
}

/// One item of `workload`: a role, the flows that it sends, and by their numbers what came before.
#[derive(Debug, Clone, Deserialize)]
pub struct Item {
    pub software: Played,
    #[serde(default)]
    pub flows: Vec<Flow>,
    #[serde(default)]
    pub earlier: BTreeMap<u32, Earlier>,
}

/// Message counts since `go`; `pending` of them are not settled yet.
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
