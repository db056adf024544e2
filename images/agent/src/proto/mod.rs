//! Defines the structures of requests (docs/contracts.md) and of the parts of the plan that the agent
//! receives.

mod measuring;
mod nodes;
mod roles;

pub use measuring::{Capture, LinkProbe, Sample, SampleClass, SampleLink, SampleNode};
pub use nodes::{
    CreateNode, Expect, Interface, Mounts, Neighbour, Network, Process, Restart, Route,
    SandboxSpec, Software,
};
pub use roles::{
    Arrivals, Flow, Item, Pattern, Payload, Rate, ResumePoint, Schedule, Session, Spread,
    StreamKind, Totals,
};

use crate::os::Res;

/// Reads a structure from a request; the error names the operation `op`.
pub fn parse<T: serde::de::DeserializeOwned>(op: &str, value: serde_json::Value) -> Res<T> {
    serde_json::from_value(value)
        .map_err(|e| format!("{op}: request does not fit the contract: {e}; see docs/contracts.md"))
}
