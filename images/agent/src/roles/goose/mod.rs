//! Implements GOOSE (IEC 61850-8-1): a publisher sends its state to a multicast group after each event and
//! retransmits it; subscribers receive it.
//!
//! A message of the load is an event, a change of the state. stNum carries its number, beginning at 2,
//! since 0 is reserved and 1 is the initial state.

mod curve;
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
