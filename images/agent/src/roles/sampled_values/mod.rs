//! Sampled values (IEC 61850-9-2, by the guideline 9-2LE): a stream of samples to a group, and who takes streams.
//!
//! The message is a frame. What carries its number is smpCnt, which begins anew with each second of the lab's clock.

mod counting;
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

/// A publisher, or a subscriber whose socket is there.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    Ok(match spec.publish {
        Some(publish) => Box::new(publisher::Publisher::new(item, publish)?),
        None => Box::new(subscriber::Subscriber::new(item, spec.subscribe)?),
    })
}

#[cfg(test)]
mod tests;
