//! A program's account of its own messages: a file tells it its flows, and the records come through a pipe, each checked.

mod owed;
mod rules;

use crate::clock;
use crate::os::{self, Res};
use crate::proto::{Flow, parse};
use crate::schedule;
use owed::{Sent, due};
use rules::Rules;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Times of a schedule are listed up to so many; a longer one the program reckons itself.
const LISTED_TIMES: usize = 10_000;
/// A pipe takes so much in one piece, whoever else writes to it.
const LONGEST_LINE: usize = libc::PIPE_BUF;
/// Bad lines of one program that are told one by one; the rest is counted.
const TOLD_LINES: u64 = 24;
const SHOWN_CHARACTERS: usize = 120;
/// Reads of 64 KiB in a row, so that one that writes without end does not keep the node from its other work.
const READS: usize = 64;

pub struct Account {
    pub software: String,
    /// As it was given, and as the program reads it.
    given: Value,
    told: Value,
    flows_file: String,
    records_file: String,
    pipe: OwnedFd,
    rules: Rules,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
    too_long: bool,
    lines: u64,
    bad: u64,
    finished: bool,
    messages: Vec<Value>,
}

impl Account {
    /// Makes the pipe and writes the file, both in the node's directory `dir`. `told`: `accounts` of the plan's spec.
    pub fn new(software: &str, mut told: Value, dir: &str, t0_ns: Option<i64>) -> Res<Self> {
        let place = format!("software {software}: accounts");
        let given = told.clone();
        let mut sends = BTreeMap::new();
        for one in told["sends"].as_array_mut().into_iter().flatten() {
            let (number, sent) = sending(&place, one)?;
            sends.insert(number, sent);
        }
        let receives = told["receives"].as_array().into_iter().flatten();
        let receives = receives.filter_map(|one| one["number"].as_u64());
        let receives = receives.filter_map(|n| u32::try_from(n).ok()).collect();
        let endpoint = told["endpoint"]
            .as_str()
            .ok_or_else(|| format!("{place}: endpoint is missing; name it"))?
            .to_owned();
        let records_file = format!("{dir}/{software}.records");
        let mut this = Self {
            software: software.to_owned(),
            given,
            told,
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

    /// Writes the file anew, whole or not at all: who waits for `t0_ns` reads it again and again.
    pub fn go(&mut self, t0_ns: Option<i64>) -> Res<()> {
        self.rules.t0_ns = t0_ns;
        self.told["t0_ns"] = json!(t0_ns);
        self.told["clock_offset_ns"] = json!(clock::offset_ns());
        let new = format!("{}.new", self.flows_file);
        fs::write(&new, format!("{:#}\n", self.told))
            .and_then(|()| fs::rename(&new, &self.flows_file))
            .map_err(|e| format!("software {}: {}: {e}", self.software, self.flows_file))
    }

    /// Whether it is the account of just this.
    pub fn is_of(&self, told: &Value) -> bool {
        self.given == *told
    }

    /// Names both files to the program.
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

    /// Takes what is in the pipe; good lines go to `out` as they stand.
    pub fn read(&mut self, out: &mut Vec<u8>) {
        let mut chunk = [0u8; 65_536];
        for _ in 0..READS {
            match os::read(self.fd(), &mut chunk) {
                Ok(n) if n > 0 => self.take(&chunk[..n], out),
                _ => return, // empty: the agent itself holds the pipe open for writing
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
        if self.bad <= TOLD_LINES {
            let text: String = String::from_utf8_lossy(line)
                .chars()
                .take(SHOWN_CHARACTERS)
                .collect();
            self.messages.push(json!({"event": "records", "software": self.software, "file": self.records_file, "line": self.lines, "text": text, "rule": rule}));
        }
    }

    /// The program has ended: what it wrote last is in the pipe, and no line goes on.
    pub fn ended(&mut self, out: &mut Vec<u8>) {
        self.read(out);
        if !self.rest.is_empty() {
            self.lines += 1;
            let line = std::mem::take(&mut self.rest);
            self.too_long = false;
            self.refuse(&line, "is cut short: the program ended within the line");
        }
    }

    /// How many messages that were due by now the program has yet to write down.
    pub fn owed(&mut self, now_ns: i64) -> u64 {
        if self.finished {
            0
        } else {
            self.rules.owed(now_ns)
        }
    }

    /// The scenario is over: says, once, how many bad lines were not told one by one, and writes down what is missing.
    pub fn finish(&mut self, now_ns: i64, out: &mut Vec<u8>) {
        self.read(out);
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if self.bad > TOLD_LINES {
            let rule = format!("{} more lines are no records", self.bad - TOLD_LINES);
            self.messages.push(json!({"event": "records", "software": self.software, "file": self.records_file, "line": null, "text": "", "rule": rule}));
        }
        out.extend_from_slice(self.rules.debts(now_ns).as_bytes());
    }
}

/// What a program writes into its pipe, line by line.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let mut flow = json!({
        "number": 1, "pattern": "request", "payload": {"kind": "bytes", "bytes": 64}, "start_ns": 0, "stop_ns": 1_000_000,
        "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 9000}], "seed": 1}, "to": [{"endpoint": "b"}],
    });
    let sends = BTreeMap::from([sending("fuzz", &mut flow).expect("a flow")]);
    let mut rules = Rules::new("a".to_owned(), sends, [2].into(), 0);
    rules.t0_ns = Some(1);
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(text) = std::str::from_utf8(line) {
            _ = rules.check(text, 1_000_000);
        }
    }
    _ = rules.owed(1_000_000);
    _ = rules.debts(1_000_000);
}

/// A flow that the program sends; adds `times_ns` to what it is told of it.
fn sending(place: &str, told: &mut Value) -> Res<(u32, Sent)> {
    let flow: Flow = parse(place, told.clone())?;
    if let Some(schedule) = &flow.schedule {
        schedule::check(schedule).map_err(|e| format!("{place}: flow {}: {e}", flow.number))?;
    }
    let times_ns: Vec<i64> = due(&flow).take(LISTED_TIMES + 1).collect();
    let listed = times_ns.len() <= LISTED_TIMES;
    told["times_ns"] = json!(listed.then_some(times_ns));
    let to = told["to"].as_array().into_iter().flatten();
    let to = to.filter_map(|peer| peer["endpoint"].as_str().map(str::to_owned));
    Ok((flow.number, Sent::new(flow, to.collect())))
}

/// A pipe with a name. The agent holds both its ends, so that a program's coming and going neither blocks nor ends it.
fn open_pipe(path: &str) -> std::io::Result<OwnedFd> {
    if let Err(e) = fs::remove_file(path)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(e);
    }
    let name = CString::new(path)?;
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: a valid C string in both calls.
    unsafe {
        os::check(libc::mkfifo(name.as_ptr(), 0o666))?;
        os::own(libc::open(name.as_ptr(), flags))
    }
}
