//! GOOSE (IEC 61850-8-1): events whose state is sent again and again to a group, and who takes them.
//!
//! The message is an event. What carries its number is stNum, which is never 0 or 1: those are reserved and the beginning.

mod curve;
mod frame;
mod publisher;
mod subscriber;

use super::Role;
use crate::os::Res;
use crate::proto::{self, Item};
use serde::Deserialize;

#[derive(Deserialize)]
struct Spec {
    publish: Option<publisher::Spec>,
    #[serde(default)]
    subscribe: Vec<subscriber::Spec>,
}

/// A publisher, or a subscriber whose sockets are there.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    Ok(match spec.publish {
        Some(publish) => Box::new(publisher::Publisher::new(item, publish)?),
        None => Box::new(subscriber::Subscriber::new(item, spec.subscribe)?),
    })
}

#[cfg(test)]
mod tests;
