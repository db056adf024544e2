//! Runs a command for `vnet exec` or `vnet shell`, with or without a terminal, and streams its input and
//! output.

use super::child;
use crate::clock;
use crate::os::{self, Res};
use crate::proto::parse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Command;

/// The time after the command's end for which the agent still reads output, if a descendant keeps it open.
const LINGER_NS: i64 = 200_000_000;

pub struct Exec {
    pub id: Value,
    pid: i32,
    status: Option<i32>,
    /// The open outputs, each with the name under which its data is sent.
    outputs: Vec<(&'static str, OwnedFd)>,
    stdin: Option<OwnedFd>,
    tty: bool,
    pending_input: Vec<u8>,
    eof: bool,
    linger_until: Option<i64>,
    done: bool,
}

impl Exec {
    /// Starts the command `argv` in the directory /, with `env` added to its environment; `tty` {rows, cols}
    /// gives it a terminal. An error if `argv` is empty or cannot be started.
    pub fn start(id: Value, request: &Value) -> Res<Self> {
        let argv: Vec<String> = parse("exec", request["argv"].clone())?;
        let env: Option<BTreeMap<String, String>> = parse("exec", request["env"].clone())?;
        let program = argv.first().ok_or("exec: argv is empty; name a program")?;
        let mut command = Command::new(program);
        command
            .args(&argv[1..])
            .envs(env.unwrap_or_default())
            .current_dir("/");
        let fail = |e: std::io::Error| {
            format!("exec: \"{program}\" cannot be started: {e}; install it or correct the path")
        };
        let tty = !request["tty"].is_null();
        let mut this = if tty {
            Self::with_tty(&command, &request["tty"]).map_err(fail)?
        } else {
            Self::with_pipes(&command).map_err(fail)?
        };
        this.id = id;
        Ok(this)
    }

    fn new(
        pid: i32,
        outputs: Vec<(&'static str, OwnedFd)>,
        stdin: Option<OwnedFd>,
        tty: bool,
    ) -> Self {
        Self {
            id: Value::Null,
            pid,
            status: None,
            outputs,
            stdin,
            tty,
            pending_input: Vec::new(),
            eof: false,
            linger_until: None,
            done: false,
        }
    }

    fn with_pipes(command: &Command) -> std::io::Result<Self> {
        let (out, out_w) = child::output_pipe()?;
        let (err, err_w) = child::output_pipe()?;
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        os::check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        let (in_r, in_w) = (os::own(ends[0])?, os::own(ends[1])?);
        os::set_nonblocking(in_w.as_raw_fd())?;
        let pid = child::spawn(command, Some([in_r, out_w, err_w]), false)?;
        Ok(Self::new(
            pid,
            vec![("stdout", out), ("stderr", err)],
            Some(in_w),
            false,
        ))
    }

    fn with_tty(command: &Command, size: &Value) -> std::io::Result<Self> {
        let (mut master, mut slave) = (0, 0);
        let window = window(size);
        // SAFETY: the call fills two ints, and gets no name, no termios and a valid window size.
        os::check(unsafe {
            libc::openpty(
                &mut master,
                &mut slave,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &window,
            )
        })?;
        let (master, slave) = (os::own(master)?, os::own(slave)?);
        // SAFETY: fcntl gets an open descriptor and a plain number. The program must not inherit the master.
        os::check(unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
        os::set_nonblocking(master.as_raw_fd())?;
        let streams = [slave.try_clone()?, slave.try_clone()?, slave];
        let pid = child::spawn(command, Some(streams), true)?;
        Ok(Self::new(pid, vec![("stdout", master)], None, true))
    }

    /// Returns the descriptors to poll; true: poll the descriptor for writing too.
    pub fn fds(&self) -> Vec<(RawFd, bool)> {
        let waiting = !self.pending_input.is_empty();
        let outputs = self
            .outputs
            .iter()
            .map(|(_, fd)| (fd.as_raw_fd(), self.tty && waiting));
        let input = self
            .stdin
            .iter()
            .filter(|_| waiting)
            .map(|fd| (fd.as_raw_fd(), true));
        outputs.chain(input).collect()
    }

    /// Moves data between the command and the client; returns events for the client.
    pub fn on_ready(&mut self, fd: RawFd, revents: i16) -> Vec<Value> {
        if revents & libc::POLLOUT != 0 || self.stdin.as_ref().is_some_and(|s| s.as_raw_fd() == fd)
        {
            self.push_input();
        }
        self.read_output(fd).into_iter().collect()
    }

    fn read_output(&mut self, fd: RawFd) -> Option<Value> {
        let i = self.outputs.iter().position(|(_, o)| o.as_raw_fd() == fd)?;
        let mut chunk = [0u8; 16384];
        match os::read(fd, &mut chunk) {
            Ok(n) if n > 0 => {
                let data = STANDARD.encode(&chunk[..n]);
                return Some(
                    json!({"id": self.id, "event": "output", "stream": self.outputs[i].0, "data": data}),
                );
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return None,
            // This is the end of the output; a terminal reports EIO after its last user has closed it.
            _ => {}
        }
        self.outputs.remove(i);
        None
    }

    /// Queues input from the client and writes as much as the command takes: `data` in base64, or `eof`,
    /// which closes the input or, with a terminal, sends ^D.
    pub fn input(&mut self, request: &Value) -> Res<()> {
        if let Some(text) = request["data"].as_str() {
            let bytes = STANDARD
                .decode(text)
                .map_err(|e| format!("input: data is not base64 ({e}); encode it"))?;
            self.pending_input.extend(bytes);
        }
        self.eof |= request["eof"].as_bool().unwrap_or(false);
        if self.eof && self.tty {
            // A terminal signals the end of input by the character ^D.
            self.pending_input.push(4);
            self.eof = false;
        }
        self.push_input();
        Ok(())
    }

    fn push_input(&mut self) {
        let fd = match (&self.stdin, self.tty, self.outputs.first()) {
            (Some(fd), _, _) => fd.as_raw_fd(),
            (None, true, Some((_, fd))) => fd.as_raw_fd(),
            _ => {
                self.pending_input.clear();
                return;
            }
        };
        match os::write(fd, &self.pending_input) {
            Ok(n) => drop(self.pending_input.drain(..n)),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            // The program has closed its input.
            Err(_) => self.pending_input.clear(),
        }
        if self.eof && self.pending_input.is_empty() {
            self.stdin = None;
        }
    }

    pub fn resize(&mut self, request: &Value) -> Res<()> {
        let window = window(request);
        let (_, master) = self
            .outputs
            .first()
            .filter(|_| self.tty)
            .ok_or("resize: this exec has no terminal; request one with `tty`")?;
        // SAFETY: a valid window size.
        os::check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &window) })
            .map(drop)
            .map_err(|e| format!("resize: {e}"))
    }

    pub fn signal(&mut self, request: &Value) -> Res<()> {
        let signal = match request["signal"].as_i64() {
            Some(n) => os::signal_number(&n.to_string())?,
            None => os::signal_number(request["signal"].as_str().unwrap_or("SIGTERM"))?,
        };
        if self.status.is_none() {
            child::signal_group(self.pid, signal);
        }
        Ok(())
    }

    pub fn on_exit(&mut self, pid: i32, status: i32) {
        if self.status.is_none() && self.pid == pid {
            self.status = Some(status);
            self.linger_until = Some(clock::mono_ns() + LINGER_NS);
        }
    }

    /// Returns when to call `on_time` next, on the monotonic clock; None before the command has ended.
    pub fn deadline(&self) -> Option<i64> {
        self.linger_until
    }

    /// Returns the answer, once: after the command has ended and all its output is sent or `LINGER_NS` has
    /// passed.
    pub fn on_time(&mut self, now: i64) -> Option<Value> {
        let status = self.status?;
        if self.done || (!self.outputs.is_empty() && self.linger_until.is_some_and(|t| now < t)) {
            return None;
        }
        self.done = true;
        Some(json!({"id": self.id, "ok": true, "status": status}))
    }

    pub fn done(&self) -> bool {
        self.done
    }
}

fn window(size: &Value) -> libc::winsize {
    let number = |key: &str, other: u16| {
        size[key]
            .as_u64()
            .and_then(|n| u16::try_from(n).ok())
            .unwrap_or(other)
    };
    libc::winsize {
        ws_row: number("rows", 24),
        ws_col: number("cols", 80),
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
