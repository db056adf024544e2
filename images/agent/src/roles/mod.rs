//! What the agent itself plays in the network: each kind of software is a room of its own behind one trait.
//!
//! A role is a state machine: the clock is an argument, records are appended to `out`, and all of it runs in the node's
//! one thread. Times are the lab's clock in Unix nanoseconds.

mod amqp;
mod books;
mod broker_client;
mod bulk;
mod datagrams;
mod earlier;
mod goose;
mod iec61850;
mod mqtt;
mod orders;
mod peers;
mod sampled_values;
mod sends;
pub mod socket;
mod synchrophasor;
mod tcp;
#[cfg(test)]
mod testing;
mod udp;
mod zeromq;

use crate::os::Res;
use crate::proto::{Item, Totals};
use std::os::fd::RawFd;

pub trait Role {
    /// Offsets count from t0; a second call changes nothing.
    fn go(&mut self, t0_ns: i64);
    /// When `on_time` has something to do.
    fn deadline(&self) -> Option<i64>;
    /// Names each descriptor to wait for, and whether writing is wanted.
    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool));
    /// One of the descriptors is ready.
    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>);
    /// Does what is due.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>);
    /// Stops scheduling new messages, leaves the network and writes down what became of every message.
    fn finish(&mut self, now: i64, out: &mut Vec<u8>);
    /// Counts of messages; sessions are counted by the node.
    fn totals(&self) -> Totals;
    fn connected(&self) -> bool;
}

type Arm = fn(Item) -> Res<Box<dyn Role>>;

/// By kind of software. Arming checks the specification and binds what listens; nothing is sent before `go`.
static KINDS: [(&str, Arm); 9] = [
    ("amqp", amqp::arm),
    ("bulk", bulk::arm),
    ("goose", goose::arm),
    ("mqtt", mqtt::arm),
    ("sampled-values", sampled_values::arm),
    ("synchrophasor", synchrophasor::arm),
    ("tcp", tcp::arm),
    ("udp", udp::arm),
    ("zeromq", zeromq::arm),
];

/// What peers send to a role, where it is taken apart without a socket.
#[cfg(feature = "fuzzing")]
pub fn fuzz(which: u8, bytes: &[u8]) {
    match which {
        0 => amqp::fuzz(bytes),
        1 => goose::fuzz(bytes),
        2 => mqtt::fuzz(bytes),
        3 => sampled_values::fuzz(bytes),
        4 => synchrophasor::fuzz(bytes),
        _ => tcp::fuzz(bytes),
    }
}

/// The role that an item of `workload` asks for.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    let (name, kind) = (item.software.name.clone(), item.software.kind.as_str());
    let Some((_, arm)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
        return Err(format!(
            "software {name}: kind: \"{kind}\" is not played by the agent; write one of {known:?}"
        ));
    };
    arm(item).map_err(|e| format!("software {name}: {e}"))
}
