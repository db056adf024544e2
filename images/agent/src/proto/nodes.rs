//! What nodes are made of: walls, network, files, and the programs that are started in them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of the machine's files the nodes of a lab do not see, though every user may read it, and where their output goes.
#[derive(Debug, Clone, Deserialize)]
pub struct Walls {
    #[serde(default)]
    pub hides: Vec<String>,
    /// Files of the lab's own that nodes find in the place of the machine's: place -> file. What it has not, stays absent.
    #[serde(default)]
    pub replaces: BTreeMap<String, String>,
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
    /// A directory with all files that the node has, in place of the machine's: a container image's.
    #[serde(default)]
    pub root: Option<String>,
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
    /// What it may write in all; None: as much as the walls allow each.
    #[serde(default)]
    pub disk_bytes: Option<u64>,
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
    /// Whose hardware addresses it knows for good.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// Whether its side of a TCP connection sends with the code point that the other side opened it with.
    #[serde(default)]
    pub reflect_dscp: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Neighbour {
    pub address: String,
    pub mac: String,
    pub device: String,
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
    /// Where it runs; None: in the node's own directory.
    #[serde(default)]
    pub workdir: Option<String>,
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
