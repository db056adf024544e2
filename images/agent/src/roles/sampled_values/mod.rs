//! Implements sampled values (IEC 61850-9-2, guideline 9-2LE): a publisher sends a stream of samples to a
//! multicast group; subscribers receive it.
//!
//! A message of the load is a frame. Its number follows from smpCnt, which counts samples and restarts with
//! each second of the lab's clock.

mod counting;
mod frame;
mod publisher;
mod subscriber;

use super::{Role, iec61850};
use crate::os::Res;
use crate::proto::Item;

/// Creates a publisher if the settings have `publish`, otherwise a subscriber with open sockets, for an item
/// of `workload`. An error if the settings are invalid or the interface cannot be used.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    iec61850::arm(item, publisher::publisher, subscriber::subscriber)
}

#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = frame::read(bytes);
}

#[cfg(test)]
mod tests;
