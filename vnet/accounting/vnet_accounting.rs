//! Accounts for the messages of a program in a vNET lab (docs/accounting.md). Copy this file beside the program,
//! and write `mod vnet_accounting;`.
//!
//! ```ignore
//! let mut account = Accounting::open();
//! for message in account.due() { // each when it is due
//!     let sent_ns = account.now_ns();
//!     ...
//!     account.sent(&message, sent_ns);
//! }
//! ```
//!
//! A receiver calls `account.received(flow, seq, false)` for each arrival: put both numbers into the message.
//! Linux; the standard library only.
#![allow(dead_code)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

/// A message that is due: `size` in bytes, and (endpoint, address) of each receiver.
#[derive(Clone, Debug)]
pub struct Message {
    pub flow: u32,
    pub seq: u64,
    pub size: u64,
    pub scheduled_ns: i64,
    pub to: Vec<(String, String)>,
}

/// The clock of the lab: `now_ns` is its time in Unix nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    offset_ns: i64,
}

impl Clock {
    pub fn now_ns(&self) -> i64 {
        #[repr(C)]
        struct Timespec(i64, i64);
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
        }
        const CLOCK_MONOTONIC: i32 = 1;
        let mut now = Timespec(0, 0);
        // SAFETY: `now` has the layout of the kernel's struct on 64-bit Linux.
        unsafe { clock_gettime(CLOCK_MONOTONIC, &mut now) };
        now.0 * 1_000_000_000 + now.1 + self.offset_ns
    }
}

/// The messages that this program must send and receive, and the records that it writes of them.
pub struct Accounting {
    pub endpoint: String,
    pub clock: Clock,
    told: String,
    records: File,
}

fn refuse(text: &str) -> ! {
    eprintln!("vnet_accounting: {text}");
    std::process::exit(1)
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        refuse("no VNET_FLOWS and VNET_RECORDS: the command needs `flows:` or `receives: true`")
    })
}

fn told() -> String {
    let path = variable("VNET_FLOWS");
    std::fs::read_to_string(&path).unwrap_or_else(|e| refuse(&format!("{path}: {e}")))
}

impl Accounting {
    /// Reads what vNET states; ends the program if vNET has not started it with `flows` or `receives`.
    pub fn open() -> Self {
        let (text, path) = (told(), variable("VNET_RECORDS"));
        let records = OpenOptions::new().append(true).open(&path);
        Self {
            endpoint: json::need(&text, "endpoint").trim_matches('"').to_owned(),
            clock: Clock { offset_ns: json::integer(json::need(&text, "clock_offset_ns")) },
            records: records.unwrap_or_else(|e| refuse(&format!("{path}: {e}"))),
            told: text,
        }
    }

    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Waits until vNET states when the scenario starts, and returns that time.
    pub fn begin(&mut self) -> i64 {
        while json::need(&self.told, "t0_ns") == "null" {
            std::thread::sleep(Duration::from_millis(10));
            self.told = told();
        }
        json::integer(json::need(&self.told, "t0_ns"))
    }

    /// Returns an iterator that yields each message of all flows when it is due, in the order of those times.
    pub fn due(&mut self) -> impl Iterator<Item = Message> + use<> {
        let (t0, clock) = (self.begin(), self.clock);
        let mut all: Vec<Message> = Vec::new();
        for flow in json::elements(json::need(&self.told, "sends")) {
            let to = json::elements(json::need(flow, "to")).into_iter();
            let text = |of: &str, key: &str| json::need(of, key).trim_matches('"').to_owned();
            let to: Vec<_> = to.map(|peer| (text(peer, "endpoint"), text(peer, "address"))).collect();
            let times = json::need(flow, "times_ns");
            if times == "null" {
                let name = text(flow, "name");
                refuse(&format!("{name} has no list of times: it has more than 10,000 messages"));
            }
            for (seq, at) in json::elements(times).into_iter().enumerate() {
                all.push(Message {
                    flow: json::integer(json::need(flow, "number")) as u32,
                    seq: seq as u64,
                    size: json::integer(json::need(json::need(flow, "payload"), "bytes")) as u64,
                    scheduled_ns: t0 + json::integer(at),
                    to: to.clone(),
                });
            }
        }
        all.sort_by_key(|message| (message.scheduled_ns, message.flow, message.seq));
        all.into_iter().inspect(move |message| {
            let left = message.scheduled_ns - clock.now_ns();
            std::thread::sleep(Duration::from_nanos(left.max(0) as u64));
        })
    }

    /// Records a message that was sent, and whose arrival the protocol does not confirm.
    pub fn sent(&mut self, message: &Message, sent_ns: i64) {
        self.outcome(message, sent_ns, 0, 1, "sent");
    }

    /// Records a message that was acknowledged, or a request whose replies have all arrived.
    pub fn settled(&mut self, message: &Message, sent_ns: i64, settled_ns: i64, attempts: u32) {
        self.outcome(message, sent_ns, settled_ns, attempts, "settled");
    }

    /// Records a message that was sent, and whose acknowledgement or reply did not come.
    pub fn unsettled(&mut self, message: &Message, sent_ns: i64, attempts: u32) {
        self.outcome(message, sent_ns, 0, attempts, "unsettled");
    }

    /// Records a message that was never sent.
    pub fn unsent(&mut self, message: &Message) {
        self.outcome(message, 0, 0, 0, "unsent");
    }

    fn outcome(&mut self, m: &Message, sent_ns: i64, settled_ns: i64, attempts: u32, outcome: &str) {
        let sent_ns = if sent_ns == 0 { 0 } else { sent_ns.max(m.scheduled_ns) };
        let Message { flow, seq, size, scheduled_ns, .. } = m;
        self.write(format!("S,{flow},{seq},{size},{scheduled_ns},{sent_ns},{settled_ns},{attempts},{outcome}\n"));
    }

    /// Records an arrival at this program, now; `copy`: the protocol marks it as a repetition.
    pub fn received(&mut self, flow: u32, seq: u64, copy: bool) {
        let (endpoint, now) = (&self.endpoint, self.now_ns());
        self.write(format!("R,{flow},{seq},{endpoint},0,{now},{}\n", u8::from(copy)));
    }

    /// Records the arrival of the reply of an endpoint to a request of this program, now.
    pub fn replied(&mut self, flow: u32, seq: u64, receiver: &str) {
        self.write(format!("R,{flow},{seq},{receiver},1,{},0\n", self.now_ns()));
    }

    /// Records that this program takes messages from now on.
    pub fn listening(&mut self) {
        self.write(format!("C,{},listening,{},\n", self.endpoint, self.now_ns()));
    }

    fn write(&mut self, line: String) {
        if let Err(e) = self.records.write_all(line.as_bytes()) {
            refuse(&e.to_string());
        }
    }
}

/// Finds values in the JSON text that vNET writes; a string that it returns is not unescaped.
mod json {
    /// Returns the bytes that the value at the beginning of `text` takes.
    fn length(text: &str) -> usize {
        let (bytes, mut depth, mut at) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => {
                    at += 1;
                    while at < bytes.len() && bytes[at] != b'"' {
                        at += 1 + usize::from(bytes[at] == b'\\');
                    }
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return at,
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => return at,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(bytes[at - 1], b'"' | b'}' | b']') {
                return at;
            }
        }
        bytes.len()
    }

    /// Returns the parts of an array or object: its elements, or key and value in turn.
    pub fn elements(text: &str) -> Vec<&str> {
        let mut rest = text.trim_start().get(1..).unwrap_or_default().trim_start();
        let mut found = Vec::new();
        while !rest.is_empty() && !rest.starts_with([']', '}']) {
            let end = length(rest);
            found.push(rest[..end].trim());
            rest = rest[end..].trim_start().trim_start_matches([',', ':']).trim_start();
        }
        found
    }

    /// Returns the value of a key of an object; ends the program if it has none.
    pub fn need<'a>(object: &'a str, key: &str) -> &'a str {
        let found = elements(object);
        let at = found.chunks(2).find(|pair| pair[0].trim_matches('"') == key);
        match at {
            Some([_, value]) => value,
            _ => super::refuse(&format!("VNET_FLOWS has no {key}")),
        }
    }

    pub fn integer(text: &str) -> i64 {
        text.parse().unwrap_or_else(|_| super::refuse(&format!("VNET_FLOWS: {text} is no whole number")))
    }
}
