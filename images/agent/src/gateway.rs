//! Runs cooperative congestion control: `vnet-agent gateway FILE` on a routed node, `vnet-agent
//! reservations FILE` in a control centre. FILE holds the settings as JSON. Both print each action as a
//! line on standard output.

mod broker;
mod flows;
mod governor;
mod messages;
mod overlay;
mod queue;
mod red;

use crate::clock;
use crate::control_messages::Outbox;
use crate::os::{self, Res};
use serde::de::DeserializeOwned;
use std::os::fd::RawFd;

/// The longest time between two attempts of the broker to send unsent messages.
const RETRY_NS: i64 = 1_000_000_000;

/// Runs a gateway, which sets the shares of a link, until the process ends; `file` holds its settings.
pub fn govern(file: &str) -> Res<()> {
    let mut gateway = governor::Gateway::open(settings(file)?)?;
    println!("vnet: ready");
    let (phase_ns, period_ns) = gateway.periods_ns();
    let mut next = clock::mono_ns() + phase_ns;
    loop {
        wait(gateway.fds(), next.min(gateway.deadline().unwrap_or(next)))?;
        gateway.forward()?;
        gateway.on_message()?;
        if clock::mono_ns() >= next {
            gateway.on_period()?;
            next = (next + period_ns).max(clock::mono_ns());
        }
        gateway.send();
    }
}

/// Runs the bandwidth broker, which grants reservations, until the process ends; `file` holds its settings.
pub fn serve(file: &str) -> Res<()> {
    let mut broker = broker::Broker::open(settings(file)?)?;
    println!("vnet: ready");
    loop {
        let retry = clock::mono_ns() + RETRY_NS;
        wait(
            broker.fds(),
            broker.deadline().map_or(retry, |at| at.min(retry)),
        )?;
        broker.on_message();
        broker.on_time()?;
    }
}

fn send<'a>(outboxes: impl Iterator<Item = &'a mut Outbox>) {
    for outbox in outboxes {
        match outbox.send() {
            Ok(true) => println!("told {:.3} {}", clock::lab_ns() as f64 / 1e9, outbox.to),
            Ok(false) => {}
            Err(text) => println!("not told: {text}"),
        }
    }
}

pub fn settings<T: DeserializeOwned>(file: &str) -> Res<T> {
    let text = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{file}: {e}"))
}

/// Waits until a descriptor of `read` is readable, one of `written` is writable, or the monotonic clock
/// reaches `until_ns`.
pub fn wait((read, written): (Vec<RawFd>, Vec<RawFd>), until_ns: i64) -> Res<()> {
    let left = (until_ns - clock::mono_ns()).max(0);
    let polled = |fd: RawFd, events| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let read = read.into_iter().map(|fd| polled(fd, libc::POLLIN));
    let written = written.into_iter().map(|fd| polled(fd, libc::POLLOUT));
    let mut all: Vec<libc::pollfd> = read.chain(written).collect();
    os::poll_ns(&mut all, left)
        .map(drop)
        .map_err(|e| e.to_string())
}
