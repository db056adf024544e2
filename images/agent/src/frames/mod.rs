//! Test frames after RFC 2544: an open-loop generator on one node's interface, a receiver that accounts for each on another's.

mod account;
mod frame;
mod histogram;
mod pace;
mod receive;
mod ring;
mod send;
mod socket;

use crate::launch::side::Side;
use crate::os::{self, Res};
use crate::proto::parse;
use serde::Deserialize;
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// What a receiver is to expect.
#[derive(Debug, Deserialize)]
struct Listen {
    iface: String,
    trial: u16,
    count: u32,
    ring_bytes: Option<usize>,
}

/// What a sender is to send: `count` frames of `size` bytes with FCS, `rate_fps` of them a second (0: back to back).
#[derive(Debug, Deserialize)]
struct Send {
    iface: String,
    trial: u16,
    count: u32,
    size: usize,
    rate_fps: f64,
    longest_ns: i64,
    /// MAC of the receiver's interface, as `listen` answered.
    to: String,
    #[serde(default)]
    bypass: bool,
}

/// A child process that sends or receives, and the request that it has to answer.
struct Helper {
    side: Side,
    waiting: Option<Value>,
    /// What asks a receiver for its counts: the longest wait in ns and the number of frames sent, sixteen bytes.
    control: Option<OwnedFd>,
}

/// The trial that a node takes part in: it may send, receive, or do both at once.
#[derive(Default)]
pub struct Frames {
    sender: Option<Helper>,
    receiver: Option<Helper>,
}

impl Frames {
    /// Starts what the request asks for; its answer comes from `on_ready`.
    pub fn request(&mut self, id: &Value, request: Value) -> Res<()> {
        match request["action"].as_str().unwrap_or("") {
            "listen" => self.listen(id, request),
            "send" => self.send(id, request),
            "collect" => self.collect(id, &request),
            other => Err(format!(
                "frames: action \"{other}\" is not known; write listen, send or collect"
            )),
        }
    }

    /// Descriptors to watch.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> {
        [&self.sender, &self.receiver]
            .into_iter()
            .flatten()
            .map(|h| h.side.raw())
    }

    /// What a child had to say: the id of the request and its answer.
    pub fn on_ready(&mut self, fd: RawFd) -> Option<(Value, Res<Value>)> {
        for slot in [&mut self.sender, &mut self.receiver] {
            let Some(helper) = slot.as_mut().filter(|h| h.side.raw() == fd) else {
                continue;
            };
            let said = helper.side.read()?;
            let answer = said.and_then(|line| answer_of(&line));
            let id = helper.waiting.take();
            let goes_on = matches!(&answer, Ok(fields) if fields["armed"] == json!(true));
            if !goes_on {
                *slot = None;
            }
            return id.map(|id| (id, answer));
        }
        None
    }

    fn listen(&mut self, id: &Value, request: Value) -> Res<()> {
        let spec: Listen = parse("frames listen", request)?;
        // One that is still there belongs to a trial that was given up.
        end(&mut self.receiver);
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        os::check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })
            .map_err(|e| format!("frames: pipe: {e}"))?;
        let fail = |e: std::io::Error| format!("frames: pipe: {e}");
        let (until, control) = (
            os::own(ends[0]).map_err(fail)?,
            os::own(ends[1]).map_err(fail)?,
        );
        let side = Side::start(&[until.as_raw_fd()], |say| {
            let armed = |mac| say(&line(Ok(json!({"armed": true, "mac": mac}))));
            say(&line(receive::run(&spec, &until, &armed)));
            String::new()
        })?;
        self.receiver = Some(Helper {
            side,
            waiting: Some(id.clone()),
            control: Some(control),
        });
        Ok(())
    }

    fn send(&mut self, id: &Value, request: Value) -> Res<()> {
        let spec: Send = parse("frames send", request)?;
        if !(frame::SMALLEST..=frame::LARGEST).contains(&spec.size) {
            return Err(format!(
                "frames: size {}: a test frame has from {} to {} bytes, FCS counted",
                spec.size,
                frame::SMALLEST,
                frame::LARGEST
            ));
        }
        end(&mut self.sender);
        let side = Side::start(&[], |say| {
            say(&line(send::run(&spec)));
            String::new()
        })?;
        self.sender = Some(Helper {
            side,
            waiting: Some(id.clone()),
            control: None,
        });
        Ok(())
    }

    /// Asks for the counts, once all frames are there or `wait_ns` have passed.
    fn collect(&mut self, id: &Value, request: &Value) -> Res<()> {
        let wait_ns = request["wait_ns"].as_i64().filter(|w| *w >= 0).ok_or(
            "frames: collect: wait_ns is missing; give the time to wait for the last frames",
        )?;
        let sent = request["sent"]
            .as_i64()
            .ok_or("frames: collect: sent is missing; give the number of frames that were sent")?;
        let receiver = self
            .receiver
            .as_mut()
            .filter(|r| r.waiting.is_none())
            .ok_or("frames: collect: nothing listens; ask for `listen` first")?;
        if let Some(control) = &receiver.control {
            os::write(
                control.as_raw_fd(),
                &[wait_ns.to_ne_bytes(), sent.to_ne_bytes()].concat(),
            )
            .map_err(|e| format!("frames: collect: {e}"))?;
        }
        receiver.waiting = Some(id.clone());
        Ok(())
    }
}

fn end(slot: &mut Option<Helper>) {
    if let Some(helper) = slot.take() {
        helper.side.end();
    }
}

fn line(outcome: Res<Value>) -> String {
    let text = match outcome {
        Ok(fields) => fields,
        Err(error) => json!({"error": error}),
    };
    format!("{text}\n")
}

fn answer_of(line: &str) -> Res<Value> {
    let fields: Value =
        serde_json::from_str(line).map_err(|e| format!("frames: a helper said: {e}"))?;
    match fields["error"].as_str() {
        Some(text) => Err(text.to_owned()),
        None => Ok(fields),
    }
}

#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = frame::read(bytes);
}
