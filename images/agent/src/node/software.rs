//! Supervises one program: writes its files, starts it, checks its readiness, restarts it with backoff, and
//! stops it. Keeps its last lines of output for error reports.

pub mod files;
mod kept;
mod output;
mod readiness;

use super::child;
use crate::clock;
use crate::os::Res;
use crate::proto::{Expect, Process, Restart};
use kept::Times;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Command;

const BACKOFF_NS: i64 = 100_000_000;
const LONGEST_BACKOFF_NS: i64 = 5_000_000_000;
/// The exit status that stands for a program that could not be started again, as in a shell; it decides
/// whether the program is restarted.
const NOT_STARTED: i32 = 127;

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum State {
    Starting,
    Ready,
    Exited,
    Failed,
}

pub struct Supervised {
    pub name: String,
    /// The node's directory: the program's default working directory, and the base of relative paths.
    dir: String,
    spec: Process,
    state: State,
    pid: i32,
    alive: bool,
    status: Option<i32>,
    restarts: u32,
    restart_at: Option<i64>,
    output: Option<OwnedFd>,
    log: Option<File>,
    /// The path of the log; None: the program has no log.
    pub log_path: Option<String>,
    /// Bytes that this program has written to the log.
    logged: u64,
    times: Times,
    line: Vec<u8>,
    last: VecDeque<String>,
    seen_text: bool,
    ready_by: i64,
    probe_at: i64,
    probe_pid: Option<i32>,
    probe_passed: bool,
    start_id: Option<Value>,
    stop: Option<(Value, i64)>,
    stopping: bool,
    frozen: bool,
    messages: Vec<Value>,
}

impl Supervised {
    /// Writes the program's files and starts it; answers request `id` later, once the program is ready or has
    /// failed. An error if a file cannot be written or the program cannot be started.
    pub fn start(name: &str, spec: Process, dir: &str, log: Option<File>, id: Value) -> Res<Self> {
        files::write(name, dir, &spec)?;
        let now = clock::mono_ns();
        let mut this = Self {
            name: name.to_owned(),
            dir: dir.to_owned(),
            state: State::Starting,
            pid: 0,
            alive: false,
            status: None,
            restarts: 0,
            restart_at: None,
            output: None,
            log,
            log_path: None,
            logged: 0,
            times: Times::default(),
            line: Vec::new(),
            last: VecDeque::new(),
            seen_text: false,
            ready_by: now + spec.ready.deadline_ns,
            probe_at: now,
            probe_pid: None,
            probe_passed: false,
            start_id: Some(id),
            stop: None,
            stopping: false,
            frozen: false,
            messages: Vec::new(),
            spec,
        };
        this.launch()?;
        Ok(this)
    }

    fn launch(&mut self) -> Res<()> {
        let place = format!("software {}: argv", self.name);
        let program = self
            .spec
            .argv
            .first()
            .ok_or_else(|| format!("{place}: is empty; name a program"))?;
        let fail = |e: std::io::Error| {
            format!("{place}: \"{program}\" cannot be started: {e}; install it or correct the path")
        };
        let (reader, writer) = child::output_pipe().map_err(fail)?;
        let errors = writer.try_clone().map_err(fail)?;
        let streams = [child::null().map_err(fail)?, writer, errors];
        let mut command = Command::new(program);
        command
            .args(&self.spec.argv[1..])
            .envs(&self.spec.env)
            .current_dir(self.spec.workdir.as_deref().unwrap_or(&self.dir))
            .envs(self.keys_file().map(|path| (kept::VARIABLE, path)));
        self.pid = child::spawn(&command, Some(streams), false).map_err(fail)?;
        self.output = Some(reader);
        self.alive = true;
        self.frozen = false;
        self.state = State::Starting;
        self.status = None;
        self.seen_text = false;
        self.probe_passed = false;
        let now = clock::mono_ns();
        self.ready_by = now + self.spec.ready.deadline_ns;
        self.probe_at = now;
        Ok(())
    }

    pub fn alive(&self) -> bool {
        self.alive
    }

    /// Returns whether the program runs or will restart.
    pub fn goes_on(&self) -> bool {
        self.alive || self.restart_at.is_some()
    }

    pub fn output_fd(&self) -> Option<RawFd> {
        self.output.as_ref().map(AsRawFd::as_raw_fd)
    }

    pub fn state(&self) -> Value {
        let state = match self.state {
            State::Starting => "starting",
            State::Ready => "ready",
            State::Exited => "exited",
            State::Failed => "failed",
        };
        json!({"state": state, "pid": self.pid, "status": self.status, "restarts": self.restarts})
    }

    /// Returns when to call `on_time` next, on the monotonic clock; None if nothing is planned.
    pub fn deadline(&self) -> Option<i64> {
        let probe = (self.state == State::Starting && self.alive).then_some(self.probe_at);
        let stop = self.stop.as_ref().map(|(_, at)| *at);
        [probe, stop, self.restart_at].into_iter().flatten().min()
    }

    pub fn take_messages(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.messages)
    }

    /// Runs probes and restarts that are due, and kills the program after a stop's timeout.
    pub fn on_time(&mut self, now: i64, addresses: &[String]) {
        self.times.stamp(now + clock::offset_ns());
        if self.state == State::Starting && self.alive && now >= self.probe_at {
            self.probe(now, addresses);
        }
        if self.stop.as_ref().is_some_and(|(_, at)| now >= *at) {
            child::signal_group(self.pid, libc::SIGKILL);
            self.stop = self.stop.take().map(|(id, _)| (id, now + BACKOFF_NS));
        }
        if self.restart_at.is_some_and(|at| now >= at) {
            self.restart_at = None;
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.restarts += 1;
        match self.launch() {
            Ok(()) => self.messages.push(json!({"event": "restarted", "software": self.name, "pid": self.pid, "restarts": self.restarts})),
            Err(text) => {
                self.state = State::Failed;
                self.messages.push(json!({"event": "error", "text": text}));
                self.plan_restart(NOT_STARTED);
            }
        }
    }

    /// Handles the end of child `pid`: of this program (then returns true), or of its readiness command.
    pub fn on_exit(&mut self, pid: i32, status: i32) -> bool {
        if self.probe_pid == Some(pid) {
            self.probe_pid = None;
            self.probe_passed = status == 0;
        } else if self.alive && self.pid == pid {
            self.ended(status);
            return true;
        }
        false
    }

    fn ended(&mut self, status: i32) {
        // The pipe may still hold the program's last output.
        for _ in 0..64 {
            self.on_output();
        }
        self.alive = false;
        self.status = Some(status);
        self.end_probe();
        let wanted = self.spec.expect == Expect::Exited && status == 0;
        let expected = self.stopping || self.stop.is_some() || wanted;
        let failed_before = self.state == State::Failed;
        if wanted && self.start_id.is_some() {
            self.became_ready();
        }
        self.fail_start(status);
        self.state = if expected && !failed_before {
            State::Exited
        } else {
            State::Failed
        };
        let log = self.tail();
        self.messages.push(json!({"event": "exited", "software": self.name, "status": status, "expected": expected, "log": log}));
        if let Some((id, _)) = self.stop.take() {
            self.messages
                .push(json!({"id": id, "ok": true, "status": status}));
        } else if !self.stopping {
            self.plan_restart(status);
        }
    }

    fn plan_restart(&mut self, status: i32) {
        let again = match self.spec.restart {
            Restart::Never => false,
            Restart::OnFailure => status != 0,
            Restart::Always => true,
        };
        if again {
            let wait = (BACKOFF_NS << self.restarts.min(10)).min(LONGEST_BACKOFF_NS);
            self.restart_at = Some(clock::mono_ns() + wait);
        }
    }

    /// Stops all processes of the program by SIGSTOP (`frozen`), or continues processes stopped in this way
    /// by SIGCONT. Returns whether this has changed anything; false for a program that does not run.
    pub fn freeze(&mut self, frozen: bool) -> bool {
        if !self.alive || self.frozen == frozen {
            return false;
        }
        let signal = if frozen { libc::SIGSTOP } else { libc::SIGCONT };
        child::signal_all(self.pid, signal);
        self.frozen = frozen;
        true
    }

    /// Sends `signal` to the program, and SIGKILL at `kill_at` (CLOCK_MONOTONIC); answers request `id` with
    /// its exit status when it has ended. A frozen program continues first. Cancels restarts.
    pub fn stop(&mut self, id: Value, signal: i32, kill_at: i64) {
        self.restart_at = None;
        self.stopping = true;
        if self.alive {
            child::signal_group(self.pid, signal);
            // A stopped process reacts to no signal except SIGKILL.
            self.freeze(false);
            self.stop = Some((id, kill_at));
        } else {
            self.messages
                .push(json!({"id": id, "ok": true, "status": self.status}));
        }
    }
}

#[cfg(test)]
mod tests;
