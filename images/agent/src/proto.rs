//! The requests of docs/contracts.md that carry structure, and the parts of the plan that the agent is given.

use crate::os::Res;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of the machine's files the nodes of a lab do not see, though every user may read it, and where their output goes.
#[derive(Debug, Clone, Deserialize)]
pub struct Walls {
    #[serde(default)]
    pub hides: Vec<String>,
    /// The one directory outside of the node where the agent opens logs.
    #[serde(default)]
    pub logs: Option<String>,
    /// What a node may write in all: its directory, /tmp, /run, /var/tmp, /dev/shm.
    pub disk_bytes: u64,
}

/// What of the machine's files is opened for one node.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opened {
    /// Read only; must exist.
    #[serde(default)]
    pub sees: Vec<String>,
    /// Must exist.
    #[serde(default)]
    pub writes: Vec<String>,
    /// Files that a command names: read only, where they exist and all may read them.
    #[serde(default)]
    pub names: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct CreateNode {
    pub name: String,
    /// None: the namespaces that the launcher itself is in, as in a VM of its own.
    #[serde(default)]
    pub netns: Option<String>,
    pub hostname: String,
    #[serde(default)]
    pub cgroup_procs: Vec<String>,
    #[serde(default)]
    pub ipv6: bool,
    #[serde(default)]
    pub opened: Opened,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Interface {
    pub name: String,
    /// None: up and without offloads, but no address (a port of a bridge).
    pub address: Option<String>,
    #[serde(default)]
    pub prefix: u8,
    pub mtu: u32,
    pub mac: String,
}

impl Interface {
    /// Whether its address is of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.address.as_ref().is_some_and(|a| a.contains(':'))
    }
}

/// Subnets that are reached through a neighbour, or through several in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub to: Vec<String>,
    pub via: Vec<String>,
}

/// What a node's part in the network is.
#[derive(Debug, Clone, Deserialize)]
pub struct Network {
    pub interfaces: Vec<Interface>,
    /// Whether it passes on what is not its own.
    #[serde(default)]
    pub forward: bool,
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Whether its side of a TCP connection sends with the code point that the other side opened it with.
    #[serde(default)]
    pub reflect_dscp: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct File {
    pub path: String,
    pub content: String,
    #[serde(default = "default_mode")]
    pub mode: u32,
}

fn default_mode() -> u32 {
    0o644
}

#[derive(Debug, Clone, Deserialize)]
pub struct Probe {
    pub tcp_port: Option<u16>,
    pub log: Option<String>,
    pub command: Option<Vec<String>>,
    #[serde(default = "default_deadline")]
    pub deadline_ns: i64,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            tcp_port: None,
            log: None,
            command: None,
            deadline_ns: default_deadline(),
        }
    }
}

fn default_deadline() -> i64 {
    10_000_000_000
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    #[default]
    Never,
    OnFailure,
    Always,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    #[default]
    Running,
    Exited,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Process {
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub files: Vec<File>,
    #[serde(default)]
    pub ready: Probe,
    #[serde(default)]
    pub restart: Restart,
    #[serde(default)]
    pub expect: Expect,
}

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

/// A program to start.
#[derive(Debug, Clone, Deserialize)]
pub struct Software {
    pub name: String,
    pub process: Option<Process>,
    /// The kind's own; `accounts`: what a program that accounts for its messages is told.
    #[serde(default)]
    pub spec: serde_json::Value,
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

#[derive(Debug, Clone, Deserialize)]
pub struct SampleNode {
    pub node: String,
    #[serde(default)]
    pub cpu: Vec<String>,
    pub memory: Option<String>,
    /// The ends of its interfaces in the core namespace.
    #[serde(default)]
    pub ports: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct SampleLink {
    pub link: String,
    pub direction: String,
    pub netns: String,
    pub device: String,
    #[serde(default)]
    pub classes: Vec<SampleClass>,
}

/// A queue below the link's root: a qdisc by its handle (major number in the upper 16 bits), or one tin of it.
#[derive(Debug, Clone, Deserialize)]
pub struct SampleClass {
    pub class: String,
    pub handle: u32,
    #[serde(default)]
    pub tin: Option<u16>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Sample {
    pub interval_ns: i64,
    pub dir: String,
    #[serde(default)]
    pub core: Option<String>,
    #[serde(default)]
    pub nodes: Vec<SampleNode>,
    #[serde(default)]
    pub links: Vec<SampleLink>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct LinkProbe {
    pub link: String,
    pub direction: String,
    pub netns: String,
    pub device: String,
    pub far_netns: String,
    pub far_device: String,
    pub count: u32,
    pub size: usize,
    #[serde(default)]
    pub start_ns: i64,
    pub interval_ns: i64,
    pub timeout_ns: i64,
}

/// Reads a structure out of a request, naming the operation when it does not fit.
pub fn parse<T: serde::de::DeserializeOwned>(
    op: &str,
    value: serde_json::Value,
) -> crate::os::Res<T> {
    serde_json::from_value(value)
        .map_err(|e| format!("{op}: request does not fit the contract: {e}; see docs/contracts.md"))
}
