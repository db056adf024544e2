//! Sampled values (IEC 61850-9-2, by the guideline 9-2LE): a stream of samples to a group, and who takes streams.
//!
//! The message is a frame. What carries its number is smpCnt, which begins anew with each second of the lab's clock.

mod counting;
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
