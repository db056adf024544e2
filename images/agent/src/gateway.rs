//! Cooperative congestion control: `vnet-agent gateway FILE` on a routed node, `vnet-agent broker FILE` in a control
//! centre; FILE holds the settings. What it does is said on standard output, a line each.

mod broker;
mod flows;
mod governor;

use crate::clock;
use crate::os::{self, Res};
use serde::de::DeserializeOwned;
use std::os::fd::RawFd;

/// What could not be told is tried again so often.
const AGAIN_NS: i64 = 1_000_000_000;

/// Governs a link until the process is ended.
pub fn govern(file: &str) -> Res<()> {
    let mut gateway = governor::Gateway::open(settings(file)?)?;
    println!("vnet: ready");
    let (phase_ns, period_ns) = gateway.periods_ns();
    let mut next = clock::mono_ns() + phase_ns;
    loop {
        wait(&gateway.inbox.fds(), next)?;
        gateway.on_message()?;
        if clock::mono_ns() >= next {
            gateway.on_period()?;
            next = (next + period_ns).max(clock::mono_ns());
        }
    }
}

/// Keeps reservations until the process is ended.
pub fn serve(file: &str) -> Res<()> {
    let mut broker = broker::Broker::open(settings(file)?)?;
    println!("vnet: ready");
    loop {
        let again = clock::mono_ns() + AGAIN_NS;
        wait(
            &broker.inbox.fds(),
            broker.deadline().map_or(again, |at| at.min(again)),
        )?;
        broker.on_message();
        broker.on_time()?;
    }
}

fn settings<T: DeserializeOwned>(file: &str) -> Res<T> {
    let text = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{file}: {e}"))
}

/// Until one of them can be read, or a moment of the monotonic clock.
fn wait(fds: &[RawFd], until_ns: i64) -> Res<()> {
    let left = (until_ns - clock::mono_ns()).max(0);
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: *fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let milliseconds = i32::try_from((left + 999_999) / 1_000_000).unwrap_or(i32::MAX);
    os::poll(&mut polled, milliseconds)
        .map(drop)
        .map_err(|e| e.to_string())
}
