//! Defines the parts of a node in requests: sandbox, network, files and programs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings of the sandbox that all nodes of a lab share.
#[derive(Debug, Clone, Deserialize)]
pub struct SandboxSpec {
    /// Paths that nodes do not see, though every user of the host may read them.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// For each path of the host, the file of the lab that replaces it; paths that the host lacks stay
    /// absent.
    #[serde(default)]
    pub replaced: BTreeMap<String, String>,
    /// The directory of logs, the only one outside the node where the agent opens files.
    #[serde(default)]
    pub logs: Option<String>,
    /// The most bytes that a node may write to its directory, /tmp, /run, /var/tmp and /dev/shm, all added
    /// up.
    pub disk_bytes: u64,
}

/// The paths of the host that a node sees besides its own file systems.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mounts {
    /// Paths that the node may read; they must exist.
    #[serde(default)]
    pub read: Vec<String>,
    /// Paths that the node may read and write; they must exist.
    #[serde(default)]
    pub write: Vec<String>,
    /// Files that a command names. They are mounted read only, and only if they exist and every user may read
    /// them.
    #[serde(default)]
    pub named: Vec<String>,
    /// Directories of which the node has a writable copy; they must exist.
    #[serde(default)]
    pub copy: Vec<String>,
    /// The unpacked container image that replaces the host's files; None: the node sees the host's.
    #[serde(default)]
    pub root: Option<String>,
    /// Whether the node has network cards of the machine, so that it sees their directories in /sys.
    #[serde(default)]
    pub cards: bool,
}

#[derive(Debug, Deserialize)]
pub struct CreateNode {
    pub name: String,
    /// Name of the node's network namespace; None: the launcher's own namespaces, as in a VM.
    #[serde(default)]
    pub netns: Option<String>,
    pub hostname: String,
    #[serde(default)]
    pub cgroup_procs: Vec<String>,
    #[serde(default)]
    pub ipv6: bool,
    #[serde(default)]
    pub mounts: Mounts,
    /// The most bytes that the node may write; None: the sandbox's value.
    #[serde(default)]
    pub disk_bytes: Option<u64>,
    /// The most bytes that the rings of all packet sockets of the node's programs may take together; None: no
    /// limit.
    #[serde(default)]
    pub ring_bytes: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Interface {
    pub name: String,
    /// The interface's IPv4 or IPv6 address; None for a port of a bridge, which needs none.
    pub address: Option<String>,
    #[serde(default)]
    pub prefix: u8,
    /// The interface's address of the other family, if it has IPv4 and IPv6.
    #[serde(default)]
    pub second: Option<String>,
    #[serde(default)]
    pub second_prefix: u8,
    pub mtu: u32,
    pub mac: String,
}

impl Interface {
    /// Returns the interface's addresses with their prefix lengths, at most one of each family.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, u8)> {
        let both = [
            (self.address.as_deref(), self.prefix),
            (self.second.as_deref(), self.second_prefix),
        ];
        both.into_iter()
            .filter_map(|(address, prefix)| Some((address?, prefix)))
    }

    /// Returns whether the interface has an IPv6 address.
    pub fn is_ipv6(&self) -> bool {
        self.addresses().any(|(address, _)| address.contains(':'))
    }
}

/// A route to the subnets `to` by the gateway `via`, or by several (ECMP).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub to: Vec<String>,
    pub via: Vec<String>,
}

/// A node's network configuration, as the operation `configure` receives it.
#[derive(Debug, Clone, Deserialize)]
pub struct Network {
    pub interfaces: Vec<Interface>,
    /// Whether the node forwards packets.
    #[serde(default)]
    pub forward: bool,
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Permanent entries of the neighbour table.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// Whether the node's TCP servers send with the DSCP of the client's SYN (tcp_reflect_tos).
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
    /// The program's working directory; None: the node's own directory.
    #[serde(default)]
    pub workdir: Option<String>,
    /// Whether the program writes the keys of its TLS connections to a file that the run keeps.
    #[serde(default)]
    pub tls_keys: bool,
}

/// A program that runs in a node.
#[derive(Debug, Clone, Deserialize)]
pub struct Software {
    pub name: String,
    pub process: Option<Process>,
    /// Settings of the software's kind; its member `accounts` is for a program that records its own messages.
    #[serde(default)]
    pub spec: serde_json::Value,
}
