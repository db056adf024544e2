//! Defines the requests that sample nodes and links, prove links, and capture frames.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct SampleNode {
    pub node: String,
    #[serde(default)]
    pub cpu: Vec<String>,
    pub memory: Option<String>,
    /// The peers of the node's interfaces, in the core namespace.
    #[serde(default)]
    pub ports: Vec<String>,
    /// The node's interfaces without a peer in the core namespace (wires to other nodes, NICs), which are
    /// counted in the node's own namespace.
    #[serde(default)]
    pub own: Vec<String>,
    #[serde(default)]
    pub netns: String,
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

/// A queue below the link's root: a qdisc with its handle (major number in the upper 16 bits), or one tin of
/// a CAKE qdisc.
#[derive(Debug, Clone, Deserialize)]
pub struct SampleClass {
    pub class: String,
    pub handle: u32,
    #[serde(default)]
    pub tin: Option<u16>,
    /// Offset, in bytes, of the count of packets marked by ECN in the qdisc's own statistics.
    #[serde(default)]
    pub marked_at: Option<u16>,
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

#[derive(Debug, Clone, Default, Deserialize)]
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
    /// Number of frames that are sent together, at least 1 and at most 64; batches are `batch` intervals
    /// apart.
    #[serde(default)]
    pub batch: u32,
    /// Whether the answer leaves out delays and arrivals.
    #[serde(default)]
    pub counts_only: bool,
}

/// A capture of the frames of one device into a file.
#[derive(Debug, Clone, Deserialize)]
pub struct Capture {
    pub name: String,
    pub netns: String,
    pub device: String,
    pub file: String,
    pub snaplen: u32,
    pub ring_bytes: usize,
    /// The filter's instructions in classic BPF: code, offsets of the jumps if true and if false, operand.
    /// Empty: all frames.
    #[serde(default)]
    pub filter: Vec<(u16, u8, u8, u32)>,
}
