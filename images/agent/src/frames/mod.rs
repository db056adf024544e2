//! Sends and receives the test frames of a trial as RFC 2544 requires: an open-loop generator on one node's
//! interface, and a receiver on another node's, which accounts for each frame.

mod account;
mod frame;
mod histogram;
mod pace;
mod receive;
mod send;
mod socket;

use crate::launch::helper::Helper;
use crate::os::{self, Res};
use crate::proto::parse;
use serde::Deserialize;
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The request `listen`: the trial whose frames a receiver expects, and the interface on which it receives
/// them.
#[derive(Debug, Deserialize)]
struct Listen {
    iface: String,
    trial: u16,
    count: u32,
    ring_bytes: Option<usize>,
}

/// The request `send`: a trial of `count` frames of `size` bytes including FCS, at `rate_fps` frames a second
/// (0: back to back).
#[derive(Debug, Deserialize)]
struct Send {
    iface: String,
    trial: u16,
    count: u32,
    size: usize,
    rate_fps: f64,
    longest_ns: i64,
    /// MAC of the receiver's interface, from the answer to `listen`.
    to: String,
    #[serde(default)]
    bypass: bool,
}

/// A helper process that sends or receives, and the id of the request that waits for its answer.
struct TrialProcess {
    process: Helper,
    waiting: Option<Value>,
    /// The pipe to a receiver; None for a sender. The node ends the reception by writing sixteen bytes to it:
    /// the longest wait in ns, and the number of frames sent.
    control: Option<OwnedFd>,
}

/// The helper processes of a node in a trial: a sender, a receiver, or both.
#[derive(Default)]
pub struct Frames {
    sender: Option<TrialProcess>,
    receiver: Option<TrialProcess>,
}

impl Frames {
    /// Starts the requested action, `listen`, `send` or `collect`; `on_ready` returns its answer once it
    /// is complete.
    pub fn request(&mut self, id: &Value, request: Value) -> Res<()> {
        match request["action"].as_str().unwrap_or("") {
            "listen" => self.listen(id, request),
            "send" => self.send(id, request),
            "collect" => self.collect(id, &request),
            other => Err(format!(
                "frames: action \"{other}\" is unknown; write listen, send or collect"
            )),
        }
    }

    /// Returns the descriptors of the helper processes, to poll for reading.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> {
        [&self.sender, &self.receiver]
            .into_iter()
            .flatten()
            .map(|h| h.process.raw())
    }

    /// Reads the answer of the helper process with this descriptor; returns it with the id of the request
    /// that waits for it, or None if it is not complete or no request waits. Forgets the helper process,
    /// unless the answer is that a receiver is armed.
    pub fn on_ready(&mut self, fd: RawFd) -> Option<(Value, Res<Value>)> {
        for slot in [&mut self.sender, &mut self.receiver] {
            let Some(helper) = slot.as_mut().filter(|h| h.process.raw() == fd) else {
                continue;
            };
            let line = helper.process.read()?;
            let answer = line.and_then(|line| answer_of(&line));
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
        // A receiver that still runs belongs to an abandoned trial, so it is ended.
        end(&mut self.receiver);
        let (until, control) = os::pipe().map_err(|e| format!("frames: pipe: {e}"))?;
        let process = Helper::start(&[until.as_raw_fd()], |send| {
            let armed = |mac| send(&line(Ok(json!({"armed": true, "mac": mac}))));
            send(&line(receive::run(&spec, &until, &armed)));
            String::new()
        })?;
        self.receiver = Some(TrialProcess {
            process,
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
        let process = Helper::start(&[], |send| {
            send(&line(send::run(&spec)));
            String::new()
        })?;
        self.sender = Some(TrialProcess {
            process,
            waiting: Some(id.clone()),
            control: None,
        });
        Ok(())
    }

    /// Requests the receiver's counts. The receiver returns them soon after all `sent` frames have arrived,
    /// or after `wait_ns`. Returns an error if a field is missing, if there is no armed receiver, or if the
    /// receiver handles another request.
    fn collect(&mut self, id: &Value, request: &Value) -> Res<()> {
        let wait_ns = request["wait_ns"].as_i64().filter(|w| *w >= 0).ok_or(
            "frames: collect: wait_ns is missing; write how long to wait for the last frames",
        )?;
        let sent = request["sent"]
            .as_i64()
            .ok_or("frames: collect: sent is missing; write the number of sent frames")?;
        let receiver = self
            .receiver
            .as_mut()
            .filter(|r| r.waiting.is_none())
            .ok_or("frames: collect: nothing listens; send `listen` first")?;
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

fn end(slot: &mut Option<TrialProcess>) {
    if let Some(helper) = slot.take() {
        helper.process.end();
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
        serde_json::from_str(line).map_err(|e| format!("frames: a helper's answer: {e}"))?;
    match fields["error"].as_str() {
        Some(text) => Err(text.to_owned()),
        None => Ok(fields),
    }
}

#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = frame::read(bytes);
}
