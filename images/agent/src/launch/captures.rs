//! Implements the operations `capture` and `capture-end`: a helper process for each capture, which answers
//! when it has ended.

use super::Launcher;
use super::calls;
use super::helper::Helper;
use crate::capture;
use crate::os::{self, Res};
use crate::proto::{Capture, parse};
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A capture that runs. Its request is answered at its end.
pub(super) struct Capturing {
    pub helper: Helper,
    id: Value,
    /// The pipe that ends the capture when it is written to or closed.
    control: OwnedFd,
}

impl Launcher {
    /// Starts a capture; `capturing` is its event once it has begun.
    pub(super) fn capture(&mut self, id: &Value, request: Value) -> Res<()> {
        let spec: Capture = parse("capture", request)?;
        let (until, control) = os::pipe().map_err(|e| format!("capture {}: {e}", spec.name))?;
        let helper = Helper::start(&[until.as_raw_fd()], |send| {
            let listening = || send(&format!("{}\n", json!({"event": "capturing"})));
            let answer = match capture::run(&spec, &until, &listening) {
                Ok(mut counts) => {
                    counts["ok"] = json!(true);
                    counts
                }
                Err(text) => {
                    json!({"ok": false, "error": format!("capture {}: {text}", spec.name)})
                }
            };
            format!("{answer}\n")
        })?;
        self.watch(helper.raw(), false, true)
            .map_err(|e| format!("capture: {e}"))?;
        let id = id.clone();
        self.captures.push(Capturing {
            helper,
            id,
            control,
        });
        Ok(())
    }

    /// Ends the capture whose request has the id `target`, which is then answered. An error if it has ended.
    pub(super) fn capture_end(&mut self, request: &Value) -> Res<()> {
        let target = &request["target"];
        let found = self.captures.iter().find(|one| one.id == *target);
        let running =
            found.ok_or_else(|| format!("capture-end {target}: not running; `capture` first"))?;
        os::write(running.control.as_raw_fd(), b"\n")
            .map(drop)
            .map_err(|e| format!("capture-end {target}: {e}"))
    }

    /// Reads the lines of a capture's helper; false if `fd` is no such helper's.
    pub(super) fn on_capture(&mut self, fd: RawFd) -> bool {
        let Some(i) = self.captures.iter().position(|c| c.helper.raw() == fd) else {
            return false;
        };
        while let Some(outcome) = self.captures[i].helper.read() {
            let id = self.captures[i].id.clone();
            let parsed = outcome
                .and_then(|line| serde_json::from_str::<Value>(&line).map_err(|e| e.to_string()));
            let (mut message, ended) = match parsed {
                Ok(message) if message.get("event").is_some() => (message, false),
                Ok(message) => (message, true),
                Err(text) => (calls::failure(&id, &format!("capture: {text}")), true),
            };
            message["id"] = id;
            self.send_client(&message);
            if ended {
                self.captures.swap_remove(i);
                break;
            }
        }
        true
    }
}
