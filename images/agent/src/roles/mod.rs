//! Defines roles: software whose protocol the agent itself speaks. Each kind is a module behind one trait.
//!
//! A role is a state machine: it receives the time as an argument, appends records to `out`, and runs in
//! the node's only thread. Times are Unix nanoseconds of the lab's clock.

mod amqp;
mod broker_client;
mod bulk;
mod datagrams;
mod goose;
mod iec61850;
mod ledger;
mod mqtt;
mod peers;
mod rate_limits;
mod rates_wanted;
mod resume;
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
    /// Sets t0, from which the offsets of the plan count; a second call changes nothing.
    fn go(&mut self, t0_ns: i64);
    /// Returns when to call `on_time` next; None if nothing is planned.
    fn deadline(&self) -> Option<i64>;
    /// Passes each descriptor to poll to `wait_for`, with whether to poll it for writing too.
    fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool));
    /// Handles a ready descriptor; appends records to `out`.
    fn on_ready(&mut self, fd: RawFd, revents: i16, now: i64, out: &mut Vec<u8>);
    /// Performs everything that is due at `now`.
    fn on_time(&mut self, now: i64, out: &mut Vec<u8>);
    /// Stops the schedule, disconnects and records the outcome of every message.
    fn finish(&mut self, now: i64, out: &mut Vec<u8>);
    /// Returns the message counts; leaves out connected sessions and clients, which the node counts.
    fn totals(&self) -> Totals;
    fn connected(&self) -> bool;
}

/// Returns the first of the times that are planned; None if none is.
fn earliest<const N: usize>(times: [Option<i64>; N]) -> Option<i64> {
    times.into_iter().flatten().min()
}

type Arm = fn(Item) -> Res<Box<dyn Role>>;

/// The function that creates ("arms") a role, for each kind of software. It checks the specification and
/// binds listening sockets; a role sends nothing before `go`.
static KINDS: [(&str, Arm); 10] = [
    ("amqp", amqp::arm),
    ("bulk", bulk::arm),
    ("goose", goose::arm),
    ("http", tcp::arm),
    ("mqtt", mqtt::arm),
    ("sampled-values", sampled_values::arm),
    ("synchrophasor", synchrophasor::arm),
    ("tcp", tcp::arm),
    ("udp", udp::arm),
    ("zeromq", zeromq::arm),
];

/// Passes bytes of a peer to the parser of the role with number `which`, without a socket.
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

/// Creates the role of an item of `workload`; an error for an unknown kind, or if the kind refuses the
/// settings.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    let (name, kind) = (item.software.name.clone(), item.software.kind.as_str());
    let Some((_, arm)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
        return Err(format!(
            "software {name}: kind: \"{kind}\" is no role of the agent; write one of {known:?}"
        ));
    };
    arm(item).map_err(|e| format!("software {name}: {e}"))
}
