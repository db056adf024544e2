//! One supervised program: files, start, readiness, restart with backoff, stop; its last lines are kept for errors.

use super::child;
use crate::clock;
use crate::os::{self, Res};
use crate::proto::{Expect, Process, Restart};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const KEPT_LINES: usize = 20;
const LONGEST_LINE: usize = 4096;
const PROBE_EVERY_NS: i64 = 10_000_000;
const BACKOFF_NS: i64 = 100_000_000;
const LONGEST_BACKOFF_NS: i64 = 5_000_000_000;

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum State {
    Starting,
    Ready,
    Exited,
    Failed,
}

pub struct Supervised {
    pub name: String,
    /// The node's own directory: where the program runs, and where relative paths begin.
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
    messages: Vec<Value>,
}

impl Supervised {
    /// Writes the files and starts the program; the answer for `id` comes when it is ready or has failed.
    pub fn start(name: &str, spec: Process, dir: &str, log: Option<&str>, id: Value) -> Res<Self> {
        write_files(name, dir, &spec)?;
        let log = log.map(|path| open_log(name, path)).transpose()?;
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
        let mut command = Command::new(program);
        command
            .args(&self.spec.argv[1..])
            .envs(&self.spec.env)
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::from(writer))
            .stderr(Stdio::from(errors));
        self.pid = child::spawn(&mut command, false).map_err(fail)?;
        self.output = Some(reader);
        self.alive = true;
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

    /// When `on_time` has something to do, monotonic.
    pub fn deadline(&self) -> Option<i64> {
        let probe = (self.state == State::Starting && self.alive).then_some(self.probe_at);
        let stop = self.stop.as_ref().map(|(_, at)| *at);
        [probe, stop, self.restart_at].into_iter().flatten().min()
    }

    pub fn take_messages(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.messages)
    }

    /// Reads what the program wrote: into the log, the last lines, and past the readiness text.
    pub fn on_output(&mut self) {
        let Some(fd) = self.output_fd() else {
            return;
        };
        let mut chunk = [0u8; 8192];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.output = None,
            Ok(n) => self.take_output(&chunk[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.output = None,
        }
    }

    fn take_output(&mut self, bytes: &[u8]) {
        if let Some(log) = &mut self.log
            && let Err(e) = log.write_all(bytes)
        {
            self.messages.push(json!({"event": "error", "text": format!("software {}: log: {e}; its output is no longer kept", self.name)}));
            self.log = None;
        }
        for byte in bytes {
            if *byte == b'\n' || self.line.len() >= LONGEST_LINE {
                self.end_line();
            }
            if *byte != b'\n' {
                self.line.push(*byte);
            }
        }
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if self
            .spec
            .ready
            .log
            .as_ref()
            .is_some_and(|wanted| text.contains(wanted.as_str()))
        {
            self.seen_text = true;
            self.probe_at = clock::mono_ns();
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(text);
    }

    /// Probes, restarts, and kills after a stop's timeout, when due.
    pub fn on_time(&mut self, now: i64, addresses: &[String]) {
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
            }
        }
    }

    fn probe(&mut self, now: i64, addresses: &[String]) {
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
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match child::spawn(&mut command, false) {
            Ok(pid) => self.probe_pid = Some(pid),
            Err(e) => self
                .last
                .push_back(format!("(readiness command {argv:?}: {e})")),
        }
        false
    }

    fn became_ready(&mut self) {
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
            "not ready within {seconds} s ({what}); give it a longer deadline or look at its log"
        ));
        self.stopping = true;
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
            let text = format!(
                "software {}: {why}; its last lines:\n{}",
                self.name,
                self.tail().join("\n")
            );
            self.messages
                .push(json!({"id": id, "ok": false, "error": text}));
        }
    }

    fn tail(&self) -> Vec<String> {
        let rest =
            (!self.line.is_empty()).then(|| String::from_utf8_lossy(&self.line).into_owned());
        self.last.iter().cloned().chain(rest).collect()
    }

    /// Takes note of a child that has ended: this program, or its readiness command.
    pub fn on_exit(&mut self, pid: i32, status: i32) {
        if self.probe_pid == Some(pid) {
            self.probe_pid = None;
            self.probe_passed = status == 0;
        } else if self.alive && self.pid == pid {
            self.ended(status);
        }
    }

    fn ended(&mut self, status: i32) {
        // What it wrote last is still in the pipe.
        for _ in 0..64 {
            self.on_output();
        }
        self.alive = false;
        self.status = Some(status);
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

    fn fail_start(&mut self, status: i32) {
        if self.start_id.is_some() {
            self.fail(&format!("ended with status {status} before it was ready"));
            self.stopping = true;
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

    /// Signals the program; the answer for `id` comes with its exit status.
    pub fn stop(&mut self, id: Value, signal: i32, kill_at: i64) {
        self.restart_at = None;
        self.stopping = true;
        if self.alive {
            child::signal_group(self.pid, signal);
            self.stop = Some((id, kill_at));
        } else {
            self.messages
                .push(json!({"id": id, "ok": true, "status": self.status}));
        }
    }
}

fn write_files(name: &str, dir: &str, spec: &Process) -> Res<()> {
    for file in &spec.files {
        let fail = |e: std::io::Error| {
            format!(
                "software {name}: file {}: {e}; choose a path that can be written",
                file.path
            )
        };
        let path = std::path::Path::new(dir).join(&file.path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(fail)?;
        }
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(file.mode)
            .open(&path)
            .map_err(fail)?;
        out.write_all(file.content.as_bytes()).map_err(fail)?;
        // The mode holds whatever the umask and whoever made the file before.
        out.set_permissions(fs::Permissions::from_mode(file.mode))
            .map_err(fail)?;
    }
    Ok(())
}

fn open_log(name: &str, path: &str) -> Res<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|e| {
            format!("software {name}: log {path}: {e}; the directory must exist and be writable")
        })
}

/// Whether a TCP connection to one of the node's own addresses is accepted.
fn listens(port: u16, addresses: &[String]) -> bool {
    addresses
        .iter()
        .filter_map(|a| format!("{a}:{port}").parse::<SocketAddr>().ok())
        .any(|to| TcpStream::connect_timeout(&to, Duration::from_millis(50)).is_ok())
}
