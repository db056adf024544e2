//! The requests of docs/contracts.md that carry structure, and the parts of the plan that the agent is given.

mod measuring;
mod nodes;
mod roles;

pub use measuring::{LinkProbe, Sample, SampleClass, SampleLink, SampleNode};
pub use nodes::{
    CreateNode, Expect, Interface, Neighbour, Network, Opened, Process, Restart, Route, Software,
    Walls,
};
pub use roles::{
    Arrivals, Earlier, Flow, Item, Pattern, Payload, Rate, Schedule, Session, Spread, StreamKind,
    Totals,
};

use crate::os::Res;

/// Reads a structure out of a request, naming the operation when it does not fit.
pub fn parse<T: serde::de::DeserializeOwned>(op: &str, value: serde_json::Value) -> Res<T> {
    serde_json::from_value(value)
        .map_err(|e| format!("{op}: request does not fit the contract: {e}; see docs/contracts.md"))
}
