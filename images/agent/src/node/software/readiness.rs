//! Probes whether a started program is ready, until it is ready or its deadline passes, and then answers the
//! request.

use super::{State, Supervised};
use crate::clock;
use crate::node::child;
use serde_json::json;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

const PROBE_EVERY_NS: i64 = 10_000_000;

impl Supervised {
    pub(super) fn probe(&mut self, now: i64, addresses: &[String]) {
        let ready = &self.spec.ready;
        let passed = if let Some(port) = ready.tcp_port {
            listens(port, addresses)
        } else if ready.log.is_some() {
            self.seen_text
        } else if let Some(argv) = ready.command.clone() {
            self.probe_command(&argv)
        } else {
            true
        };
        if passed {
            self.became_ready();
        } else if now >= self.ready_by {
            self.missed_deadline();
        } else {
            self.probe_at = (now + PROBE_EVERY_NS).min(self.ready_by);
        }
    }

    fn probe_command(&mut self, argv: &[String]) -> bool {
        if self.probe_passed || self.probe_pid.is_some() {
            return self.probe_passed;
        }
        let mut command = Command::new(argv.first().map_or("", String::as_str));
        command
            .args(argv.iter().skip(1))
            .envs(&self.spec.env)
            .current_dir(&self.dir);
        let streams = || -> io::Result<[OwnedFd; 3]> {
            let null = child::null()?;
            Ok([null.try_clone()?, null.try_clone()?, null])
        };
        match streams().and_then(|streams| child::spawn(&command, Some(streams), false)) {
            Ok(pid) => self.probe_pid = Some(pid),
            Err(e) => self
                .last
                .push_back(format!("(readiness command {argv:?}: {e})")),
        }
        false
    }

    /// Ends a readiness command that still runs, so that its result does not count for a later start of the
    /// program.
    pub(super) fn end_probe(&mut self) {
        if let Some(pid) = self.probe_pid.take() {
            child::signal_group(pid, libc::SIGKILL);
        }
    }

    pub(super) fn became_ready(&mut self) {
        self.state = State::Ready;
        if let Some(id) = self.start_id.take() {
            self.messages
                .push(json!({"id": id, "ok": true, "pid": self.pid, "ready_ns": clock::lab_ns()}));
        }
    }

    fn missed_deadline(&mut self) {
        let seconds = self.spec.ready.deadline_ns as f64 / 1e9;
        let what = self.subject();
        self.fail(&format!(
            "not ready within {seconds} s ({what}); write a longer deadline, or see its log"
        ));
        self.stopping = true;
        self.end_probe();
        child::signal_group(self.pid, libc::SIGKILL);
    }

    fn subject(&self) -> String {
        let ready = &self.spec.ready;
        match (ready.tcp_port, &ready.log, &ready.command) {
            (Some(port), _, _) => format!("nothing listens on TCP port {port}"),
            (_, Some(text), _) => format!("its output has no line with \"{text}\""),
            (_, _, Some(argv)) => format!("the command {argv:?} does not exit 0"),
            _ => "no probe".to_owned(),
        }
    }

    fn fail(&mut self, why: &str) {
        self.state = State::Failed;
        if let Some(id) = self.start_id.take() {
            let last = self.tail().join("\n");
            let printed = match last.as_str() {
                "" => "it has printed nothing".to_owned(),
                _ => format!("its last lines:\n{last}"),
            };
            let text = format!("software {}: {why}; {printed}", self.name);
            self.messages
                .push(json!({"id": id, "ok": false, "error": text}));
        }
    }

    pub(super) fn fail_start(&mut self, status: i32) {
        if self.start_id.is_some() {
            self.fail(&format!("ended with status {status} before it was ready"));
            self.stopping = true;
        }
    }
}

/// Returns whether one of the node's addresses accepts a TCP connection on this port within 50 ms.
fn listens(port: u16, addresses: &[String]) -> bool {
    addresses
        .iter()
        .filter_map(|a| a.parse::<IpAddr>().ok())
        .map(|address| SocketAddr::new(address, port))
        .any(|to| TcpStream::connect_timeout(&to, Duration::from_millis(50)).is_ok())
}
