//! Cooperative congestion control: `vnet-gateway gateway FILE` on a routed node, `vnet-gateway broker FILE` in a control
//! centre; FILE holds the settings. What it does is said on standard output, a line each.

mod broker;
mod flows;
mod gateway;

use serde::de::DeserializeOwned;
use std::os::fd::RawFd;
use std::process::ExitCode;
use vnet_agent::clock;
use vnet_agent::os::{self, Res};

const USAGE: &str = "usage: vnet-gateway (gateway | broker) FILE
       vnet-gateway --version";
/// What could not be told is tried again so often.
const AGAIN_NS: i64 = 1_000_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--version"] => {
            println!("vnet-gateway {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        ["gateway", file] => settings(file).and_then(|s| govern(gateway::Gateway::open(s)?)),
        ["broker", file] => settings(file).and_then(|s| serve(broker::Broker::open(s)?)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("vnet-gateway: {text}");
            ExitCode::FAILURE
        }
    }
}

fn settings<T: DeserializeOwned>(file: &str) -> Res<T> {
    let text = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{file}: {e}"))
}

fn govern(mut gateway: gateway::Gateway) -> Res<()> {
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

fn serve(mut broker: broker::Broker) -> Res<()> {
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
