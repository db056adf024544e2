//! Helps the tests of several roles: makes a flow, runs roles, and splits their records.

use super::Role;
use crate::{clock, os};
use serde_json::{Value, json};
use std::time::Duration;

pub const SECOND: i64 = 1_000_000_000;

/// Returns a flow of twenty messages in a tenth of a second; `reply`: bytes of a reply, None for no reply.
pub fn flow(pattern: &str, bytes: usize, reply: Option<usize>) -> Value {
    json!({
        "number": 4, "pattern": pattern, "payload": {"kind": "bytes", "bytes": bytes},
        "reply": reply.map(|bytes| json!({"kind": "bytes", "bytes": bytes})),
        "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 200}], "seed": 1},
        "start_ns": 0, "stop_ns": SECOND / 10,
    })
}

/// Splits records into those of sent messages (S), received messages (R) and sessions (C).
pub fn by_kind(records: Vec<u8>) -> (Vec<String>, Vec<String>, Vec<String>) {
    let text = String::from_utf8(records).unwrap();
    let of = |kind: &str| {
        let lines = text.lines().filter(|line| line.starts_with(kind));
        lines.map(str::to_owned).collect()
    };
    (of("S"), of("R"), of("C"))
}

/// Returns the poll set of a role.
pub fn poll_set(role: &(impl Role + ?Sized)) -> Vec<libc::pollfd> {
    let mut fds = Vec::new();
    role.fds(&mut |fd, write| {
        let events = libc::POLLIN | if write { libc::POLLOUT } else { 0 };
        fds.push(libc::pollfd {
            fd,
            events,
            revents: 0,
        });
    });
    fds
}

/// Polls a role's sockets for at most `wait_ms`, handles the ready ones, and calls `on_time`.
pub fn turn(role: &mut (impl Role + ?Sized), wait_ms: i32, out: &mut Vec<u8>) {
    let mut fds = poll_set(role);
    os::poll(&mut fds, wait_ms).unwrap();
    for ready in fds.iter().filter(|fd| fd.revents != 0) {
        role.on_ready(ready.fd, ready.revents, clock::lab_ns(), out);
    }
    role.on_time(clock::lab_ns(), out);
}

/// Runs several roles in one thread for `length_ns` from now, and finishes them; returns their records.
pub fn play_for(roles: &mut [Box<dyn Role>], length_ns: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let t0 = clock::lab_ns();
    roles.iter_mut().for_each(|role| role.go(t0));
    while clock::lab_ns() < t0 + length_ns {
        roles
            .iter_mut()
            .for_each(|role| turn(&mut **role, 0, &mut out));
        std::thread::sleep(Duration::from_micros(100));
    }
    roles
        .iter_mut()
        .for_each(|role| role.finish(clock::lab_ns(), &mut out));
    out
}
