//! Defines roles: software whose protocol the agent itself speaks. Each kind is a module behind one trait.
//!
//! A role is a state machine: it receives the time as an argument, appends records to `out`, and runs in
//! the node's only thread. Times are Unix nanoseconds of the lab's clock.

mod broker_client;
mod datagrams;
mod iec61850;
mod ledger;
mod peers;
mod rate_limits;
mod rates_wanted;
mod resume;
pub mod sends;
pub mod socket;
#[cfg(test)]
mod testing;

use crate::os::Res;
use crate::proto::{Item, Totals};
use std::os::fd::RawFd;
use std::sync::OnceLock;

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

/// Returns the earliest of the planned times; None if no time is planned.
fn earliest<const N: usize>(times: [Option<i64>; N]) -> Option<i64> {
    times.into_iter().flatten().min()
}

/// Creates a role for an item of `workload`.
pub type Arm = fn(Item) -> Res<Box<dyn Role>>;

/// Declares the modules of the roles. Lists the kinds of software of each module, with the function that
/// creates ("arms") a role for them: it checks the specification and binds listening sockets; a role sends
/// nothing before `go`. `fuzz` marks a module that can parse a peer's bytes without a socket. The position of
/// such a module is its number in the corpora of fuzzing, so a new role comes last.
macro_rules! roles {
    ($($module:ident: $($kind:literal),+ $(; $fuzz:ident)?)*) => {
        $(mod $module;)*
        static KINDS: &[(&str, Arm)] = &[$($(($kind, $module::arm),)+)*];
        #[cfg(feature = "fuzzing")]
        static FUZZED: &[fn(&[u8])] = &[$($($module::$fuzz,)?)*];
    };
}

roles! {
    amqp: "amqp"; fuzz
    bulk: "bulk"
    goose: "goose"; fuzz
    mqtt: "mqtt"; fuzz
    sampled_values: "sampled-values"; fuzz
    synchrophasor: "synchrophasor"; fuzz
    tcp: "http", "tcp"; fuzz
    udp: "udp"
    zeromq: "zeromq"
    coap: "coap"; fuzz
    nats: "nats"; fuzz
}

/// Passes bytes of a peer to the parser of a role, which `which` selects, without a socket.
#[cfg(feature = "fuzzing")]
pub fn fuzz(which: u8, bytes: &[u8]) {
    FUZZED[usize::from(which) % FUZZED.len()](bytes);
}

/// The roles that another binary has added.
static ADDED: OnceLock<&[(&str, Arm)]> = OnceLock::new();

/// Adds roles for further kinds of software, once in a process; an error if one of them has a role already.
pub fn add(roles: &'static [(&'static str, Arm)]) -> Res<()> {
    let mut names: Vec<&str> = kinds().chain(roles).map(|(name, _)| *name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
        let name = twice[0];
        return Err(format!(
            "kind \"{name}\" has two roles; give one of them another name"
        ));
    }
    let said = "roles were added before; add all of them at once".to_owned();
    ADDED.set(roles).map_err(|_| said)
}

fn kinds() -> impl Iterator<Item = &'static (&'static str, Arm)> {
    KINDS.iter().chain(ADDED.get().copied().unwrap_or_default())
}

/// Creates the role of an item of `workload`; an error for an unknown kind, or if the kind refuses the
/// settings.
pub fn arm(item: Item) -> Res<Box<dyn Role>> {
    let (name, kind) = (item.software.name.clone(), item.software.kind.as_str());
    let Some((_, arm)) = kinds().find(|(known, _)| *known == kind) else {
        let mut known: Vec<&str> = kinds().map(|(known, _)| *known).collect();
        known.sort_unstable();
        return Err(format!(
            "software {name}: kind: \"{kind}\" is no role of the agent; write one of {known:?}"
        ));
    };
    arm(item).map_err(|e| format!("software {name}: {e}"))
}
