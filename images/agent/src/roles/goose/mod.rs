//! GOOSE (IEC 61850-8-1): events whose state is sent again and again to a group, and who takes them.
//!
//! The message is an event. What carries its number is stNum, which is never 0 or 1: those are reserved and the beginning.

mod curve;
mod frame;
mod publisher;
mod subscriber;

use super::{Role, iec61850};
use crate::os::Res;
use crate::proto::Item;

/// A publisher, or a subscriber whose sockets are there.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    iec61850::arm(item, publisher::publisher, subscriber::subscriber)
}

#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = frame::read(bytes);
}

#[cfg(test)]
mod tests;
