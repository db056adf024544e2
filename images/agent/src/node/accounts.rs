//! Keeps the account of a program that records its own messages: writes a file with the flows that the
//! program sends and receives, reads the program's records from a pipe, and checks each record.

mod outstanding;
mod rules;
mod times;

use crate::clock;
use crate::os::{self, Res};
use crate::proto::{Flow, parse};
use crate::schedule;
use outstanding::{Sent, due};
use rules::Rules;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The file of flows lists the times of a schedule that has at most this many messages. The program computes
/// the times of a longer schedule itself.
const LISTED_TIMES: usize = 10_000;
/// A line with its newline may have at most this many bytes; the kernel writes no more to a pipe atomically.
const LONGEST_LINE: usize = libc::PIPE_BUF;
/// The number of invalid lines of one program that are reported one by one; further ones are only counted.
const REPORTED_LINES: u64 = 24;
const SHOWN_CHARACTERS: usize = 120;
/// The most reads of 64 KiB in a row, so that a program that never stops writing does not block the node.
const READS: usize = 64;

pub struct Account {
    pub software: String,
    /// The settings as they stand in the plan.
    plan: Value,
    /// The settings with the times of messages and t0 added, as in the file of flows.
    settings: Value,
    flows_file: String,
    records_file: String,
    pipe: OwnedFd,
    rules: Rules,
    /// The beginning of an incomplete line, from the last read.
    rest: Vec<u8>,
    too_long: bool,
    lines: u64,
    bad: u64,
    finished: bool,
    messages: Vec<Value>,
}

impl Account {
    /// Creates the pipe and writes the file of flows, both in the node's directory `dir`. `settings` is
    /// `accounts` in the plan's spec; an error if a flow in it is invalid or it has no endpoint. `t0_ns` is
    /// None until `go`.
    pub fn new(software: &str, mut settings: Value, dir: &str, t0_ns: Option<i64>) -> Res<Self> {
        let place = format!("software {software}: accounts");
        let plan = settings.clone();
        let mut sends = BTreeMap::new();
        for one in settings["sends"].as_array_mut().into_iter().flatten() {
            let (number, sent) = sending(&place, one)?;
            sends.insert(number, sent);
        }
        let receives = settings["receives"].as_array().into_iter().flatten();
        let receives = receives.filter_map(|one| one["number"].as_u64());
        let receives = receives.filter_map(|n| u32::try_from(n).ok()).collect();
        let endpoint = settings["endpoint"]
            .as_str()
            .ok_or_else(|| format!("{place}: endpoint is missing; name it"))?
            .to_owned();
        let records_file = format!("{dir}/{software}.records");
        let mut this = Self {
            software: software.to_owned(),
            plan,
            settings,
            flows_file: format!("{dir}/{software}.flows.json"),
            pipe: open_pipe(&records_file).map_err(|e| format!("{place}: {records_file}: {e}"))?,
            records_file,
            rules: Rules::new(endpoint, sends, receives, clock::lab_ns()),
            rest: Vec::new(),
            too_long: false,
            lines: 0,
            bad: 0,
            finished: false,
            messages: Vec::new(),
        };
        this.go(t0_ns)?;
        Ok(this)
    }

    /// Sets t0 (None: not known yet) and replaces the file of flows atomically, since a program that waits
    /// for `t0_ns` reads it repeatedly.
    pub fn go(&mut self, t0_ns: Option<i64>) -> Res<()> {
        self.rules.set_t0(t0_ns);
        self.settings["t0_ns"] = json!(t0_ns);
        self.settings["clock_offset_ns"] = json!(clock::offset_ns());
        let new = format!("{}.new", self.flows_file);
        fs::write(&new, format!("{:#}\n", self.settings))
            .and_then(|()| fs::rename(&new, &self.flows_file))
            .map_err(|e| format!("software {}: {}: {e}", self.software, self.flows_file))
    }

    /// Returns whether the account was created with these settings of the plan.
    pub fn has_settings(&self, settings: &Value) -> bool {
        self.plan == *settings
    }

    /// Sets the environment variables VNET_FLOWS and VNET_RECORDS to the paths of the file and the pipe.
    pub fn name_files(&self, environment: &mut BTreeMap<String, String>) {
        environment.insert("VNET_FLOWS".to_owned(), self.flows_file.clone());
        environment.insert("VNET_RECORDS".to_owned(), self.records_file.clone());
    }

    pub fn fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    pub fn take_messages(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.messages)
    }

    /// Reads the data in the pipe, at most `READS` chunks, and appends valid lines to `out` unchanged.
    /// Reports the first `REPORTED_LINES` invalid lines as messages.
    pub fn read(&mut self, out: &mut Vec<u8>) {
        let mut chunk = [0u8; 65_536];
        for _ in 0..READS {
            match os::read(self.fd(), &mut chunk) {
                Ok(n) if n > 0 => self.take(&chunk[..n], out),
                _ => return, // empty; never the end of file, since the agent holds the writing end open
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.keep(&bytes[..end]);
            self.line(out);
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE - self.rest.len();
        self.too_long |= bytes.len() >= room;
        self.rest.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line(&mut self, out: &mut Vec<u8>) {
        self.lines += 1;
        let line = std::mem::take(&mut self.rest);
        let verdict = if std::mem::take(&mut self.too_long) {
            Err(format!("is longer than {} bytes", LONGEST_LINE - 1))
        } else {
            match std::str::from_utf8(&line) {
                Ok(text) => self.rules.check(text, clock::lab_ns()),
                Err(_) => Err("is not UTF-8".to_owned()),
            }
        };
        match verdict {
            Ok(()) => {
                out.extend_from_slice(&line);
                out.push(b'\n');
            }
            Err(rule) => self.refuse(&line, &rule),
        }
    }

    fn refuse(&mut self, line: &[u8], rule: &str) {
        self.bad += 1;
        if self.bad <= REPORTED_LINES {
            let text: String = String::from_utf8_lossy(line)
                .chars()
                .take(SHOWN_CHARACTERS)
                .collect();
            self.messages.push(json!({"event": "records", "software": self.software, "file": self.records_file, "line": self.lines, "text": text, "rule": rule}));
        }
    }

    /// Reads the pipe after the program has ended, like `read`; an incomplete line is invalid.
    pub fn ended(&mut self, out: &mut Vec<u8>) {
        self.read(out);
        if !self.rest.is_empty() {
            self.lines += 1;
            let line = std::mem::take(&mut self.rest);
            self.too_long = false;
            self.refuse(&line, "is cut short: the program ended within the line");
        }
    }

    /// Returns the number of due messages about which the program has written no line yet; 0 after `finish`.
    pub fn outstanding(&mut self, now_ns: i64) -> u64 {
        if self.finished {
            0
        } else {
            self.rules.outstanding(now_ns)
        }
    }

    /// Reads the pipe, and at the first call ends the scenario: reports how many further lines were invalid,
    /// and appends records of the due messages without a valid record to `out`.
    pub fn finish(&mut self, now_ns: i64, out: &mut Vec<u8>) {
        self.read(out);
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if self.bad > REPORTED_LINES {
            let rule = format!("{} more lines are invalid", self.bad - REPORTED_LINES);
            self.messages.push(json!({"event": "records", "software": self.software, "file": self.records_file, "line": null, "text": "", "rule": rule}));
        }
        out.extend_from_slice(self.rules.missing(now_ns).as_bytes());
    }
}

/// Checks bytes that a program could write into its pipe.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let mut flow = json!({
        "number": 1, "pattern": "request", "payload": {"kind": "bytes", "bytes": 64}, "start_ns": 0, "stop_ns": 1_000_000,
        "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 9000}], "seed": 1}, "to": [{"endpoint": "b"}],
    });
    let sends = BTreeMap::from([sending("fuzz", &mut flow).expect("a flow")]);
    let mut rules = Rules::new("a".to_owned(), sends, [2].into(), 0);
    rules.set_t0(Some(1));
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(text) = std::str::from_utf8(line) {
            _ = rules.check(text, 1_000_000);
        }
    }
    _ = rules.outstanding(1_000_000);
    _ = rules.missing(1_000_000);
}

/// Parses a flow that the program sends, and adds its times to `settings` (null if they are more than
/// `LISTED_TIMES`); returns the flow's number and the flow. An error if the flow or its schedule is invalid.
fn sending(place: &str, settings: &mut Value) -> Res<(u32, Sent)> {
    let flow: Flow = parse(place, settings.clone())?;
    if let Some(schedule) = &flow.schedule {
        schedule::check(schedule).map_err(|e| format!("{place}: flow {}: {e}", flow.number))?;
    }
    let times_ns: Vec<i64> = due(&flow).take(LISTED_TIMES + 1).collect();
    let listed = times_ns.len() <= LISTED_TIMES;
    settings["times_ns"] = json!(listed.then_some(times_ns));
    let to = settings["to"].as_array().into_iter().flatten();
    let to = to.filter_map(|peer| peer["endpoint"].as_str().map(str::to_owned));
    Ok((flow.number, Sent::new(flow, to.collect())))
}

/// Creates a named pipe, in place of an existing file. The agent holds both ends, so that programs that open
/// and close the pipe neither block nor end it.
fn open_pipe(path: &str) -> std::io::Result<OwnedFd> {
    if let Err(e) = fs::remove_file(path)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(e);
    }
    let name = CString::new(path)?;
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: both calls get a valid C string.
    unsafe {
        os::check(libc::mkfifo(name.as_ptr(), 0o666))?;
        os::own(libc::open(name.as_ptr(), flags))
    }
}
