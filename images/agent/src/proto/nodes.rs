//! The parts of a node: sandbox, network, files and programs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sandbox of all nodes of a lab.
#[derive(Debug, Clone, Deserialize)]
pub struct SandboxSpec {
    /// Paths to hide, though every user of the host may read them.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Path on the host -> file of the lab that replaces it; paths that the host lacks stay absent.
    #[serde(default)]
    pub replaced: BTreeMap<String, String>,
    /// The only directory outside the node where the agent opens files: logs.
    #[serde(default)]
    pub logs: Option<String>,
    /// The most that a node may write to its directory, /tmp, /run, /var/tmp and /dev/shm together.
    pub disk_bytes: u64,
}

/// Paths of the host that one node shares.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mounts {
    /// Read only; must exist.
    #[serde(default)]
    pub read: Vec<String>,
    /// Must exist.
    #[serde(default)]
    pub write: Vec<String>,
    /// Files that a command names: read only, shared where they exist and every user may read them.
    #[serde(default)]
    pub named: Vec<String>,
    /// The unpacked container image that replaces the host's files.
    #[serde(default)]
    pub root: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct CreateNode {
    pub name: String,
    /// None: the launcher's own namespaces, as in a VM.
    #[serde(default)]
    pub netns: Option<String>,
    pub hostname: String,
    #[serde(default)]
    pub cgroup_procs: Vec<String>,
    #[serde(default)]
    pub ipv6: bool,
    #[serde(default)]
    pub mounts: Mounts,
    /// The most that it may write; None: the sandbox's value.
    #[serde(default)]
    pub disk_bytes: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Interface {
    pub name: String,
    /// None for a port of a bridge, which is up and has no offloads.
    pub address: Option<String>,
    #[serde(default)]
    pub prefix: u8,
    pub mtu: u32,
    pub mac: String,
}

impl Interface {
    /// Whether it has an IPv6 address.
    pub fn is_ipv6(&self) -> bool {
        self.address.as_ref().is_some_and(|a| a.contains(':'))
    }
}

/// Subnets behind a neighbour, or behind several (ECMP).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub to: Vec<String>,
    pub via: Vec<String>,
}

/// A node's network configuration.
#[derive(Debug, Clone, Deserialize)]
pub struct Network {
    pub interfaces: Vec<Interface>,
    /// Whether it forwards packets.
    #[serde(default)]
    pub forward: bool,
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Permanent neighbour entries.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// Whether its TCP servers send with the DSCP of the client's SYN (tcp_reflect_tos).
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
    /// Working directory; None: the node's own directory.
    #[serde(default)]
    pub workdir: Option<String>,
}

/// A program to start in a node.
#[derive(Debug, Clone, Deserialize)]
pub struct Software {
    pub name: String,
    pub process: Option<Process>,
    /// Settings of the kind; `accounts` are the settings of a program that records its own messages.
    #[serde(default)]
    pub spec: serde_json::Value,
}
